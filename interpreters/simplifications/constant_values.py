"""Constant values in programs: the number filling an array, and the factor that replaces a repeated addition."""

from typing import Any

import numpy as np

from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray


def number(w: Writer, x: Atom) -> Any:
    """Return the number that all elements of a value equal, as a NumPy scalar; None if none is known."""
    eqn = w.made_by(x, broadcast_in_dim_p)
    found = x if eqn is None else eqn.invars[0]
    return np.asarray(found.value) if type(found) is Literal and not found.aval.shape else None


def is_zero(w: Writer, x: Atom) -> bool:
    """Tell whether a value is known to be 0, of either sign."""
    known = number(w, x)
    return known is not None and not known.any()


def broadcast_scalar(w: Writer, x: Atom, aval: ShapedArray) -> Atom | None:
    """Return `x`, or the broadcast of a scalar `x`, in the shape of `aval`; None if their weak types differ."""
    if x.aval.weak_type != aval.weak_type:
        return None
    return x if x.aval.shape == aval.shape else w.write(broadcast_in_dim_p, x, shape=aval.shape, dims=())


def count(w: Writer, n: int, aval: ShapedArray) -> Literal | None:
    """Return the literal by which a value of this type is multiplied instead of being added up `n` times.

    `n` may be negative. Integers wrap around, as their sums do. None for booleans, if a float dtype does not hold n
    exactly, and for complex values outside linear programs: they may be infinite, and 2 (inf + i) is inf + nan i.
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
