"""Contractions without a contracted axis, as elementwise products. Rows of rewrites.py name these functions."""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters.simplifications.constants import number
from tapeless.interpreters.writer import Writer
from tapeless.tracer.dtypes import is_bool
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, transpose_p
from tapeless.tracer.types import ShapedArray


def contracts(x: Atom, y: Atom, numbers: Any) -> bool:
    """Tell whether a contraction is no elementwise product: no operand is a scalar, and not all axes are batch axes."""
    elementwise = len(numbers[1][0]) == x.aval.ndim == y.aval.ndim
    return bool(x.aval.shape) and bool(y.aval.shape) and not elementwise


def summed(numbers: Any) -> Sequence[int]:
    """Return the axes of the first operand that are summed over."""
    return numbers[0][0]


def elementwise_product(w: Writer, aval: ShapedArray, x: Atom, y: Atom, numbers: Any) -> Atom | None:
    """Write a contraction that sums nothing as an elementwise product, "and" for booleans; None if dtypes differ."""
    if aval.dtype != x.aval.dtype:
        return None
    if x.aval.shape and y.aval.shape:
        x, y = spread_factors(w, x, y, numbers, aval.shape)
    return w.write(and_p if is_bool(aval.dtype) else mul_p, x, y)


def outer_with_number(w: Writer, aval: ShapedArray, x: Atom, y: Atom, numbers: Any) -> Atom | None:
    """Write an outer product as an elementwise one if all elements of a factor are one number; else None."""
    if number(w, x) is None and number(w, y) is None:
        return None
    return elementwise_product(w, aval, x, y, numbers)


def spread_factors(w: Writer, x: Atom, y: Atom, dimension_numbers: Any, shape: tuple[int, ...]) -> tuple[Atom, Atom]:
    """Broadcast both factors of a contraction that sums nothing to `shape`, that of its result."""
    _, (bx, by) = dimension_numbers
    return _spread(w, x, bx, len(bx), shape), _spread(w, y, by, x.aval.ndim, shape)


def _spread(w: Writer, x: Atom, batch: Sequence[int], at: int, shape: tuple[int, ...]) -> Atom:
    """Broadcast an operand to `shape`: batch axes first, its other axes from `at` on."""
    order = (*batch, *without(range(x.aval.ndim), batch))
    dims = (*range(len(batch)), *range(at, at + x.aval.ndim - len(batch)))
    return w.write(broadcast_in_dim_p, w.write(transpose_p, x, permutation=order), shape=shape, dims=dims)
