"""Dimension numbers (roles of axes) of gather, scatter and convolutions, and their constraints."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tapeless.tracer import dtypes
from tapeless.tracer.types import ShapedArray


class GatherDimensionNumbers(NamedTuple):
    """Dimension numbers of a gather: axes of operand, indices and result. Source: StableHLO spec, gather."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Dimension numbers of a scatter: axes of operand, indices and updates; fields correspond to those of the
    gather that reads the same windows. Source: StableHLO spec, scatter."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


DimensionNumbers = GatherDimensionNumbers | ScatterDimensionNumbers


def window_sizes(operand: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers) -> tuple[int, ...]:
    """Return the shape of the windows that a scatter writes, one size per axis of the operand."""
    sizes = iter([updates.shape[i] for i in d.update_window_dims])
    single = dict.fromkeys(d.inserted_window_dims, 1) | {i: min(1, operand.shape[i]) for i in d.operand_batching_dims}
    return tuple(single[i] if i in single else next(sizes) for i in range(operand.ndim))


def reading_again(
    params: Mapping[str, Any], operand: ShapedArray, updates: ShapedArray, fill_value: Any
) -> dict[str, Any]:
    """Return the params of the gather that reads the windows written by a scatter with these params."""
    numbers = params["dimension_numbers"]
    sizes = window_sizes(operand, updates, numbers)
    how = {"dimension_numbers": GatherDimensionNumbers(*numbers), "slice_sizes": sizes, "fill_value": fill_value}
    return {**params, **how}


def normalize_dimension_numbers(name: str, d: Any, kind: type[Any]) -> Any:
    """Convert every axis of dimension numbers to an int. Raises: TypeError for another class, or a non-integer axis."""
    if not isinstance(d, kind):
        raise TypeError(f"{name}: dimension_numbers must be {kind.__name__}(...), not {d!r}.")
    return type(d)(*(tuple(operator.index(i) for i in dims) for dims in d))


def list_fields(d: DimensionNumbers) -> str:
    """List the fields that are not empty, for a message."""
    return ", ".join(f"{name} {dims}" for name, dims in zip(d._fields, d) if dims)


def check_indices(name: str, indices: ShapedArray, given: str) -> None:
    """Check that `indices` are integers with an axis for the index vectors. Raises: TypeError."""
    if not dtypes.is_integer(indices.dtype) or not indices.ndim:
        raise TypeError(f"{name}: indices must be integers, with index vectors in the last axis: {given}.")


def windows_shape(indices: ShapedArray, d: DimensionNumbers, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of all windows of `sizes` at `indices`: window axes where `d` puts them, else batch axes."""
    window, dropped, _, batching, _ = d
    offsets = iter([n for i, n in enumerate(sizes) if i not in dropped and i not in batching])
    batch = iter(indices.shape[:-1])
    rank = indices.ndim - 1 + len(window)
    return tuple(next(offsets) if i in window else next(batch) for i in range(rank))


def _increasing(dims: tuple[int, ...], rank: int) -> bool:
    return all(a < b for a, b in pairwise(dims)) and _distinct(dims, rank)


def _distinct(dims: tuple[int, ...], rank: int) -> bool:
    return len(set(dims)) == len(dims) and all(0 <= i < rank for i in dims)


def _number_faults(x: ShapedArray, indices: ShapedArray, d: DimensionNumbers) -> Iterator[str]:
    """Yield the constraints that dimension numbers violate; a check may fail if one before it is violated."""
    window, dropped, index_map, batching, indices_batching = d
    n_window, n_dropped, n_map, n_batching, n_indices_batching = d._fields
    if x.ndim != len(window) + len(dropped) + len(batching):
        yield f"{n_window}, {n_dropped} and {n_batching} must together be as many as the operand has axes"
    if not _increasing(window, indices.ndim - 1 + len(window)):
        yield f"{n_window} must be increasing axes of the windows' array"
    for name, dims in ((n_dropped, dropped), (n_batching, batching)):
        if not _increasing(dims, x.ndim):
            yield f"{name} must be increasing axes of the operand"
    if not _distinct(dropped + batching, x.ndim):
        yield f"{n_dropped} and {n_batching} must not share an axis"
    if not _distinct(index_map + batching, x.ndim):
        yield f"{n_map} and {n_batching} must be distinct axes of the operand"
    if len(index_map) != indices.shape[-1]:
        yield f"{n_map} must name as many axes as the last axis of the indices is long"
    if not _distinct(indices_batching, indices.ndim - 1):
        yield f"{n_indices_batching} must be distinct axes of the indices other than the last"
    if [x.shape[i] for i in batching] != [indices.shape[i] for i in indices_batching]:
        yield f"{n_batching} and {n_indices_batching} must name axes of equal lengths"


def faults(x: ShapedArray, indices: ShapedArray, d: DimensionNumbers, sizes: tuple[int, ...]) -> Iterator[str]:
    """Yield the constraints that a gather of windows of `sizes` violates."""
    if len(sizes) != x.ndim or any(k > n for k, n in zip(sizes, x.shape)):
        yield "a window must have the axes of the operand and be no larger"
    yield from _number_faults(x, indices, d)
    if any(sizes[i] > 1 for i in (*d[1], *d[3])):
        yield f"a window must have size 1 along {d._fields[1]} and {d._fields[3]}"


def scatter_faults(
    x: ShapedArray, indices: ShapedArray, updates: ShapedArray, d: ScatterDimensionNumbers
) -> Iterator[str]:
    """Yield the constraints that a scatter of `updates` violates."""
    yield from _number_faults(x, indices, d)
    if updates.ndim != indices.ndim - 1 + len(d.update_window_dims):
        yield "updates must have the axes of the indices but the last, and update_window_dims"
    sizes = window_sizes(x, updates, d)
    if windows_shape(indices, d, sizes) != updates.shape:
        yield "updates and indices must agree in the axes that are not the window's"
    if any(k > n and i not in d.inserted_window_dims for i, (k, n) in enumerate(zip(sizes, x.shape))):
        yield "a window must be no larger than the operand"


# ---- convolutions --------------------------------------------------------------------------------------------


class ConvDimensionNumbers(NamedTuple):
    """The roles of axes: (batch, feature, space..) of lhs and out, (out feature, in feature, space..) of rhs."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any = None
) -> ConvDimensionNumbers:
    """Parse the dimension numbers of a convolution.

    Args:
      dimension_numbers: three strings such as ("NHWC", "HWIO", "NHWC"), of the letters N, C for lhs and out, O, I
        for rhs, and the same further letters, one per axis of space, in each; or None for NCHW.., OIHW.., NCHW...
    Raises: ValueError if ranks differ or are less than 2, or the strings are not of this form.
    """
    rank = len(lhs_shape)
    if rank != len(rhs_shape) or rank < 2:
        raise ValueError(
            f"convolution: shapes {tuple(lhs_shape)} and {tuple(rhs_shape)} must have one rank, at least 2."
        )
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    return _named_dimensions(tuple(map(tuple, dimension_numbers)), rank)


def _named_dimensions(specs: Any, rank: int) -> ConvDimensionNumbers:
    if len(specs) != 3 or any(len(spec) != rank or len(set(spec)) != rank for spec in specs):
        raise ValueError(
            f"convolution: dimension numbers {_joined(specs)} must be three words of {rank} distinct letters."
        )
    heads = ("NC", "OI", "NC")
    space = [a for a in specs[1] if a not in "OI"]  # the order of the axes of space is that of rhs
    for spec, head in zip(specs, heads):
        if set(spec) != {*head, *space}:
            raise ValueError(
                f"convolution: dimension numbers {_joined(specs)} must have N and C in the first and last, O and I in "
                "the second, and the same other letters in each."
            )
    return ConvDimensionNumbers(*[tuple(map(spec.index, [*head, *space])) for spec, head in zip(specs, heads)])


def _joined(specs: Any) -> tuple[str, ...]:
    return tuple("".join(map(str, spec)) for spec in specs)
