"""Products of matrices by groups of rows, of computed sizes: each group has a matrix of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.promotion import as_weak_as
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.operands import argsort, canonical_axis
from tapeless.tracer.primitives.shape import broadcast_in_dim, broadcasted_iota
from tapeless.tracer.types import ShapedArray, aval_of

Axes = tuple[int, ...]


@dataclass(frozen=True, init=False)
class RaggedDotDimensionNumbers:
    """The axes of a product of groups.

    Args:
      dot_dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      lhs_ragged_dimensions: the axis of lhs that groups divide, one.
      rhs_group_dimensions: the axis of rhs that tells groups apart: one if rows are divided, else none.
    """

    dot_dimension_numbers: tuple[tuple[Axes, Axes], tuple[Axes, Axes]]
    lhs_ragged_dimensions: Axes
    rhs_group_dimensions: Axes

    def __init__(
        self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]
    ) -> None:
        (cx, cy), (bx, by) = dot_dimension_numbers
        dims = (tuple(cx), tuple(cy)), (tuple(bx), tuple(by))
        object.__setattr__(self, "dot_dimension_numbers", dims)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(rhs_group_dimensions))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Array:
    """Multiply groups of rows by a matrix each.

    Args:
      lhs: [m, k]; the first group_sizes[0] rows are the first group, and so on.
      rhs: [g, k, n], dtype of lhs.
      group_sizes: integers [g].
      precision, preferred_element_type: as for `dot_general`.
      group_offset, out_sharding: None.
    Returns: [m, n]; rows beyond the last group are 0.
    Raises: as `ragged_dot_general`.
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Array:
    """Contract arrays by groups of the indices of one axis of lhs, the ragged one.

    Each group is multiplied with all of rhs, and what is not its own is dropped: work is as for groups of full size.

    Args:
      lhs: [b.., m.., k..] in any axis order.
      rhs: [b.., k.., n..], dtype of lhs; with an axis of groups besides if the ragged axis is among m...
      group_sizes: integers [g], or [b.., x.., g], x.. being the axes of the kind of the ragged one before it.
      ragged_dot_dimension_numbers: which axes these are.
      precision, preferred_element_type: as for `dot_general`.
      group_offset, out_sharding: None.
    Returns: [b.., m.., n..], 0 beyond the last group; if the ragged axis is contracted, [g, b.., m.., n..], a sum for
      each group. If it is a batch axis, groups change nothing.
    Raises: TypeError or ValueError if axes or shapes do not fit; NotImplementedError for an offset or a sharding.
    """
    if group_offset is not None or out_sharding is not None:
        raise NotImplementedError("ragged_dot_general: group_offset and out_sharding are not supported, only None.")
    numbers, x, sizes = ragged_dot_dimension_numbers, aval_of(lhs), aval_of(group_sizes)
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"ragged_dot_general: one ragged axis of lhs, not {numbers.lhs_ragged_dimensions}.")
    ragged = canonical_axis(numbers.lhs_ragged_dimensions[0], x.ndim)
    (contracted, _), (batch, _) = dims = numbers.dot_dimension_numbers
    free = tuple(i for i in range(x.ndim) if i not in contracted + batch)
    alike = next(axes for axes in (free, contracted, batch) if ragged in axes)
    outer = alike[: alike.index(ragged)]
    prefix = outer if alike == batch else batch + outer
    _check(numbers, x, aval_of(rhs), sizes, tuple(x.shape[i] for i in prefix), alike is free)
    how = {"precision": precision, "preferred_element_type": preferred_element_type}
    if alike == batch:
        return dot_general(lhs, rhs, dims, **how)
    if alike == contracted:
        return _by_contracted(lhs, rhs, group_sizes, dims, (prefix, ragged), how)
    found = dot_general(lhs, rhs, dims, **how)
    rest = [j for j in range(aval_of(rhs).ndim) if j not in dims[0][1] + dims[1][1]]
    group = len(batch) + len(free) + rest.index(numbers.rhs_group_dimensions[0])
    axes = tuple(range(len(batch))) + tuple(len(batch) + free.index(i) for i in (*outer, ragged))
    own = _membership(group_sizes, found.shape, axes[:-1], axes[-1], group)
    return as_weak_as(tnp.sum(tnp.where(own, found, 0), group, dtype=found.dtype), found)


def _by_contracted(
    lhs: ArrayLike, rhs: ArrayLike, sizes: ArrayLike, dims: Any, where: tuple[Axes, int], how: dict[str, Any]
) -> Array:
    """Sum for each group, which is a batch axis of both operands, each being 0 where the other group's indices are."""
    (cx, cy), (bx, by) = dims
    partner = {**dict(zip(bx, by)), **dict(zip(cx, cy))}
    prefix, ragged = where
    x = _grouped(lhs, sizes, prefix, ragged)
    y = _grouped(rhs, sizes, tuple(partner[i] for i in prefix), partner[ragged])
    axes = [tuple(i + 1 for i in axes) for axes in (cx, cy, bx, by)]
    return dot_general(x, y, ((axes[0], axes[1]), ((0, *axes[2]), (0, *axes[3]))), **how)


def _grouped(x: ArrayLike, sizes: ArrayLike, prefix: Axes, ragged: int) -> Array:
    """Repeat x for each group, along a new first axis, with 0 for rows of other groups."""
    aval = aval_of(x)
    shape = (aval_of(sizes).shape[-1], *aval.shape)
    own = _membership(sizes, shape, tuple(i + 1 for i in prefix), ragged + 1, 0)
    return tnp.where(own, broadcast_in_dim(x, shape, range(1, len(shape))), 0)


def _membership(sizes: ArrayLike, shape: Axes, prefix: Axes, ragged: int, group: int) -> Array:
    """Tell whether an index of axis `ragged` is in the group of axis `group`, in an array of this shape."""
    along = (group,) if aval_of(sizes).ndim == 1 else (*prefix, group)
    order = argsort(along)
    given = tnp.asarray(sizes)
    ends = tnp.cumsum(given, -1)
    first, last = (
        broadcast_in_dim(tnp.transpose(y, order), shape, [along[i] for i in order]) for y in (ends - given, ends)
    )
    place = broadcasted_iota(ends.dtype, shape, ragged)
    return (first <= place) & (place < last)


def _check(
    numbers: RaggedDotDimensionNumbers,
    x: ShapedArray,
    y: ShapedArray,
    sizes: ShapedArray,
    prefix: Axes,
    rows: bool,
) -> None:
    given = f"{x}, {y} and group sizes {sizes}"
    if not dtypes.is_integer(sizes.dtype) or sizes.ndim < 1:
        raise TypeError(f"ragged_dot_general: group sizes must be integers [g]: {given}.")
    if sizes.ndim > 1 and sizes.shape[:-1] != prefix:
        raise TypeError(f"ragged_dot_general: group sizes must be [g], or {(*prefix, 'g')}: {given}.")
    groups = numbers.rhs_group_dimensions
    if len(groups) != rows:
        raise TypeError(f"ragged_dot_general: rhs has {int(rows)} axes of groups here, not {groups}: {given}.")
    if rows and y.shape[groups[0]] != sizes.shape[-1]:
        raise TypeError(f"ragged_dot_general: axis {groups[0]} of rhs must have {sizes.shape[-1]} elements: {given}.")
