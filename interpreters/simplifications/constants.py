"""Constants in programs: the number that fills a value, and counts as numbers to multiply by."""

from typing import Any

import numpy as np

from tapeless.interpreters.simplify import Writer, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray


def number(w: Writer, x: Atom) -> Any:
    """The number that all elements of a value are, as a scalar of NumPy's; None if that is not known."""
    eqn = w.made_by(x, broadcast_in_dim_p)
    found = x if eqn is None else eqn.invars[0]
    return np.asarray(found.value) if type(found) is Literal and not found.aval.shape else None


def is_zero(w: Writer, x: Atom) -> bool:
    """Tell whether a value is known to be 0, of either sign."""
    known = number(w, x)
    return known is not None and not known.any()


def spread(w: Writer, x: Atom, aval: ShapedArray) -> Atom | None:
    """A value as it is in a result of this type, perhaps a scalar everywhere; None if the types are others."""
    if x.aval.weak_type != aval.weak_type:
        return None
    return x if x.aval.shape == aval.shape else w.write(broadcast_in_dim_p, x, shape=aval.shape, dims=())


def count(w: Writer, n: int, aval: ShapedArray) -> Literal | None:
    """The number that a value of this type is multiplied by in the place of adding it up n times, negative or not.

    Integers wrap around, as their sums do. None if a float is not exactly n, or is complex and may be infinite: as
    complex numbers, 2 (inf + i) is inf + nan i.
    """
    dtype = aval.dtype
    if dtypes.is_integer(dtype):
        limits = dtypes.iinfo(dtype)
        return literal((n - int(limits.min)) % 2**limits.bits + int(limits.min), aval)
    if not dtypes.is_inexact(dtype) or (dtypes.is_complex(dtype) and not w.linear):
        return None
    with np.errstate(over="ignore"):
        found = literal(n, aval)
    return found if complex(found.value) == n else None
