"""Collectives: operations across the examples of a named axis.

All take one array. `axis_names` are the axes, `axis_size` is the number of examples that take part. `groups`, if not
None, says which of them take part together: tuples of positions along the one axis, of one length, each position once.
Gathering and scattering keep the rank, as the `tiled=True` of the public functions does. A `vmap` whose name is among
`axis_names` resolves them into operations on the mapped axis; none of them is left when a program is compiled.
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.kinds import ANY, NUMERIC, joint_type
from tapeless.tracer.types import ShapedArray

Names = tuple[Hashable, ...]
Groups = tuple[tuple[int, ...], ...] | None

# ---- reductions ----------------------------------------------------------------------------------------------


def psum(x: ArrayLike, axis_names: Names, groups: Groups = None) -> ArrayLike:
    """Sum all examples along the named axes; x itself if no axis is named. Raises: TypeError for booleans."""
    return psum_p.bind(x, axis_names=axis_names, groups=groups)[0] if axis_names else x


def pmax(x: ArrayLike, axis_names: Names, groups: Groups = None) -> ArrayLike:
    """Compute the maximum of all examples, elementwise; x itself if no axis is named."""
    return pmax_p.bind(x, axis_names=axis_names, groups=groups)[0] if axis_names else x


def pmin(x: ArrayLike, axis_names: Names, groups: Groups = None) -> ArrayLike:
    """Compute the minimum of all examples, elementwise; x itself if no axis is named."""
    return pmin_p.bind(x, axis_names=axis_names, groups=groups)[0] if axis_names else x


def _reduction(name: str, kinds: str) -> Primitive:
    def typing_rule(x: ShapedArray, *, axis_names: Names, groups: Groups) -> tuple[ShapedArray, ...]:
        return (joint_type(name, (x,), kinds),)

    return Primitive(name, typing_rule)


psum_p: Final = _reduction("psum", NUMERIC)
pmax_p: Final = _reduction("pmax", ANY)
pmin_p: Final = _reduction("pmin", ANY)

# ---- gathering and scattering --------------------------------------------------------------------------------


def all_gather(x: ArrayLike, axis_names: Names, axis_size: int, axis: int, groups: Groups = None) -> Array:
    """Concatenate all examples along one of their axes.

    Args:
      x: [..., n, ...].
    Returns: [..., axis_size * n, ...], the same for all examples, or for all of a group.
    """
    return all_gather_p.bind(x, axis_names=axis_names, axis_size=axis_size, axis=axis, groups=groups)[0]


def _all_gather_type(
    x: ShapedArray, *, axis_names: Names, axis_size: int, axis: int, groups: Groups
) -> tuple[ShapedArray, ...]:
    return (_resized(x, axis, x.shape[axis] * axis_size),)


all_gather_p: Final = Primitive("all_gather", _all_gather_type)


def psum_scatter(x: ArrayLike, axis_names: Names, axis_size: int, axis: int, groups: Groups = None) -> Array:
    """Sum all examples, and return to each its own part of the sum (reduce-scatter).

    Args:
      x: [..., axis_size * n, ...], numbers.
    Returns: [..., n, ...].
    Raises: ValueError if `axis_size` does not divide the axis, TypeError for booleans.
    """
    return psum_scatter_p.bind(x, axis_names=axis_names, axis_size=axis_size, axis=axis, groups=groups)[0]


def _psum_scatter_type(
    x: ShapedArray, *, axis_names: Names, axis_size: int, axis: int, groups: Groups
) -> tuple[ShapedArray, ...]:
    joint_type("psum_scatter", (x,), NUMERIC)
    return (_resized(x, axis, _part("psum_scatter", x, axis, axis_size)),)


psum_scatter_p: Final = Primitive("psum_scatter", _psum_scatter_type)


def all_to_all(
    x: ArrayLike, axis_names: Names, axis_size: int, split_axis: int, concat_axis: int, groups: Groups = None
) -> Array:
    """Exchange parts among all examples: each splits `split_axis` into as many parts as there are examples, and joins
    the parts that it receives along `concat_axis`.

    Raises: ValueError if `axis_size` does not divide `split_axis`.
    """
    return all_to_all_p.bind(
        x, axis_names=axis_names, axis_size=axis_size, split_axis=split_axis, concat_axis=concat_axis, groups=groups
    )[0]


def _all_to_all_type(
    x: ShapedArray, *, axis_names: Names, axis_size: int, split_axis: int, concat_axis: int, groups: Groups
) -> tuple[ShapedArray, ...]:
    cut = _resized(x, split_axis, _part("all_to_all", x, split_axis, axis_size))
    return (_resized(cut, concat_axis, cut.shape[concat_axis] * axis_size),)


all_to_all_p: Final = Primitive("all_to_all", _all_to_all_type)


def _resized(x: ShapedArray, axis: int, n: int) -> ShapedArray:
    return x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :]))


def _part(name: str, x: ShapedArray, axis: int, axis_size: int) -> int:
    """Divide the length of an axis by `axis_size`. Raises: ValueError if there is a remainder."""
    n, rest = divmod(x.shape[axis], axis_size)
    if rest:
        raise ValueError(f"{name}: axis {axis} of {x} is not divisible among {axis_size} examples.")
    return n


# ---- permutation and position --------------------------------------------------------------------------------


def ppermute(x: ArrayLike, axis_names: Names, axis_size: int, perm: tuple[tuple[int, int], ...]) -> Array:
    """Send values between examples by pairs (from, to) in `perm`; zeros where nothing arrives."""
    return ppermute_p.bind(x, axis_names=axis_names, axis_size=axis_size, perm=perm)[0]


def _ppermute_type(
    x: ShapedArray, *, axis_names: Names, axis_size: int, perm: tuple[tuple[int, int], ...]
) -> tuple[ShapedArray, ...]:
    return (x,)


ppermute_p: Final = Primitive("ppermute", _ppermute_type)


def axis_index(axis_names: Names, axis_size: int) -> Array:
    """Return the position of the example along the named axes: int32."""
    return axis_index_p.bind(axis_names=axis_names, axis_size=axis_size)[0]


def _axis_index_type(*, axis_names: Names, axis_size: int) -> tuple[ShapedArray, ...]:
    return (ShapedArray((), np.dtype(np.int32)),)


axis_index_p: Final = Primitive("axis_index", _axis_index_type)
