"""References: arrays that are read and written in place, `ref[i] += x`, while programs stay pure.

A reference is a Python cell that holds an array. Reading indexes that array; writing replaces it, by `x.at[i].set(y)`.
This is enough where primitives are computed, differentiated or mapped. A function that is traced into a program cannot
write into an outer cell while it is traced, as the program runs later, and often. So the program threads the array:
the trace has an input for it, which the cell holds while the function is traced, and the array in the cell at the end
is a further result. The caller that closes the program (`trace_to_jaxpr(references=...)`) passes the array and puts
the result into the cell, or refuses.

An outer cell takes no value of an inner derivative or `vmap`, and is not written under such a `vmap` at all, where
every example would write. There are no effects in any jaxpr.
Source: the semantics are those of `jax.ref`; threading the store is the state monad of Moggi 1991, "Notions of
computation and monads".
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Trace, Tracer
from tapeless.tracer.numpy.at import convert_values
from tapeless.tracer.staging import Cell, StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of, conversion_hint, is_arraylike


class AbstractRef(NamedTuple):
    """The type of a reference: that of the array in it. Prints as `Ref{float32[3]}`."""

    inner_aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.inner_aval.dtype

    def __str__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"

    __repr__ = __str__


class Ref(Cell):
    """A mutable array: `ref[index]` reads, `ref[index] = x` writes. `new_ref` makes one.

    It is no array: functions of arrays take the part that is read. Indices are those of arrays. A written value is
    converted and broadcast as by `x.at[index].set(y)`: the type of a reference never changes.
    """

    __slots__ = ("__weakref__", "_borrowed", "_ended", "_lent", "aval", "owner", "value")

    conversion_hint = "\n  A reference is no array: read what is in it, ref[...]."

    def __init__(self, value: Array, owner: Trace, borrowed: bool = False) -> None:
        self.value: Any = value
        self.aval: Final = AbstractRef(aval_of(value))
        self.owner: Trace = owner
        self._borrowed = borrowed  # whether it is an argument of the traced function, which must not end it
        self._ended = self._lent = ""

    # ---- types

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.inner_aval.size

    @property
    def weak_type(self) -> bool:
        """Tell whether the dtype gives way to others, as that of a Python number does."""
        return self.aval.inner_aval.weak_type

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a reference without axes.")
        return self.shape[0]

    def __repr__(self) -> str:
        shown = repr(self.value)
        if not shown.startswith("Array("):
            return str(self.aval)
        return f"Ref{shown.removeprefix('Array')}".replace("\n  ", "\n")  # lines are indented by the name

    def _no_arithmetic(self, *_: object) -> NoReturn:
        raise TypeError(f"arithmetic with a reference: {self.aval}.{self.conversion_hint}")

    if not TYPE_CHECKING:  # type checkers refuse it as well
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_arithmetic
        __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _no_arithmetic

    def __reduce__(self) -> Any:
        raise TypeError(f"a reference cannot be pickled: {self.aval}. Pickle what is in it, ref[...].")

    # ---- reading and writing

    def get(self, idx: Any = ...) -> Array:
        """Return the part at an index, by default the whole array."""
        return _part(self.place().value, idx)

    def set(self, value: ArrayLike, idx: Any = ...) -> None:
        """Replace the part at an index."""
        self.swap(value, idx, read=False)

    def swap(self, value: ArrayLike, idx: Any = ..., *, read: bool = True) -> Any:
        """Replace the part at an index, and return the part before; None if not `read`."""
        place = self.place()
        before = place.value
        after = convert_values("set", before, value) if _is_whole(idx) else before.at[idx].set(value)
        self._write(place, after)
        return _part(before, idx) if read else None

    def addupdate(self, x: ArrayLike, idx: Any = ()) -> None:
        """Add to the part at an index, as often as positions repeat."""
        place = self.place()
        before = place.value
        added = tnp.add(before, convert_values("add", before, x)) if _is_whole(idx) else before.at[idx].add(x)
        self._write(place, added)

    def __getitem__(self, idx: Any) -> Array:
        return self.get(idx)

    def __setitem__(self, idx: Any, value: ArrayLike) -> None:
        self.set(value, idx)

    # ---- the cell of the array

    def place(self) -> Cell:
        """Return the cell that holds the array here: this one, or that of the program that is traced.

        Raises: ValueError if the reference is frozen or lent, or outlived the function that made it.
        """
        if self._ended:
            raise ValueError(f"a reference that was {self._ended} is used: {self.aval}.")
        if self._lent:
            raise ValueError(
                f"a reference is used while it is an argument of {self._lent}, by another name: {self.aval}.\n"
                "  Pass it once: what is written by one name would not be seen by the other."
            )
        owner = self.owner
        if not owner.alive:
            raise ValueError(
                f"a reference escaped its function: {self.aval} of {owner.describe()}.\n"
                "  Return what is in it, ref[...], instead of storing the reference."
            )
        trace, program = core.current_trace(), None
        while trace.depth > owner.depth:
            if program is None and isinstance(trace, StagingTrace):
                program = trace
            trace = trace.parent
        return self if program is None or trace is not owner else program.cell_of(self, self.aval.inner_aval)

    def put(self, value: Any) -> None:
        """Replace the whole array by one of its type. Raises: as `set`."""
        self._write(self.place(), value)

    def _write(self, place: Cell, value: Any) -> None:
        trace, depth = core.current_trace(), place.owner.depth
        while trace.depth > depth:
            if trace.what == "vmap":
                raise ValueError(_OF_EXAMPLES.format(aval=self.aval, function=trace.describe()))
            trace = trace.parent
        if isinstance(value, Tracer) and value.owner.depth > depth:
            raise ValueError(_OF_DERIVATIVE.format(aval=self.aval, function=value.owner.describe()))
        place.value = value

    def lend(self, to: str) -> None:
        """Forbid the use of the reference under this name while it is an argument of `to`; allow it if `to` is empty.

        Raises: ValueError if it is lent already.
        """
        if to:
            self.place()
        self._lent = to

    def give_up(self, how: str) -> Array:
        """Invalidate the reference, and return the array. Raises: ValueError outside of the trace that made it."""
        if self._borrowed or self.place() is not self or core.current_trace() is not self.owner:
            raise ValueError(
                f"a reference is {how} outside of the function that made it: {self.aval}.\n"
                "  Only the function that makes a reference can end it; elsewhere read it, ref[...]."
            )
        self._ended = how
        return self.value


_OF_EXAMPLES = (
    "a reference of outside is written under vmap, where every example would write it: {aval}.\n"
    "  Mapped: {function}.\n  Make it an argument of the mapped function, with an axis for the examples."
)
_OF_DERIVATIVE = (
    "a value that is differentiated is written into a reference of outside: {aval}.\n"
    "  Differentiated: {function}.\n  Write tl.stop_gradient(x), or make the reference in the function."
)


def _is_whole(idx: Any) -> bool:
    return idx is ... or (type(idx) is tuple and not idx)


def _part(x: Any, idx: Any) -> Any:
    return x if _is_whole(idx) else x[idx]


# ---- making and ending references ----------------------------------------------------------------------------


def new_ref(init_val: ArrayLike, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Make a reference.

    Args:
      init_val: the array that is in it at first.
      memory_space, kind: None; there are no others.
    Raises: TypeError if `init_val` is no array; NotImplementedError for `memory_space` or `kind`.

    >>> ref = new_ref(tnp.zeros(3))
    >>> ref[1] += 2.0
    >>> ref
    Ref([0., 2., 0.], dtype=float32)
    """
    if memory_space is not None or kind is not None:
        raise NotImplementedError(
            f"new_ref: memory_space={memory_space!r} and kind={kind!r} are not there, only None for both."
        )
    if not is_arraylike(init_val):
        what = f"{init_val!r:.80} of type {type(init_val).__name__}"
        raise TypeError(f"new_ref: {what} is not an array.{conversion_hint(init_val)}")
    return Ref(tnp.asarray(init_val), core.current_trace())


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Make a reference whose elements are arbitrary until they are written: zeros.

    Args:
      ty: has `shape` and `dtype`.
    Raises: NotImplementedError for a `memory_space`.
    """
    return new_ref(tnp.zeros(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """End a reference, and return the array in it.

    Raises: ValueError outside of the function that made it, or if it has ended.
    """
    return _checked("freeze", ref).give_up("frozen")


def free_ref(ref: Ref) -> None:
    """End a reference. Raises: ValueError outside of the function that made it, or if it has ended."""
    _checked("free_ref", ref).give_up("freed")


def get(ref: Ref, idx: Any = None) -> Array:
    """Return `ref[idx]`; all of it if `idx` is None."""
    return _checked("get", ref).get(... if idx is None else idx)


def set(ref: Ref, idx: Any, value: ArrayLike) -> None:
    """Set `ref[idx] = value`; all of it if `idx` is None."""
    _checked("set", ref).set(value, ... if idx is None else idx)


def swap(ref: Ref, idx: Any, value: ArrayLike) -> Array:
    """Set `ref[idx] = value`, and return the part before; all of it if `idx` is None."""
    return _checked("swap", ref).swap(value, ... if idx is None else idx)


def addupdate(ref: Ref, idx: Any, x: ArrayLike) -> None:
    """Add `x` to `ref[idx]`, as often as positions repeat; to all of it if `idx` is None."""
    _checked("addupdate", ref).addupdate(x, ... if idx is None else idx)


def typeof(x: Any) -> Any:
    """Return the type of an array, a number or a reference. Raises: TypeError for anything else."""
    return x.aval if isinstance(x, Ref) else aval_of(x)


@contextmanager
def lent(references: Iterable[Ref], to: str) -> Generator[None]:
    """Let nobody else use references in a with block, while they are arguments of `to`.

    Raises: ValueError if somebody does, or one is there twice.
    """
    done: list[Ref] = []
    try:
        for ref in references:
            ref.lend(to)
            done.append(ref)
        yield
    finally:
        for ref in done:
            ref.lend("")


def values_of(leaves: Iterable[Any]) -> list[Any]:
    """Replace references by the arrays that they hold here."""
    return [x.get() if isinstance(x, Ref) else x for x in leaves]


def _checked(who: str, ref: Any) -> Ref:
    if not isinstance(ref, Ref):
        raise TypeError(f"{who}: expected a reference, not {ref!r:.80} of type {type(ref).__name__}.")
    return ref
