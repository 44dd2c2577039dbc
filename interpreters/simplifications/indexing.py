"""Dynamic slices with known starts. Rows of rewrites.py name these functions."""

from collections.abc import Sequence

from tapeless.interpreters.writer import Writer
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives.shape import slice_p
from tapeless.tracer.types import ShapedArray


def known_slice(w: Writer, aval: ShapedArray, x: Atom, starts: Sequence[Atom]) -> Atom | None:
    """Rewrite a dynamic slice as a slice at clamped starts; None if a start is no literal and could move the window."""
    rooms = [n - size for n, size in zip(x.aval.shape, aval.shape)]
    if any(room and type(start) is not Literal for start, room in zip(starts, rooms)):
        return None
    first = tuple([min(max(int(start.value), 0), room) if room else 0 for start, room in zip(starts, rooms)])  # type: ignore[union-attr]
    limits = tuple([a + n for a, n in zip(first, aval.shape)])
    return w.write(slice_p, x, start_indices=first, limit_indices=limits, strides=(1,) * len(first))


def same_type(x: Atom, y: Atom) -> bool:
    """Tell whether two operands have the same type."""
    return x.aval is y.aval
