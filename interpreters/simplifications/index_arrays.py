"""Affine functions of indices, and comparisons of them, written as arrays: iotas, their multiples and sums."""

from collections.abc import Sequence
from functools import reduce

import numpy as np

from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import iota_p
from tapeless.tracer.terms.affine import Affine, Variable
from tapeless.tracer.terms.term import Bracket, IsZero
from tapeless.tracer.types import ShapedArray

INDEX = np.dtype(np.int32)  # of these arrays


def where(w: Writer, bracket: Bracket, order: Sequence[Variable], shape: Sequence[int]) -> Atom:
    """Write a mask that is true where a bracket holds, with an axis for each variable in order."""
    left = bracket.index.part(lambda c: c > 0) + max(bracket.index.constant, 0)
    one, other = [index_array(w, a, order, shape) for a in (left, left - bracket.index)]  # no number is negative
    return w.write(e.eq_p if isinstance(bracket, IsZero) else e.ge_p, one, other)


def index_array(w: Writer, a: Affine, order: Sequence[Variable], shape: Sequence[int]) -> Atom:
    """Write an affine function of variables, with an axis for each of them in order."""
    aval, parts = ShapedArray(tuple(shape), INDEX), list[Atom]()
    for v, k in a.variables:
        i = w.write(iota_p, dtype=INDEX, shape=aval.shape, dimension=order.index(v))
        parts.append(i if k == 1 else w.write(e.mul_p, literal(k, aval), i))
    if a.constant or not parts:
        parts.append(literal(a.constant, aval))
    total = reduce(lambda x, y: w.write(e.add_p, x, y), parts)
    return total if total.aval.shape else filled(w, a.constant, aval)
