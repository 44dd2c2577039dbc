"""Recognise iota-like values: an index along an axis plus an integer."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tapeless.interpreters.simplifications.constants import number
from tapeless.interpreters.simplifications.shape import after_ones
from tapeless.interpreters.simplify import Writer
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s


class Position(NamedTuple):
    """An integer: the index along `axis` plus `start`, or `start` everywhere."""

    axis: int | None
    start: int


def position(w: Writer, x: Atom) -> Position | None:
    """Recognise x as an index along an axis plus an integer, or as one integer; None for other values."""
    known, eqn = number(w, x), w.definition(x)
    if known is not None:
        return Position(None, int(known)) if known.dtype.kind in "iu" else None
    if eqn is None:
        return None
    if eqn.primitive is s.iota_p:
        axis, (aval,) = eqn.params["dimension"], [v.aval for v in eqn.outvars]
        return Position(axis, 0) if counts_to(aval.shape[axis] - 1, aval.dtype) else None
    if eqn.primitive in (e.add_p, e.sub_p):
        return _shifted(w, eqn)
    axes = _axes_after(eqn)
    found = position(w, eqn.invars[0]) if axes else None
    return None if found is None or found.axis not in axes else Position(axes[found.axis], found.start)


def counts_to(last: int, dtype: Any) -> bool:
    """Tell whether a dtype holds each integer from 0 to `last`; others wrap around, or are rounded to one number."""
    if dtypes.is_inexact(dtype):
        return last <= 2 ** (dtypes.finfo(dtype).nmant + 1)
    return last <= dtypes.iinfo(dtype).max


def _shifted(w: Writer, eqn: Equation) -> Position | None:
    """An index plus or minus a number, in a dtype that holds the sum: others wrap around, or are rounded."""
    (aval,), (one, other) = [v.aval for v in eqn.outvars], [position(w, v) for v in eqn.invars]
    if one is None or other is None or not dtypes.is_integer(aval.dtype):
        return None
    if one.axis is None and eqn.primitive is e.add_p:
        one, other = other, one
    if one.axis is None or other.axis is not None:
        return None
    start = one.start + other.start if eqn.primitive is e.add_p else one.start - other.start
    limits = dtypes.iinfo(aval.dtype)
    fits = limits.min <= start and start + aval.shape[one.axis] - 1 <= limits.max
    return Position(one.axis, start) if fits else None


def _axes_after(eqn: Equation) -> Mapping[Any, int]:
    """Map axes of the operand of a reshape or broadcast to axes of its result; {} for other equations."""
    (out,) = eqn.outvars
    if eqn.primitive is s.reshape_p:
        return after_ones(eqn.invars[0].aval.shape, out.aval.shape) or {}
    if eqn.primitive is s.broadcast_in_dim_p:
        sizes = zip(eqn.invars[0].aval.shape, eqn.params["dims"])
        return {k: d for k, (n, d) in enumerate(sizes) if n == out.aval.shape[d]}
    return {}
