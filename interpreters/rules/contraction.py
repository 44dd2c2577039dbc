"""How contractions transform: they are linear in each operand, and their transposes are contractions again."""

from typing import Any

from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.transpose import is_linear
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives.contraction import ConvDimensionNumbers
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.shape import full, reshape, rev
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.primitives.windows import dilated
from tapeless.tracer.types import ShapedArray, aval_of


def _converted(x: Any, dtype: Any) -> Any:
    return x if aval_of(x).dtype == dtype else convert_element_type(x, dtype)


def _joined(ct: Any, other: Any) -> tuple[Any, Any]:
    """A cotangent in the dtype of the sum and the other operand, in the wider of their dtypes."""
    dtype = max(aval_of(ct).dtype, aval_of(other).dtype, key=dtypes.bits_of)
    return _converted(ct, dtype), _converted(other, dtype)


# ---- dot -----------------------------------------------------------------------------------------------------


def _dot_general_transpose(
    cts: Any, x: Any, y: Any, *, dimension_numbers: c.Dims, precision: c.Precisions, preferred_element_type: Any
) -> Any:
    if is_linear(x) and is_linear(y):
        raise transpose.not_linear(c.dot_general_p, "it multiplies two values that are both linear (bilinear)")
    (cx, cy), (bx, by) = dimension_numbers
    if is_linear(x):
        return _pull(cts[0], x.aval, y, cx, cy, bx, by, precision, swapped=False), None
    return None, _pull(cts[0], y.aval, x, cy, cx, by, bx, precision[::-1], swapped=True)


def _pull(
    ct: Any, aval: ShapedArray, other: Any, ca: Any, co: Any, ba: Any, bo: Any, precision: Any, *, swapped: bool
) -> Any:
    """Cotangent of the operand of type `aval`: ct contracted with `other` over the axes that only `other` has.

    ct is [batch, free of x, free of y]; the product comes out as [batch, free of aval, contracted in `other`'s order].
    """
    free_a = [i for i in range(aval.ndim) if i not in ca and i not in ba]
    free_o = [i for i in range(aval_of(other).ndim) if i not in co and i not in bo]
    first = len(ba) if swapped else len(ba) + len(free_a)
    ct_contract = tuple(range(first, first + len(free_o)))
    ct, other = _joined(ct, other)
    out = c.dot_general(ct, other, ((ct_contract, free_o), (tuple(range(len(ba))), bo)), precision)
    contracted = [a for _, a in sorted(zip(co, ca))]
    order = [*ba, *free_a, *contracted]
    return permute(_converted(out, aval.dtype), tuple(sorted(range(aval.ndim), key=order.__getitem__)))


jvp.multilinear(c.dot_general_p)
transpose.rules[c.dot_general_p] = _dot_general_transpose

# ---- convolution ---------------------------------------------------------------------------------------------
#
# Along one axis of space, with stride s, dilations d of x and e of the kernel k, and padding (lo, hi):
#     y[o] = Σ_j k[j] x'[o s + j e - lo],   x'[i d] = x[i], else 0,   so
#     ct_x[i] = Σ_j k[j] ct'[i d + lo - j e],    a convolution of ct, dilated by s, with k reversed, of stride d,
#     ct_k[j] = Σ_o ct[o] x'[j e + o s - lo],    a convolution of x with the kernel ct dilated by s, of stride e,
# whose paddings follow from the lengths they must have. Axes of batch and feature change their roles.


def _conv_transpose(cts: Any, x: Any, y: Any, **params: Any) -> Any:
    if is_linear(x) and is_linear(y):
        raise transpose.not_linear(c.conv_general_dilated_p, "it convolves two values that are both linear (bilinear)")
    pull, aval = (_pull_lhs, x.aval) if is_linear(x) else (_pull_rhs, y.aval)
    if aval_of(cts[0]).size == 0:
        pulled: Any = full(aval.shape, 0, aval.dtype)
    else:
        ct, other = _joined(cts[0], y if is_linear(x) else x)
        pulled = _converted(pull(ct, aval, other, **params), aval.dtype)
    return (pulled, None) if is_linear(x) else (None, pulled)


def _pull_lhs(
    ct: Any,
    aval: ShapedArray,
    kernel: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    lhs, rhs, out = dimension_numbers
    padding = [
        (w - 1 - lo, n + lo - m)
        for n, w, m, (lo, _) in zip(
            _lengths(aval, lhs, lhs_dilation), _lengths(aval_of(kernel), rhs, rhs_dilation),
            _lengths(aval_of(ct), out, window_strides), padding,
        )
    ]  # fmt: skip
    groups = feature_group_count * batch_group_count
    pulled = c.conv_general_dilated(
        ct,
        rev(_move_groups(kernel, groups, rhs[0], rhs[1]), rhs[2:]),
        lhs_dilation,
        padding,
        window_strides,
        rhs_dilation,
        ConvDimensionNumbers(out, (rhs[1], rhs[0], *rhs[2:]), lhs),
        feature_group_count=groups,
        precision=precision,
    )
    return _move_groups(pulled, batch_group_count, lhs[1], lhs[0])


def _pull_rhs(
    ct: Any,
    aval: ShapedArray,
    x: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    lhs, rhs, out = dimension_numbers
    padding = [
        (lo, w + m - 1 - n - lo)
        for n, w, m, (lo, _) in zip(
            _lengths(aval_of(x), lhs, lhs_dilation), _lengths(aval, rhs, rhs_dilation),
            _lengths(aval_of(ct), out, window_strides), padding,
        )
    ]  # fmt: skip
    return c.conv_general_dilated(
        x,
        ct,
        rhs_dilation,
        padding,
        lhs_dilation,
        window_strides,
        ConvDimensionNumbers((lhs[1], lhs[0], *lhs[2:]), (out[1], out[0], *out[2:]), (rhs[1], rhs[0], *rhs[2:])),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision[::-1],
    )


def _lengths(aval: ShapedArray, spec: tuple[int, ...], dilation: tuple[int, ...]) -> list[int]:
    """Lengths of the axes of space, dilated."""
    return [dilated(aval.shape[i], d) for i, d in zip(spec[2:], dilation)]


def _move_groups(x: Any, groups: int, source: int, target: int) -> Any:
    """Split `groups` off the front of axis `source` and put them before axis `target`: [g o, i] -> [o, g i]."""
    if groups == 1:
        return x
    shape = list(aval_of(x).shape)
    split = [*shape[:source], groups, shape[source] // groups, *shape[source + 1 :]]
    axes = [i for i in range(len(split)) if i != source]
    axes.insert(axes.index(target + (target > source)), source)
    shape[source], shape[target] = shape[source] // groups, shape[target] * groups
    return reshape(permute(reshape(x, split), axes), shape)


jvp.multilinear(c.conv_general_dilated_p)
transpose.rules[c.conv_general_dilated_p] = _conv_transpose
