"""What is known of the elements of a value: that they are all one number."""

from typing import Any

import numpy as np

from tapeless.interpreters.simplify import Writer, literal
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray


def number(w: Writer, x: Atom) -> Any:
    """The number that all elements of a value are, as a scalar of NumPy's; None if that is not known."""
    eqn = w.made_by(x, broadcast_in_dim_p)
    found = x if eqn is None else eqn.invars[0]
    return np.asarray(found.value) if type(found) is Literal and not found.aval.shape else None


def is_zero(w: Writer, x: Atom) -> bool:
    """Whether a value is known to be 0, of either sign."""
    known = number(w, x)
    return known is not None and not known.any()


def filled(w: Writer, value: Any, aval: ShapedArray) -> Atom:
    """A value of this type whose elements are all one number."""
    scalar = literal(value, aval)
    return w.write(broadcast_in_dim_p, scalar, shape=aval.shape, dims=()) if aval.shape else scalar
