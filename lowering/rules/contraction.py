"""Lowering of contractions: `dot_general` and `convolution` of StableHLO, one for one."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tapeless.lowering import emit, hlo
from tapeless.lowering.emit import Rule, in_unsigned, write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.reduction import SMALL, operation, padding_attribute, reduce
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import bits as b
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers
from tapeless.tracer.types import ShapedArray


def _dot_general(f: Function, outs: Any, x: Value, y: Value, *, dimension_numbers: c.Dims, **params: Any) -> Any:
    terms = math.prod([x.aval.shape[axis] for axis in dimension_numbers[0][0]])
    return _sums(_dot, terms)(f, outs, x, y, dimension_numbers=dimension_numbers, **params)


def _sums(rule: Rule, terms: int) -> Rule:
    """Return the rule for sums of so many products; one product by itself may be a square."""
    return in_unsigned(rule) if terms == 1 else rule


def _dot(
    f: Function,
    outs: Any,
    x: Value,
    y: Value,
    *,
    dimension_numbers: c.Dims,
    precision: c.Precisions,
    preferred_element_type: Any,
) -> Any:
    if not isinstance(precision[0], c.Precision) and dtypes.is_float(x.aval.dtype):
        return (_by_algorithm(f, outs[0], x, y, dimension_numbers, precision[0]),)
    if f.platform == "cpu" and _is_sum(x.aval, y.aval, outs[0], dimension_numbers):
        return (_sum_of_products(f, x, y, sorted(dimension_numbers[0][0]), outs[0]),)
    if f.platform == "cpu" and _same_floats(x.aval, y.aval, outs[0]):
        for matrices, vectors, dims in ((y, x, _swapped(dimension_numbers)), (x, y, dimension_numbers)):
            if _are_small_by_vectors(matrices.aval, vectors.aval, dims):
                return (_by_vectors(f, matrices, vectors, dims, outs[0]),)
    x, y, dimension_numbers = _with_one_contracted_axis(f, x, y, dimension_numbers)
    return (_in_bytes(f, "dot_general", x, y, outs[0], _dot_attributes(dimension_numbers, precision)),)


def _with_one_contracted_axis(f: Function, x: Value, y: Value, dims: c.Dims) -> tuple[Value, Value, c.Dims]:
    """Make contracted axes that are neighbours in both operands, in the same order, one axis.

    XLA transposes the operands of a contraction over more axes, and keeps these copies from where operands are
    computed; of one axis it tells the routine for products of matrices instead.
    """
    (cx, cy), (bx, by) = dims
    if len(cx) < 2 or any(tuple(range(c[0], c[0] + len(c))) != tuple(c) for c in (cx, cy)):
        return x, y, dims
    joined = [_joined(f, v, c[0], len(c)) for v, c in ((x, cx), (y, cy))]
    moved = [tuple([axis - (len(c) - 1) * (axis > c[0]) for axis in b]) for b, c in ((bx, cx), (by, cy))]
    return joined[0], joined[1], (((cx[0],), (cy[0],)), (moved[0], moved[1]))


def _joined(f: Function, x: Value, first: int, number: int) -> Value:
    """Reshape so many axes to one."""
    shape = x.aval.shape
    together = (*shape[:first], math.prod(shape[first : first + number]), *shape[first + number :])
    return f.op("reshape", [x], x.aval.update(shape=together))


def _in_bytes(f: Function, name: str, x: Value, y: Value, out: ShapedArray, attributes: str) -> Value:
    """Emit a contraction, of operands of at least 8 bits: XLA does not compile those of fewer to a wider result."""
    x, y, wide = _of_bytes(f, x), _of_bytes(f, y), out.update(dtype=_byte_dtype(out.dtype))
    return f.convert(f.op(name, [x, y], wide, attributes), out.dtype)


def _is_sum(x: ShapedArray, y: ShapedArray, out: ShapedArray, dimension_numbers: c.Dims) -> bool:
    """Tell whether a contraction is a sum of an elementwise product of many elements, as of two vectors.

    XLA on the CPU makes one reduction of it, which adds one product after the other. If it is small, so does ours, but
    for two vectors.
    """
    (cx, cy), (bx, by) = dimension_numbers
    many = x.size > (SMALL if bx or x.ndim > 1 else _FEW)
    alike = many and x.shape == y.shape and x.dtype == y.dtype == out.dtype and dtypes.bits_of(x.dtype) >= 32
    return alike and cx == cy and bx == by == tuple(sorted(bx)) and len(cx) + len(bx) == len(x.shape)


_FEW = 32  # elements of two vectors, whose products are added up in no less time if they are fewer


def _sum_of_products(f: Function, x: Value, y: Value, axes: Sequence[int], out: ShapedArray) -> Value:
    """Emit the sum of an elementwise product. Small vectors become rows of a matrix, whose sum is vectorised.

    If the vectors are reshaped matrices, XLA would reduce the axes of these, by loops that are too short to be
    vectorised: of 25 by 25 elements in 1 us, of a row of 625 in 0.4. The axis of one element keeps it from doing so.
    """
    if x.aval.size > SMALL:
        return reduce(f, f.op("multiply", [x, y], x.aval), operation("add"), 0, axes, out)
    row = x.aval.update(shape=(1, x.aval.size))
    products = f.op("multiply", [f.op("reshape", [x], row), f.op("reshape", [y], row)], row)
    return f.op("reshape", [reduce(f, products, operation("add"), 0, [1], out.update(shape=(1,)))], out)


# ---- a small matrix and a vector for each index of a batch
#
# XLA on the CPU calls a routine for each matrix, or in a small loop, which is one kernel, multiplies in loops that are
# not vectorised: two to four times as slow as a sum of products, which one loop over the whole batch computes. So it is
# for matrices of up to some 16 by 16; larger ones take the same time either way, and so do products of two matrices.

_SMALL_MATRIX = 256  # elements


def _same_floats(x: ShapedArray, y: ShapedArray, out: ShapedArray) -> bool:
    return x.dtype == y.dtype == out.dtype and dtypes.is_inexact(x.dtype) and dtypes.bits_of(x.dtype) >= 32


def _swapped(dimension_numbers: c.Dims) -> c.Dims:
    (cx, cy), (bx, by) = dimension_numbers
    return (cy, cx), (by, bx)


def _are_small_by_vectors(matrices: ShapedArray, vectors: ShapedArray, dimension_numbers: c.Dims) -> bool:
    """Tell whether batches of small matrices and of vectors are contracted, to axes in the order that matrices have."""
    (over, _), (batch, _) = dimension_numbers
    count = math.prod([matrices.shape[axis] for axis in batch])
    terms = math.prod([matrices.shape[axis] for axis in over])
    kept = [axis for axis in range(matrices.ndim) if axis not in over]
    return (
        count > 1
        and terms > 1
        and vectors.size == count * terms
        and matrices.size <= count * _SMALL_MATRIX
        and kept[: len(batch)] == list(batch)
    )


def _by_vectors(f: Function, matrices: Value, vectors: Value, dimension_numbers: c.Dims, out: ShapedArray) -> Value:
    """Emit the products of matrices with vectors as a sum of elementwise products."""
    (over, over_vectors), (batch, batch_vectors) = dimension_numbers
    goes_to = dict(zip((*over, *batch), (*over_vectors, *batch_vectors), strict=True))
    own = [axis for axis in range(vectors.aval.ndim) if axis not in goes_to.values()]  # of one element each
    order = [*own, *[goes_to[axis] for axis in sorted(goes_to)]]
    spread = f.broadcast(_arranged(f, vectors, order, len(own)), matrices.aval.shape, sorted(goes_to))
    product = f.op("multiply", [matrices, spread], matrices.aval)
    kept = [n for axis, n in enumerate(matrices.aval.shape) if axis not in over]
    total = reduce(f, product, operation("add"), 0, sorted(over), out.update(shape=tuple(kept)))
    return f.op("reshape", [total], out)


def _arranged(f: Function, x: Value, order: Sequence[int], left_out: int) -> Value:
    """Transpose the axes of x to this order, and leave out the first ones, of one element each."""
    shape = tuple([x.aval.shape[axis] for axis in order])
    if list(order) != sorted(order):
        x = f.op("transpose", [x], x.aval.update(shape=shape), f"permutation = {hlo.array(order)}")
    return f.op("reshape", [x], x.aval.update(shape=shape[left_out:])) if left_out else x


def _of_bytes(f: Function, x: Value) -> Value:
    return f.convert(x, _byte_dtype(x.aval.dtype))


def _byte_dtype(dtype: Any) -> Any:
    """Return the dtype itself, but for 4 and 2 bits one of 8 bits, of floating point one of 32."""
    if dtypes.is_bool(dtype) or dtypes.bits_of(dtype) >= 8:
        return dtype
    return np.dtype({"f": np.float32, "i": np.int8, "u": np.uint8}[dtypes.kind(dtype)])


def _by_algorithm(f: Function, out: ShapedArray, x: Value, y: Value, dims: c.Dims, preset: Any) -> Value:
    """Emit a contraction by a preset algorithm: convert operands to its types, multiply, and convert the result.

    Raises: NotImplementedError for a preset that the CPU does not have.
    """
    if f.platform == "cpu" and preset.name not in _ON_CPU:
        given = f"{x.aval} and {y.aval}"
        raise NotImplementedError(f"dot_general: CPU has the precisions {', '.join(_ON_CPU)}, not {preset}: {given}.")
    x, y = (f.convert(v, preset.operand_dtype(v.aval.dtype)) for v in (x, y))
    (*types, total), *numbers = preset.spec
    sides = [_ELEMENT_TYPES.get(t) or hlo.element(v.aval.dtype) for t, v in zip(types, (x, y), strict=True)]
    fields = [f"{side}_precision_type = {t}" for side, t in zip(("lhs", "rhs"), sides, strict=True)]
    fields.append(f"accumulation_type = {_ELEMENT_TYPES.get(total, 'f32')}")
    fields += [f"{name} = {str(n).lower()}" for name, n in zip(_NUMBERS, numbers, strict=True)]
    algorithm = f"algorithm = #stablehlo.dot_algorithm<{', '.join(fields)}>"
    total = out.update(dtype=preset.sum_dtype(x.aval.dtype, y.aval.dtype, out.dtype))
    return f.convert(f.op("dot_general", [x, y], total, f"{_dot_attributes(dims, _DEFAULT)}, {algorithm}"), out.dtype)


_ON_CPU = "DEFAULT F16_F16_F16 BF16_BF16_F32 BF16_BF16_F32_X3 BF16_BF16_F32_X6 F32_F32_F32 F64_F64_F64".split()
_ELEMENT_TYPES = {"float16": "f16", "bfloat16": "bf16", "tf32": "tf32", "float32": "f32", "float64": "f64"}
_NUMBERS = ("lhs_component_count", "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation")
_DEFAULT = (c.Precision.DEFAULT, c.Precision.DEFAULT)


@lru_cache(maxsize=1024)
def _dot_attributes(dimension_numbers: c.Dims, precision: c.Precisions) -> str:
    (cx, cy), (bx, by) = dimension_numbers
    numbers = (
        f"lhs_batching_dimensions = {list(bx)}, rhs_batching_dimensions = {list(by)}, "
        f"lhs_contracting_dimensions = {list(cx)}, rhs_contracting_dimensions = {list(cy)}"
    )
    return f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, {_precision(precision)}"


def _conv_general_dilated(f: Function, outs: Any, x: Value, y: Value, **params: Any) -> Any:
    """Emit a convolution; except on the CPU, XLA has none of complex numbers or of integers: they are decomposed."""
    if f.platform != "cpu" and dtypes.is_complex(outs[0].dtype):
        return write_out(f, partial(_complex_convolution, **params), [x, y])
    if f.platform != "cpu" and not dtypes.is_inexact(x.aval.dtype):
        return write_out(f, partial(_integer_convolution, **params), [x, y])
    filters = y.aval.shape[params["dimension_numbers"].rhs_spec[0]]
    return _sums(_convolution, y.aval.size // filters if filters else 0)(f, outs, x, y, **params)


def _complex_convolution(x: Any, y: Any, *, preferred_element_type: Any, **params: Any) -> Any:
    """Compute (a + ib) * (p + iq) by four real convolutions."""
    dtype = None if preferred_element_type is None else dtypes.real_part_dtype(preferred_element_type)

    def convolved(u: Any, v: Any) -> Any:
        return c.conv_general_dilated_p.bind(u, v, preferred_element_type=dtype, **params)[0]

    (a, b), (p, q) = ((e.real(z), e.imag(z)) for z in (x, y))
    return e.complex(e.sub(convolved(a, p), convolved(b, q)), e.add(convolved(a, q), convolved(b, p)))


def _integer_convolution(x: Any, y: Any, *, preferred_element_type: Any, **params: Any) -> Any:
    """Compute integers modulo a power of 2 by convolutions of 16 of their bits at a time, in float64.

    Sums of fewer than 2**21 products of 16 bits are exact; rounding undoes what transforms of Fourier may add to them.
    """
    dtype = np.dtype(x.dtype if preferred_element_type is None else preferred_element_type)
    xs, ys = (_limbs(z, dtype) for z in (x, y))
    total = None
    for (i, u), (j, v) in itertools.product(enumerate(xs), enumerate(ys)):
        if i + j < len(xs):
            found = c.conv_general_dilated_p.bind(u, v, preferred_element_type=None, **params)[0]
            part = e.convert_element_type(e.convert_element_type(e.round(found), np.int64), dtype)
            part = b.shift_left(part, _LIMB * (i + j)) if i + j else part
            total = part if total is None else e.add(total, part)
    return total


_LIMB = 16


def _limbs(x: Any, dtype: np.dtype[Any]) -> list[Any]:
    """Split integers of `dtype` into unsigned ones of 16 bits, the lowest first, as float64; narrower ones stay."""
    x = e.convert_element_type(x, dtype)
    if dtype.itemsize * 8 <= _LIMB:
        return [e.convert_element_type(x, np.float64)]
    shifted = [b.shift_right_logical(x, n) for n in range(0, dtype.itemsize * 8, _LIMB)]
    return [e.convert_element_type(b.bitwise_and(z, 2**_LIMB - 1), np.float64) for z in shifted]


def _convolution(
    f: Function,
    outs: Any,
    x: Value,
    y: Value,
    *,
    window_strides: tuple[int, ...],
    padding: Any,
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: c.Precisions,
    preferred_element_type: Any,
) -> Any:
    lhs, rhs, out = dimension_numbers
    numbers = f"{_axes('bf', lhs)}x{_axes('oi', rhs)}->{_axes('bf', out)}"
    attributes = ", ".join(
        [
            f"window_strides = {hlo.array(window_strides)}",
            f"padding = {padding_attribute(padding)}",
            f"lhs_dilation = {hlo.array(lhs_dilation)}",
            f"rhs_dilation = {hlo.array(rhs_dilation)}",
            f"dimension_numbers = #stablehlo.conv<{numbers}>",
            f"feature_group_count = {feature_group_count} : i64",
            f"batch_group_count = {batch_group_count} : i64",
            _precision(precision),
        ]
    )
    return (_in_bytes(f, "convolution", x, y, outs[0], attributes),)


def _axes(heads: str, spec: Sequence[int]) -> str:
    """Print the meaning of each axis, as in `[b, 0, 1, f]`."""
    meanings = [*heads, *map(str, range(len(spec) - 2))]
    return f"[{', '.join(m for _, m in sorted(zip(spec, meanings)))}]"


def _precision(precision: c.Precisions) -> str:
    """Print the precision attribute; an algorithm, which has an attribute of its own, counts as the default."""
    names = [p.name if isinstance(p, c.Precision) else "DEFAULT" for p in precision]
    return f"precision_config = [{', '.join(f'#stablehlo<precision {name}>' for name in names)}]"


emit.rules[c.dot_general_p] = _dot_general
emit.rules[c.conv_general_dilated_p] = _conv_general_dilated
