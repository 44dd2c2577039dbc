"""Pytrees of arrays as vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_arrays
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree as trees
from tapeless.tracer.array import Array
from tapeless.tracer.types import ShapedArray, aval_of


def ravel_pytree(pytree: Any) -> tuple[Array, "Unravel"]:
    """Join the elements of all arrays of a pytree in one vector of their common dtype.

    Returns: the vector [n], and a function that makes such a pytree of a vector [n]: shapes and dtypes are those given.
    Raises: TypeError if a leaf is no array; the function raises it for what is no vector of this length and dtype.
    """
    check_arrays("ravel_pytree: pytree{}", pytree)
    leaves, tree = trees.flatten(pytree)
    flat = tnp.concatenate([tnp.ravel(x) for x in leaves]) if leaves else tnp.zeros(0)
    return flat, Unravel(tree, tuple(map(aval_of, leaves)), flat.aval)


@trees.register_static
@dataclass(frozen=True, slots=True)
class Unravel:
    """The inverse of `ravel_pytree`: those for pytrees of one structure and of the same types are equal.

    It is a pytree node without leaves: compiled functions take it as any argument.
    """

    tree: trees.PyTreeDef
    avals: tuple[ShapedArray, ...]
    flat: ShapedArray

    def __call__(self, vector: Any) -> Any:
        """Make a pytree of a vector. Raises: TypeError for another length or dtype."""
        have, avals = aval_of(vector), self.avals
        if (have.shape, have.dtype) != (self.flat.shape, self.flat.dtype):
            advice = _advice(avals, self.flat, have)
            raise TypeError(f"the inverse of ravel_pytree takes {self.flat}, not {have}.{advice}")
        parts = tnp.split(vector, list(accumulate([aval.size for aval in avals]))[:-1])
        leaves = [part.reshape(aval.shape).astype(aval.dtype) for part, aval in zip(parts, avals)]
        return trees.unflatten(self.tree, leaves)


def _advice(avals: Sequence[ShapedArray], wanted: ShapedArray, have: ShapedArray) -> str:
    if have.shape != wanted.shape or not dtypes.is_inexact(have.dtype):
        return ""
    if have.dtype == np.float64 and any(aval.weak_type and aval.dtype == wanted.dtype for aval in avals):
        return (
            f"\n  Python numbers in the tree have the default width, {wanted.dtype}.\n"
            '  Begin the program with tl.config.update("default_bits", 64), or make the tree of arrays of float64.'
        )
    return f"\n  Convert the vector, x.astype({wanted.dtype}), or make the tree of arrays of {have.dtype}."
