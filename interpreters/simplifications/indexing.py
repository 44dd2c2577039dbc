"""Windows at places that are known. Functions of the rewrites."""

from collections.abc import Sequence

from tapeless.interpreters.simplifications.slicing.views import known_window
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.shape import slice_p
from tapeless.tracer.types import ShapedArray


def known_slice(w: Writer, aval: ShapedArray, x: Atom, starts: Sequence[Atom]) -> Atom | None:
    """A slice, if it is known where the window begins."""
    first = known_window(starts, x.aval.shape, aval.shape)
    if first is None:
        return None
    limits = tuple([a + n for a, n in zip(first, aval.shape)])
    return w.write(slice_p, x, start_indices=first, limit_indices=limits, strides=(1,) * len(first))


def same_type(x: Atom, y: Atom) -> bool:
    """Tell whether two operands have the same type."""
    return x.aval is y.aval
