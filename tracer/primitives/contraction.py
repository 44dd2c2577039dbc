"""Contractions: generalized matrix products (dot_general) and convolutions.

Both are linear in each operand, take a precision, and may accumulate in another dtype than that of the operands.
"""

import importlib
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice import widths
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import not_supported
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers, conv_dimension_numbers
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import canonical_axis, exact_integer, ndim, shape_of, without
from tapeless.tracer.primitives.shape import rev, transpose
from tapeless.tracer.primitives.windows import Padding, count, dilate_size, explicit_padding, per_axis
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


class Precision(Enum):
    """Precision of products of float32 on a device: as fast as possible, in between, or full float32."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    # Enum's hash is written in Python, and every look-up of a product's type calls it.
    __hash__: Callable[[Any], int] = object.__hash__

    def __str__(self) -> str:
        return self.name


Precisions = tuple[Any, Any]  # of Precision, or one DotAlgorithmPreset twice
_PRECISIONS = {
    None: Precision.DEFAULT, "default": Precision.DEFAULT, "high": Precision.HIGH, "highest": Precision.HIGHEST,
    "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT, "tensorfloat32": Precision.HIGH,
    "float32": Precision.HIGHEST,
}  # fmt: skip


def canonical_precision(precision: Any) -> Precisions:
    """Return one precision for each operand, from a Precision, its name, None, a pair of these, or an algorithm.

    Raises: ValueError for anything else.
    """
    if precision is None:
        precision = config.default_matmul_precision
    preset = _algorithm(precision)
    if preset is not None:
        one = Precision.DEFAULT if preset.name == "DEFAULT" else preset
        return one, one
    pair = tuple(precision) if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(pair) != 2:
        raise ValueError(f"precision is one for both operands or a pair, not {precision!r}.")
    return _one_precision(pair[0]), _one_precision(pair[1])


def _algorithm(precision: Any) -> Any:
    """Return the DotAlgorithmPreset of a preset, its name, or a DotAlgorithm; None for other precisions."""
    if isinstance(precision, str) and precision.isupper():
        algorithms = importlib.import_module("tapeless.tracer.primitives.dot_algorithms")  # which few programs need
        precision = getattr(algorithms.DotAlgorithmPreset, precision, precision)
    return getattr(precision, "preset", None)


def _one_precision(precision: Any) -> Precision:
    if isinstance(precision, Precision):
        return precision
    if precision is None:
        precision = config.default_matmul_precision
    try:
        return _PRECISIONS[precision]
    except (KeyError, TypeError):
        names = ", ".join(repr(name) for name in _PRECISIONS if name)
        raise ValueError(f"precision {precision!r} is none of Precision's members, None, {names}.") from None


def _of_convolution(precision: Any) -> Precisions:
    """Return the precisions of a convolution, which has no algorithms. Raises: ValueError if one is given."""
    found = canonical_precision(precision)
    if not isinstance(found[0], Precision):
        if precision is not None:
            raise ValueError(f"conv_general_dilated: {precision} is an algorithm of dot_general, not of convolutions.")
        return Precision.DEFAULT, Precision.DEFAULT
    return found


# ---- dot -----------------------------------------------------------------------------------------------------


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Contract some axes of two arrays, batch others.

    Args:
      lhs: [b.., m.., k..] in any axis order.
      rhs: [b.., n.., k..], dtype of lhs, or one of two that the other is promoted to: bfloat16 with float32; any two
        that `preferred_element_type` holds: float8_e4m3fn with float8_e5m2 for float32.
      dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      precision: Precision or its name, or a pair of these; or DotAlgorithmPreset, which counts for floating point; if
        None, `config.default_matmul_precision`.
      preferred_element_type: dtype of the sum and the result; that of the operands if None.
    Returns: [b.., m.., n..].
    Raises: TypeError if dtypes, contracted sizes or batch sizes differ; ValueError if contracted or batch axes are not
      as many, are out of range or named twice. Both operands are named.
    Source: StableHLO spec, dot_general, C9 and C10.
    """
    if out_sharding is not None:
        raise not_supported("dot_general", "out_sharding", out_sharding)
    lhs, rhs = _of_one_dtype(lhs, rhs, preferred_element_type)
    dims = _canonical_dims("dot_general", lhs, rhs, dimension_numbers)
    return _dot_general(lhs, rhs, dims, precision, preferred_element_type)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Contract the last axis of `lhs` with the first of `rhs`: vectors and matrices.

    Args:
      lhs: [k] or [m, k].
      rhs: [k] or [k, n], of a dtype as for `dot_general`.
      dimension_numbers: if given, arrays of any rank as in `dot_general`.
      others: as for `dot_general`.
    Returns: [], [m], [n] or [m, n].
    Raises: TypeError if there are more axes or none; else as `dot_general`.
    """
    if out_sharding is not None:
        raise not_supported("dot", "out_sharding", out_sharding)
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    x, y = aval_of(lhs), aval_of(rhs)
    if not 1 <= x.ndim <= 2 or not 1 <= y.ndim <= 2:
        raise TypeError(f"dot: operands must be vectors or matrices, not {x} and {y}. Use dot_general.")
    dims = (((x.ndim - 1,), (0,)), ((), ()))
    lhs, rhs = _of_one_dtype(lhs, rhs, preferred_element_type)
    check_operands("dot", lhs, rhs, dims)
    return _dot_general(lhs, rhs, dims, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Array:
    """Multiply matrices, for every index of the leading axes.

    Args:
      lhs: [b.., m, k].
      rhs: [b.., k, n], of a dtype as for `dot_general`.
      precision: as for `dot_general`.
    Returns: [b.., m, n].
    Raises: TypeError if ranks, dtypes or sizes do not fit; both operands are named.
    """
    x, y = aval_of(lhs), aval_of(rhs)
    if x.ndim != y.ndim or x.ndim < 2:
        raise TypeError(f"batch_matmul: operands must have one rank, at least 2, not {x} and {y}.")
    batch = tuple(range(x.ndim - 2))
    dims = (((x.ndim - 1,), (x.ndim - 2,)), (batch, batch))
    lhs, rhs = _of_one_dtype(lhs, rhs)
    check_operands("batch_matmul", lhs, rhs, dims)
    return _dot_general(lhs, rhs, dims, precision, None)


def full_matmul(lhs: ArrayLike, rhs: ArrayLike) -> Array:
    """Multiply matrices as `batch_matmul` does, in full precision on every device.

    For algorithms that go on with the product, such as factorizations: the matrix units of GPUs and TPUs keep 8 to 11
    bits of a float32's 24 by default.
    """
    return batch_matmul(lhs, rhs, Precision.HIGHEST)


def _of_one_dtype(lhs: ArrayLike, rhs: ArrayLike, preferred: Any = None) -> tuple[ArrayLike, ArrayLike]:
    """Convert one operand to the dtype of the other if that holds both (`dtypes.holding_both`); else keep both.

    If neither does, both are converted to `preferred`, the dtype of the result, if that has all their numbers.
    """
    x, y = aval_of(lhs).dtype, aval_of(rhs).dtype
    common = dtypes.holding_both(x, y)
    if x != y and common is None and preferred is not None:
        wide = dtypes.canonical(preferred)
        if np.can_cast(x, wide) and np.can_cast(y, wide):
            return convert_element_type(lhs, wide), convert_element_type(rhs, wide)
    if x == y or common is None:
        return lhs, rhs
    return (convert_element_type(lhs, common), rhs) if common == y else (lhs, convert_element_type(rhs, common))


def check_operands(name: str, lhs: ArrayLike, rhs: ArrayLike, dims: Dims) -> None:
    """Check the dtypes and sizes of two operands of a contraction. Raises: TypeError in the name of `name`.

    For callers of `dot_general` that users know by another name, such as matmul.
    """
    try:
        check_contraction(name, aval_of(lhs), aval_of(rhs), dims)
    except TypeError as error:
        widths.explain(error, (lhs, rhs))
        raise


def check_contraction(name: str, x: ShapedArray, y: ShapedArray, dims: Dims) -> None:
    """Check that the types of two operands of a contraction agree in dtype and sizes. Raises: TypeError."""
    (cx, cy), (bx, by) = dims
    for what, axes_x, axes_y in (("contracted", cx, cy), ("batch", bx, by)):
        for i, j in zip(axes_x, axes_y):
            if x.shape[i] != y.shape[j]:
                raise TypeError(
                    f"{name}: {what} axes differ in size: axis {i} of {x} has {x.shape[i]}, "
                    f"axis {j} of {y} has {y.shape[j]}."
                )
    if x.dtype != y.dtype:
        raise widths.mismatch(f"{name}: operands differ in dtype: {x} and {y}. Convert with astype.", x, y)


def _canonical_dims(name: str, lhs: Any, rhs: Any, dimension_numbers: Any) -> Dims:
    try:
        (cx, cy), (bx, by) = [(tuple(x), tuple(y)) for x, y in dimension_numbers]
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: dimension_numbers must be ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)), not "
            f"{dimension_numbers!r}.\n  Those of a product of two matrices are (((1,), (0,)), ((), ()))."
        ) from None
    dims = (_axes(cx, ndim(lhs)), _axes(cy, ndim(rhs))), (_axes(bx, ndim(lhs)), _axes(by, ndim(rhs)))
    for what, (axes_x, axes_y) in zip(("contracted", "batch"), dims):
        if len(axes_x) != len(axes_y):
            raise ValueError(
                f"{name}: {what} axes {axes_x} of {aval_of(lhs)} and {axes_y} of {aval_of(rhs)} are not as many."
            )
    for x, axes in ((lhs, dims[0][0] + dims[1][0]), (rhs, dims[0][1] + dims[1][1])):
        if len(set(axes)) < len(axes):
            raise ValueError(f"{name}: {dims} names an axis of {aval_of(x)} twice.")
    return dims


def _axes(axes: Any, rank: int) -> tuple[int, ...]:
    return tuple([canonical_axis(a, rank) for a in axes])


def _dot_general(lhs: Any, rhs: Any, dims: Dims, precision: Any, preferred_element_type: Any) -> Array:
    dtype = None if preferred_element_type is None else dtypes.canonical(preferred_element_type)
    both = canonical_precision(precision)
    return dot_general_p.bind(lhs, rhs, dimension_numbers=dims, precision=both, preferred_element_type=dtype)[0]


def _dot_general_type(
    x: ShapedArray,
    y: ShapedArray,
    *,
    dimension_numbers: Dims,
    precision: Precisions,
    preferred_element_type: np.dtype[Any] | None,
) -> tuple[ShapedArray, ...]:
    check_contraction("dot_general", x, y, dimension_numbers)
    (cx, cy), (bx, by) = dimension_numbers
    shape = tuple(x.shape[i] for i in bx) + without(x.shape, cx + bx) + without(y.shape, cy + by)
    return (_product(x, y, shape, preferred_element_type),)


def _product(x: ShapedArray, y: ShapedArray, shape: tuple[int, ...], preferred: Any) -> ShapedArray:
    """Return the type of a sum of products."""
    return ShapedArray(shape, preferred or x.dtype, x.weak_type and y.weak_type and preferred is None)


dot_general_p: Final = Primitive("dot_general", _dot_general_type)


# ---- convolution ---------------------------------------------------------------------------------------------


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Convolve over any number of spatial axes (a correlation: the kernel is not reversed).

    Args:
      lhs: batch n, features c, and space, in the order of dimension_numbers.
      rhs: the kernel: features o, features c / feature_group_count, and space; dtype of lhs.
      window_strides: by how much the kernel moves, per axis of space.
      padding: "VALID", "SAME", "SAME_LOWER", or (before, after) per axis of space, which may be negative.
      lhs_dilation, rhs_dilation: distance of their elements from each other, per axis of space; 1 if None.
      dimension_numbers: see `conv_dimension_numbers`.
      feature_group_count: into how many groups c and o are split, each contracted by itself.
      batch_group_count: into how many groups n and o are split, each contracted by itself.
      precision, preferred_element_type: as for `dot_general`.
    Returns: batch n / batch_group_count, features o, and space.
    Raises: TypeError if dtypes differ; ValueError if sizes do not fit; both operands are named.
    Source: StableHLO spec, convolution.
    """
    if out_sharding is not None:
        raise not_supported("conv_general_dilated", "out_sharding", out_sharding)
    name = "conv_general_dilated"
    numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    space, kernel = _space(lhs, numbers.lhs_spec), _space(rhs, numbers.rhs_spec)
    _check_strides(name, window_strides, lhs, len(space))
    strides = per_axis(name, "window_strides", window_strides, len(space))
    ld = per_axis(name, "lhs_dilation", lhs_dilation, len(space))
    rd = per_axis(name, "rhs_dilation", rhs_dilation, len(space))
    check_padding(name, padding, ld)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=explicit_padding(
            name, padding, [*map(dilate_size, space, ld)], [*map(dilate_size, kernel, rd)], strides
        ),
        lhs_dilation=ld,
        rhs_dilation=rd,
        dimension_numbers=numbers,
        feature_group_count=exact_integer(feature_group_count, "feature_group_count"),
        batch_group_count=exact_integer(batch_group_count, "batch_group_count"),
        precision=_of_convolution(precision),
        preferred_element_type=None if preferred_element_type is None else dtypes.canonical(preferred_element_type),
    )[0]


def _check_strides(name: str, strides: Sequence[int] | None, lhs: Any, n: int) -> None:
    if isinstance(strides, Sequence) and len(strides) != n:
        raise ValueError(
            f"{find_called(name)}: window_strides {tuple(strides)} are {len(strides)}, but lhs {aval_of(lhs)} has {n} "
            "axes of space, which are those besides batch and features."
        )


def check_padding(name: str, padding: Any, lhs_dilation: tuple[int, ...]) -> None:
    """Raises: ValueError for the padding "SAME" of a dilated array, which is not defined."""
    if isinstance(padding, str) and padding.upper() != "VALID" and max(lhs_dilation, default=1) > 1:
        raise ValueError(
            f"{name}: padding {padding!r} is not defined if lhs is dilated by {lhs_dilation}: give pairs of integers."
        )


def _space(x: Any, spec: tuple[int, ...]) -> list[int]:
    shape = shape_of(x)
    return [shape[i] for i in spec[2:]]


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve lhs [n, c, ..] with rhs [o, c, ..]: see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve lhs [n, c, ..] with rhs [o, c, ..], dilated and padded: see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[Sequence[int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Apply the transpose of a strided convolution, which enlarges its operand by `strides` (not an inverse).

    Args:
      padding: "SAME" or "VALID" is the padding of the convolution to transpose; pairs are that of the convolution
        computed here, or also of the one to transpose if `use_consistent_padding`.
      dimension_numbers: as for `conv_general_dilated`; channels last if None: NHWC, HWIO, NHWC for two axes of space.
      transpose_kernel: whether rhs is the kernel of that convolution; it is reversed here, its features exchanged.
      others: as for `conv_general_dilated`.
    Source: Dumoulin & Visin 2016, "A guide to convolution arithmetic", section 4.
    """
    if dimension_numbers is None:
        dimension_numbers = _channels_last(ndim(lhs))
    numbers = conv_dimension_numbers(shape_of(lhs), shape_of(rhs), dimension_numbers)
    kernel = _space(rhs, numbers.rhs_spec)
    wide = map(dilate_size, kernel, per_axis("conv_transpose", "rhs_dilation", rhs_dilation, len(kernel)))
    if isinstance(padding, str):
        padding = [transposed_padding(k, s, padding) for k, s in zip(wide, strides)]
    elif use_consistent_padding:
        padding = [(k - 1 - before, k - 1 - after) for k, (before, after) in zip(wide, padding, strict=True)]
    if transpose_kernel:
        rhs = transpose(rev(rhs, numbers.rhs_spec[2:]), _exchange(numbers.rhs_spec))
    ones = (1,) * len(kernel)
    return conv_general_dilated(
        lhs, rhs, ones, padding, strides, rhs_dilation, numbers,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _channels_last(rank: int) -> ConvDimensionNumbers:
    image = (0, rank - 1, *range(1, rank - 1))
    return ConvDimensionNumbers(image, (rank - 1, rank - 2, *range(rank - 2)), image)


def _exchange(spec: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that exchanges the first two axes in `spec`."""
    swap = {spec[0]: spec[1], spec[1]: spec[0]}
    return tuple(swap.get(i, i) for i in range(len(spec)))


def transposed_padding(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """Compute the padding that makes a result of length n * stride for SAME, + max(kernel - stride, 0) for VALID."""
    kind = padding.upper()
    if kind not in ("SAME", "VALID"):
        raise ValueError(f"conv_transpose: padding is 'SAME', 'VALID' or pairs of integers, not {padding!r}.")
    total = kernel + stride - 2 + (max(kernel - stride, 0) if kind == "VALID" else 0)
    before = kernel - 1 if kind == "VALID" or stride > kernel - 1 else -(-total // 2)
    return before, total - before


def _conv_general_dilated_type(
    x: ShapedArray,
    y: ShapedArray,
    *,
    window_strides: tuple[int, ...],
    padding: Padding,
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Precisions,
    preferred_element_type: np.dtype[Any] | None,
) -> tuple[ShapedArray, ...]:
    if x.dtype != y.dtype:
        raise widths.mismatch(
            f"conv_general_dilated: operands differ in dtype: {x} and {y}. Convert with astype.", x, y
        )
    _check_groups(x, y, dimension_numbers, feature_group_count, batch_group_count)
    lhs, rhs, out = dimension_numbers
    space, kernel = [x.shape[i] for i in lhs[2:]], [y.shape[i] for i in rhs[2:]]
    sizes = map(count, space, kernel, window_strides, padding, lhs_dilation, rhs_dilation)
    by_meaning = [x.shape[lhs[0]] // batch_group_count, y.shape[rhs[0]], *sizes]
    shape = tuple(n for _, n in sorted(zip(out, by_meaning)))
    return (_product(x, y, shape, preferred_element_type),)


def _check_groups(x: ShapedArray, y: ShapedArray, numbers: ConvDimensionNumbers, features: int, batches: int) -> None:
    (n, c, *_), (o, i, *_), _ = numbers
    if min(features, batches) < 1 or features > 1 < batches:
        raise ValueError(
            f"conv_general_dilated: feature_group_count {features} and batch_group_count {batches} must be positive, "
            f"one of them 1, for lhs {x} and rhs {y}."
        )
    if x.shape[c] != y.shape[i] * features:
        raise ValueError(
            f"conv_general_dilated: features differ: axis {c} of lhs {x} has {x.shape[c]}, axis {i} of rhs {y} has "
            f"{y.shape[i]}, for each of {features} groups."
        )
    if y.shape[o] % (features * batches) or x.shape[n] % batches:
        raise ValueError(
            f"conv_general_dilated: axis {o} of rhs {y} must be a multiple of {features * batches} groups, "
            f"and axis {n} of lhs {x} of {batches}."
        )


conv_general_dilated_p: Final = Primitive("conv_general_dilated", _conv_general_dilated_type)
