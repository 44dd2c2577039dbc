"""Rules of contractions: linear in each operand, with contractions for transposes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, Box, IndexRow, Params, rows, terms, window_index
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.vmap import example_shape
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives.dimension_numbers import ConvDimensionNumbers
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import argsort, without
from tapeless.tracer.primitives.shape import full, reshape, rev
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.primitives.windows import count, dilate_size
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Bracket, Read
from tapeless.tracer.types import ShapedArray, aval_of


def _converted(x: Any, dtype: Any) -> Any:
    return x if aval_of(x).dtype == dtype else convert_element_type(x, dtype)


def _joined(ct: Any, other: Any) -> tuple[Any, Any]:
    """Convert a cotangent, in the dtype of the sum, and the other operand to the wider of their dtypes."""
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
        return _pull(cts[0], x.aval, y, ((cx, cy), (bx, by)), precision, swapped=False), None
    return None, _pull(cts[0], y.aval, x, ((cy, cx), (by, bx)), (precision[1], precision[0]), swapped=True)


def _pull(ct: Any, aval: ShapedArray, other: Any, dims: c.Dims, precision: c.Precisions, *, swapped: bool) -> Any:
    """Pull ct back to the operand of type `aval`: contract it with `other` over the free axes of `other`."""
    pulled = _pulled_dims(aval.ndim, aval_of(other).ndim, dims, swapped)
    factors = _joined(ct, other)
    if not pulled.ct_first:
        factors, precision = factors[::-1], (precision[1], precision[0])
    (out,) = c.dot_general_p.bind(
        *factors, dimension_numbers=pulled.dims, precision=precision, preferred_element_type=None
    )
    return permute(_converted(out, aval.dtype), pulled.order)


class _Pulled(NamedTuple):
    """A contraction of ct and the other operand: their order, dimension numbers, and the permutation of the result."""

    ct_first: bool
    dims: c.Dims
    order: tuple[int, ...]


@lru_cache(maxsize=1024)
def _pulled_dims(rank: int, other_rank: int, dims: c.Dims, swapped: bool) -> _Pulled:
    """Find the contraction for a cotangent of this rank, with ct first unless only ct second needs no permutation.

    ct is [batch, free of x, free of y]; the product comes out as [batch, free, contracted in the other's order], or
    with ct second as [batch, contracted, free].
    """
    (ca, co), (ba, bo) = dims
    free, free_other = without(range(rank), ca + ba), without(range(other_rank), co + bo)
    first = len(ba) if swapped else len(ba) + len(free)
    of_ct, batch = tuple(range(first, first + len(free_other))), tuple(range(len(ba)))
    contracted = [a for _, a in sorted(zip(co, ca))]
    if [*ba, *contracted, *free] == list(range(rank)) != [*ba, *free, *contracted]:
        return _Pulled(False, ((free_other, of_ct), (bo, batch)), tuple(range(rank)))
    return _Pulled(True, ((of_ct, free_other), (batch, bo)), argsort([*ba, *free, *contracted]))


def _dot_general_vmap(size: int, args: Any, dims: Any, *, dimension_numbers: c.Dims, **params: Any) -> Any:
    """Batch a contraction: the mapped axis of both operands is the first batch axis; of only one, a free axis."""
    each = [_Operand(x, d, *axes) for x, d, axes in zip(args, dims, zip(*dimension_numbers))]
    if None not in dims:
        (cx, bx), (cy, by) = [(o.contracted, (d, *o.batch)) for o, d in zip(each, dims)]
        out = 0
    else:
        (cx, bx), (cy, by) = [(o.contracted, o.batch) for o in each]
        x, y = each
        out = len(bx) + (len(x.free) + y.free.index(y.d) if x.d is None else x.free.index(x.d))
    return c.dot_general_p.bind(*args, dimension_numbers=((cx, cy), (bx, by)), **params), [out]


class _Operand:
    """An operand of a contraction with the mapped axis at d: its contracted, batch and free axes."""

    def __init__(self, x: Any, d: vmap.Dim, contracted: Any, batch: Any) -> None:
        self.d = d
        self.contracted, self.batch = (
            tuple(a if d is None else vmap.beside(a, d) for a in axes) for axes in (contracted, batch)
        )
        self.free: Sequence[int] = [
            i for i in range(aval_of(x).ndim) if i not in self.contracted and i not in self.batch
        ]


jvp.multilinear(c.dot_general_p)
transpose.rules[c.dot_general_p] = _dot_general_transpose
vmap.rules[c.dot_general_p] = _dot_general_vmap

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
    """Return the lengths of the spatial axes after dilation."""
    return [dilate_size(aval.shape[i], d) for i, d in zip(spec[2:], dilation)]


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


def _conv_vmap(size: int, args: Any, dims: Any, **params: Any) -> Any:
    """Batch a convolution: a mapped lhs has a larger batch, a mapped kernel more features; both, more groups."""
    (x, y), (dx, dy) = args, dims
    if None not in dims:
        return _conv_vmap_both(size, x, y, dx, dy, **params)
    (lhs, rhs, out), inputs = params["dimension_numbers"], params["batch_group_count"]
    if dx is not None:
        z = c.conv_general_dilated_p.bind(_folded(x, dx, lhs[0], inputs), y, **params)[0]
        return (_unfolded(z, out[0], size, example_shape(x, dx)[lhs[0]] // inputs),), [out[0]]
    groups = params["feature_group_count"] * inputs
    z = c.conv_general_dilated_p.bind(x, _folded(y, dy, rhs[0], groups), **params)[0]
    return (_unfolded(z, out[1], size, example_shape(y, dy)[rhs[0]], groups),), [out[1]]


def _conv_vmap_both(size: int, x: Any, y: Any, dx: int, dy: int, **params: Any) -> Any:
    lhs, rhs, out = params["dimension_numbers"]
    if not size:  # a convolution cannot have 0 groups
        return _conv_vmap(size, (x, full(example_shape(y, dy), 0, aval_of(y).dtype)), (dx, None), **params)
    groups, axis = ("batch_group_count", lhs[0]) if params["batch_group_count"] > 1 else ("feature_group_count", lhs[1])
    params[groups] *= size
    z = c.conv_general_dilated_p.bind(_folded(x, dx, axis), _folded(y, dy, rhs[0]), **params)[0]
    return (_unfolded(z, out[1], size, example_shape(y, dy)[rhs[0]]),), [out[1]]


def _folded(x: Any, d: int, axis: int, groups: int = 1) -> Any:
    """Merge the mapped axis of x into `axis` of an example, inside its groups: d, [g i] -> [g d i]."""
    whole, shape, at = list(aval_of(x).shape), list(example_shape(x, d)), vmap.beside(axis, d)
    split = [*whole[:at], groups, whole[at] // groups, *whole[at + 1 :]]
    source = d + (d > at)
    order = [i for i in range(len(split)) if i != source]
    order.insert(order.index(at + 1), source)
    return reshape(permute(reshape(x, split), order), [*shape[:axis], whole[d] * shape[axis], *shape[axis + 1 :]])


def _unfolded(x: Any, axis: int, size: int, n: int, groups: int = 1) -> Any:
    """Split the mapped axis off `axis` of x, which is then n long, and put it before: [g d i] -> d, [g i]."""
    shape = list(aval_of(x).shape)
    split = reshape(x, [*shape[:axis], groups, size, n // groups, *shape[axis + 1 :]])
    order = list(range(len(shape) + 2))
    order[axis : axis + 2] = [axis + 1, axis]
    return reshape(permute(split, order), [*shape[:axis], size, n, *shape[axis + 1 :]])


jvp.multilinear(c.conv_general_dilated_p)
vmap.rules[c.conv_general_dilated_p] = _conv_vmap
transpose.rules[c.conv_general_dilated_p] = _conv_transpose

# ---- index rows ----------------------------------------------------------------------------------------------
# Sums of products, over the window in a convolution.


def _dot_general_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of dot_general: the result has the batch axes, then the free axes of the left and the right."""
    ((cx, cy), (bx, by)), (x, y), box = params["dimension_numbers"], avals, Box()
    of_x, of_y = dict[int, Affine](), dict[int, Affine]()
    for d, e in zip((*bx, *cx), (*by, *cy)):
        of_x[d] = of_y[e] = box.axis(x.shape[d])
    out = [of_x[d] for d in bx]
    for aval, indices in ((x, of_x), (y, of_y)):
        for d in range(aval.ndim):
            if d not in indices:
                indices[d] = box.axis(aval.shape[d])
                out.append(indices[d])
    return terms([box.term(out, Read(0, _in_order(of_x)), Read(1, _in_order(of_y)))])


def _in_order(indices: dict[int, Affine]) -> tuple[Affine, ...]:
    return tuple([indices[d] for d in range(len(indices))])


def _conv_general_dilated_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a convolution.

    The group is a digit of the batch or the features of the left, and of the features of the right and of the result.
    """
    (x, y), p, (lhs, rhs, out) = avals, params, params["dimension_numbers"]
    batches, features = p["batch_group_count"], p["feature_group_count"]
    sizes = x.shape[lhs[0]] // batches, batches * features, y.shape[rhs[0]] // (batches * features), y.shape[rhs[1]]
    box, brackets = Box(), list[Bracket]()
    n, group, o, i = box.axes(sizes)
    of_x = {lhs[0]: n + sizes[0] * group if batches > 1 else n, lhs[1]: i + sizes[3] * group if features > 1 else i}
    of_y = {rhs[0]: o + sizes[2] * group, rhs[1]: i}
    of_out = {out[0]: n, out[1]: o + sizes[2] * group}
    dilations = zip(p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    for d, e, to, (stride, padding, base, dilation) in zip(lhs[2:], rhs[2:], out[2:], dilations):
        shape = x.shape[d], y.shape[e]
        of_out[to], of_y[e] = box.axes((count(*shape, stride, padding, base, dilation), shape[1]))
        place = stride * of_out[to] + dilation * of_y[e] - padding[0]
        of_x[d], more = window_index(box, place, shape[0], base)
        brackets += more
    reads = Read(0, _in_order(of_x)), Read(1, _in_order(of_y))
    return terms([box.term(_in_order(of_out), *reads, brackets=brackets)])


rows[c.dot_general_p], rows[c.conv_general_dilated_p] = _dot_general_row, _conv_general_dilated_row
