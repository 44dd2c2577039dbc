"""References among the arguments of a mapped function: each example has a part of the array in them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tapeless.interpreters import vmap as batching
from tapeless.interpreters.vmap import Dim
from tapeless.tracer import core
from tapeless.tracer.references import Ref


class BatchedReferences:
    """The references among flat arguments whose mapped axes are at `dims`. Within a with block nobody else uses them.

    values: the arguments, with the arrays of mapped references in their places. Those that are not mapped stay what
      they are: the same for all examples.
    Raises: ValueError if a reference is mapped twice.
    """

    def __init__(self, flat: Sequence[Any], dims: Sequence[Dim], size: int) -> None:
        self._dims, self._size = dims, size
        self._mapped = {i: x for i, (x, d) in enumerate(zip(flat, dims)) if d is not None and isinstance(x, Ref)}
        self._inner: list[Ref] = []
        self.values: Final = [self._mapped[i].get() if i in self._mapped else x for i, x in enumerate(flat)]

    def __enter__(self) -> "BatchedReferences":
        lent: list[Ref] = []
        try:
            for ref in self._mapped.values():
                ref.lend("vmap")
                lent.append(ref)
        except ValueError:
            self._return(lent)
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        self._return(self._mapped.values())

    @staticmethod
    def _return(references: Iterable[Ref]) -> None:
        for ref in references:
            ref.lend("")

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
        self._return(self._mapped.values())
        for (i, ref), x, d in zip(self._mapped.items(), outs[n:], dims[n:], strict=True):
            place = self._dims[i]
            assert place is not None
            ref.put(batching.placed(x, d, place, self._size))
        return outs[:n], dims[:n]
