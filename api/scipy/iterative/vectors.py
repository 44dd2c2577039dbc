"""Vectors that are pytrees of arrays: inner products and sums, for iterations."""

from typing import Any

from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.array import Array
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.types import aval_of


def inner_product(xs: Any, ys: Any) -> Array:
    """Sum Re(conj(x) y) over all elements of arrays."""
    products = pytree.tree_map(lambda x, y: tnp.real(tnp.vdot(x, y, precision=Precision.HIGHEST)), xs, ys)
    return total(pytree.leaves(products))


def total(terms: list[Any]) -> Array:
    """Sum numbers from left to right, 0.0 of none."""
    return tnp.asarray(sum(terms[1:], terms[0]) if terms else 0.0)


def add_scaled(xs: Any, factor: Any, ys: Any) -> Any:
    """Compute x + factor y in the dtypes of x."""
    return pytree.tree_map(lambda x, y: (x + factor * y).astype(aval_of(x).dtype), xs, ys)


def select(which: Any, yes: Any, no: Any) -> Any:
    """Select the leaves of one of two trees of the same structure, in the dtypes of the second."""
    return pytree.tree_map(lambda x, y: tnp.where(which, x, y).astype(aval_of(y).dtype), yes, no)
