"""Contractions: with a scalar, of zeros, and those that sum nothing."""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.constants import is_zero
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, transpose_p


def _dot_general(w: Writer, x: Atom, y: Atom, *, preferred_element_type: Any, **params: Any) -> Atom | None:
    elementwise = len(params["dimension_numbers"][1][0]) == x.aval.ndim == y.aval.ndim
    if x.aval.shape and y.aval.shape and not elementwise and not (w.linear and (is_zero(w, x) or is_zero(w, y))):
        return None
    (aval,) = dot_general_p.type((x.aval, y.aval), {"preferred_element_type": preferred_element_type, **params})
    if w.linear and any(is_zero(w, v) and other.linear for v, other in ((x, y), (y, x))):
        return filled(w, 0, aval)
    if aval.dtype != x.aval.dtype:
        return None
    if elementwise:
        return w.write(mul_p, *spread_factors(w, x, y, params["dimension_numbers"], aval.shape))
    return w.write(mul_p, x, y) if not (x.aval.shape and y.aval.shape) else None


def spread_factors(w: Writer, x: Atom, y: Atom, dimension_numbers: Any, shape: tuple[int, ...]) -> tuple[Atom, Atom]:
    """The factors of a contraction that sums nothing, spread over its result of this shape."""
    _, (bx, by) = dimension_numbers
    return _spread(w, x, bx, len(bx), shape), _spread(w, y, by, x.aval.ndim, shape)


def _spread(w: Writer, x: Atom, batch: Sequence[int], at: int, shape: tuple[int, ...]) -> Atom:
    """An operand whose other axes than those of the batch are from `at` on in the result."""
    order = (*batch, *without(range(x.aval.ndim), batch))
    dims = (*range(len(batch)), *range(at, at + x.aval.ndim - len(batch)))
    return w.write(broadcast_in_dim_p, w.write(transpose_p, x, permutation=order), shape=shape, dims=dims)


simplify.rules[dot_general_p] = _dot_general
