"""References among the arguments of a mapped function: each example has a part of the array in them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from tapeless.interpreters import vmap as batching
from tapeless.interpreters.vmap import Dim
from tapeless.tracer import core
from tapeless.tracer.references import Ref, lent


class BatchedReferences:
    """The references among flat arguments whose mapped axes are at `dims`.

    values: the arguments, with the arrays of mapped references in their places. Those that are not mapped stay what
      they are: the same for all examples.
    """

    def __init__(self, flat: Sequence[Any], dims: Sequence[Dim], size: int) -> None:
        self._dims, self._size = dims, size
        self._mapped = {i: x for i, (x, d) in enumerate(zip(flat, dims)) if d is not None and isinstance(x, Ref)}
        self._inner: list[Ref] = []
        self.values: Final = [self._mapped[i].get() if i in self._mapped else x for i, x in enumerate(flat)]

    def lent(self) -> AbstractContextManager[None]:
        """Let nobody else use the references in a with block. Raises: ValueError if one is mapped twice."""
        return lent(self._mapped.values(), "vmap")

    def given(self, flat: Sequence[Any]) -> Sequence[Any]:
        """Make the arguments of one example from flat values: a reference of its own for each that is mapped."""
        if not self._mapped:
            return flat
        made = {i: Ref(flat[i], core.current_trace(), borrowed=True) for i in self._mapped}
        self._inner = list(made.values())
        return [made.get(i, x) for i, x in enumerate(flat)]

    def after(self) -> list[Any]:
        """Return the arrays that are in the references of one example."""
        return [ref.value for ref in self._inner]

    def put_back(self, outs: Sequence[Any], dims: Sequence[Dim]) -> tuple[Sequence[Any], Sequence[Dim]]:
        """Write the last results into the references; return the others, and where their mapped axes are."""
        n = len(outs) - len(self._mapped)
        for (i, ref), x, d in zip(self._mapped.items(), outs[n:], dims[n:], strict=True):
            place = self._dims[i]
            assert place is not None
            ref.put(batching.placed(x, d, place, self._size))
        return outs[:n], dims[:n]
