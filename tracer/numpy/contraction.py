"""Products that sum over axes: dot, matmul, tensordot, vecdot and others, each by one `dot_general`."""

import math
from collections.abc import Sequence
from typing import Any

from tapeless.tracer import core
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.errors import not_supported
from tapeless.tracer.numpy import arithmetic
from tapeless.tracer.numpy.einsum import contract
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast_to_shape,
    check_no_out,
    common_shape,
    format_shape,
    promoted_dtypes,
)
from tapeless.tracer.numpy.reductions import checked_axes
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import canonical_precision, check_contraction, dot_general, dot_general_p
from tapeless.tracer.primitives.operands import canonical_axis, listed_axes
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate, reshape, slice_in_dim
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import aval_of

# ---- matrices and vectors ------------------------------------------------------------------------------------


@one_program
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    out: None = None,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Multiply matrices, for every index of the broadcast leading axes; a vector is a row or a column.

    Args:
      a: [b.., m, k] or [k].
      b: [b.., k, n] or [k].
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype of the sum and the result.
    Returns: [b.., m, n], without the axis that a vector lacks.
    Raises: TypeError if the contracted sizes differ; ValueError for operands without axes, or leading axes that do not
      broadcast; both operands are named.
    """
    check_no_out("matmul", out)
    if out_sharding is not None:
        raise not_supported("matmul", "out_sharding", out_sharding)
    x, y = _pair("matmul", a, b)
    p, q = len(x.shape), len(y.shape)
    if not p or not q:
        raise ValueError(f"matmul: operands must have axes: {aval_of(x)} and {aval_of(y)}. Use * for scalars.")
    if q <= 2:
        return _dot("matmul", x, y, (((p - 1,), (0,)), _NO_BATCH), precision, preferred_element_type)
    if p == 1:
        return _dot("matmul", x, y, (((0,), (q - 2,)), _NO_BATCH), precision, preferred_element_type)
    return _batched(x, y, precision=precision, preferred_element_type=preferred_element_type)


_NO_BATCH = ((), ())


def _pair(name: str, a: ArrayLike, b: ArrayLike) -> Any:
    if isinstance(a, Array) and isinstance(b, Array) and a.aval.dtype == b.aval.dtype:
        return a, b
    return promoted_dtypes(name, a, b)


def _dot(name: str, x: Any, y: Any, dims: Any, precision: Any = None, preferred_element_type: Any = None) -> Array:
    ((i,), (j,)), _ = dims
    if x.shape[i] != y.shape[j]:
        check_contraction(name, aval_of(x), aval_of(y), dims)
    if precision is None and preferred_element_type is None:
        both = _FAST if config.default_matmul_precision is None else canonical_precision(None)
        return dot_general_p.bind(x, y, dimension_numbers=dims, precision=both, preferred_element_type=None)[0]
    return dot_general(x, y, dims, precision, preferred_element_type)


_FAST = canonical_precision("default")


def _scaled(x: Any, y: Any, precision: Any, preferred_element_type: Any) -> Array:
    """Multiply by a scalar, with the result dtype `preferred_element_type` if given."""
    if preferred_element_type is None:
        return arithmetic.multiply(x, y)
    return dot_general(x, y, (_NO_BATCH, _NO_BATCH), precision, preferred_element_type)


def _batched(x: Any, y: Any, *, precision: Any, preferred_element_type: Any) -> Array:
    """Multiply batches of matrices. Axes are labelled from the end: matrices -2, -1 and -3, leading axes -4, -5, ..."""
    p, q = len(x.shape), len(y.shape)
    check_contraction("matmul", aval_of(x), aval_of(y), (((p - 1,), (q - 2,)), _NO_BATCH))
    batch = _common_batch("matmul", x.shape[:-2], y.shape[:-2], x, y)
    leading = tuple(range(-3 - len(batch), -3))
    labels = (*leading[len(batch) - p + 2 :], -3, -2), (*leading[len(batch) - q + 2 :], -2, -1)
    out = (*leading, -3, -1)
    return _contract(x, y, labels=labels, out=out, precision=precision, preferred_element_type=preferred_element_type)


def _common_batch(name: str, s: tuple[int, ...], t: tuple[int, ...], x: Any, y: Any) -> tuple[int, ...]:
    try:
        return common_shape(name, s, t)
    except ValueError:
        operands, batch = f"{aval_of(x)} and {aval_of(y)}", f"{format_shape(s)} and {format_shape(t)}"
        raise ValueError(f"{name}: the leading axes of {operands} do not broadcast: {batch}.") from None


@core.compound
def _contract(x: Any, y: Any, *, labels: Any, out: Any, precision: Any, preferred_element_type: Any) -> Array:
    return contract([x, y], list(labels), out, precision=precision, preferred_element_type=preferred_element_type)


@one_program
def dot(
    a: ArrayLike,
    b: ArrayLike,
    out: None = None,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Sum products over the last axis of a and the last but one (or only) axis of b; multiply if either is a scalar.

    Args:
      a: [m.., k]. b: [n.., k, l] or [k].
      precision, preferred_element_type: as for `matmul`.
    Returns: [m.., n.., l]; [m..] for a vector b.
    Raises: TypeError if these axes differ in size; both operands are named.
    """
    check_no_out("dot", out)
    if out_sharding is not None:
        raise not_supported("dot", "out_sharding", out_sharding)
    x, y = _pair("dot", a, b)
    p, q = len(x.shape), len(y.shape)
    if not p or not q:
        return _scaled(x, y, precision, preferred_element_type)
    return _dot("dot", x, y, (((p - 1,), (max(q - 2, 0),)), _NO_BATCH), precision, preferred_element_type)


@one_program
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum products over the last axes of both; multiply if either is a scalar.

    Args:
      a: [m.., k]. b: [n.., k].
      precision, preferred_element_type: as for `matmul`.
    Returns: [m.., n..].
    Raises: TypeError if the last axes differ in size; both operands are named.
    """
    x, y = _pair("inner", a, b)
    p, q = len(x.shape), len(y.shape)
    if not p or not q:
        return _scaled(x, y, precision, preferred_element_type)
    return _dot("inner", x, y, (((p - 1,), (q - 1,)), _NO_BATCH), precision, preferred_element_type)


@one_program
def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum the products of all elements of conj(a) and b: the inner product of the flattened arrays, a scalar.

    Raises: TypeError if the numbers of elements differ; both operands are named.
    """
    x, y = _pair("vdot", arithmetic.conjugate(a), b)
    if math.prod(x.shape) != math.prod(y.shape):
        sizes = [f"{aval_of(v)} has {math.prod(v.shape)}" for v in (x, y)]
        raise TypeError(f"vdot: the numbers of elements differ: {sizes[0]}, {sizes[1]}.")
    x, y = reshape(x, (math.prod(x.shape),)), reshape(y, (math.prod(y.shape),))
    return _dot("vdot", x, y, (((0,), (0,)), _NO_BATCH), precision, preferred_element_type)


@one_program
def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sum the products of elements of conj(x1) and x2 over `axis`.

    Args:
      x1, x2: numbers or booleans; the axes besides `axis` broadcast.
      precision, preferred_element_type: as for `matmul`.
    Returns: the broadcast axes without `axis`, of the common dtype.
    Raises: TypeError if the contracted sizes differ, ValueError if the other axes do not broadcast, both operands
      named, or if `axis` is out of range.
    """
    x, y = (array_operand("vecdot", v) for v in _pair("vecdot", arithmetic.conjugate(x1), x2))
    x, y = (moveaxis(v, checked_axes("vecdot", v, axis), -1) for v in (x, y))
    p, q = x.ndim, y.ndim
    check_contraction("vecdot", x.aval, y.aval, (((p - 1,), (q - 1,)), _NO_BATCH))
    batch = common_shape("vecdot", x.shape[:-1], y.shape[:-1])
    leading = tuple(range(len(batch)))
    labels = (*leading[len(batch) - p + 1 :], -1), (*leading[len(batch) - q + 1 :], -1)
    return _contract(
        x, y, labels=labels, out=leading, precision=precision, preferred_element_type=preferred_element_type
    )


@one_program
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices x1 [.., m, n] and vectors x2 [.., n] to vectors [.., m].

    Raises: ValueError if an operand has too few axes; TypeError if n differs.
    """
    x, y = map(as_array, promoted_dtypes("matvec", x1, x2))
    _check_ndims("matvec", (x, 2), (y, 1))
    check_contraction("matvec", x.aval, y.aval, (((x.ndim - 1,), (y.ndim - 1,)), _NO_BATCH))
    _common_batch("matvec", x.shape[:-2], y.shape[:-1], x, y)
    found = matmul(x, reshape(y, (*y.shape, 1)))
    return reshape(found, found.shape[:-1])


@one_program
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply vectors x1 [.., m], conjugated, and matrices x2 [.., m, n] to vectors [.., n].

    Raises: ValueError if an operand has too few axes; TypeError if m differs.
    """
    x, y = map(as_array, promoted_dtypes("vecmat", arithmetic.conjugate(x1), x2))
    _check_ndims("vecmat", (x, 1), (y, 2))
    check_contraction("vecmat", x.aval, y.aval, (((x.ndim - 1,), (y.ndim - 2,)), _NO_BATCH))
    _common_batch("vecmat", x.shape[:-1], y.shape[:-2], x, y)
    found = matmul(reshape(x, (*x.shape[:-1], 1, x.shape[-1])), y)
    return reshape(found, (*found.shape[:-2], found.shape[-1]))


def _check_ndims(name: str, *operands: tuple[Array, int]) -> None:
    for x, least in operands:
        if x.ndim < least:
            raise ValueError(f"{name}: {x.aval} must have {least} axes at least.")


@one_program
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Array:
    """Sum products over some axes of a and as many of b.

    Args:
      axes: a pair of sequences of axes, or n for the last n axes of a and the first n of b.
      precision, preferred_element_type: as for `matmul`.
    Returns: [other axes of a, other axes of b].
    Raises: TypeError if the axes differ in size or number, both operands named; ValueError if one is out of range.
    """
    if out_sharding is not None:
        raise not_supported("tensordot", "out_sharding", out_sharding)
    x, y = _pair("tensordot", a, b)
    p = len(x.shape)
    if isinstance(axes, int):
        pairs = tuple(range(p - axes, p)), tuple(range(axes))
    else:
        pairs = _axes(axes[0], p), _axes(axes[1], len(y.shape))
    if len(pairs[0]) != len(pairs[1]) or min(pairs[0], default=0) < 0 or max(pairs[1], default=-1) >= len(y.shape):
        raise TypeError(f"tensordot: axes {axes} do not pair those of {aval_of(x)} and {aval_of(y)}.")
    check_contraction("tensordot", aval_of(x), aval_of(y), (pairs, _NO_BATCH))
    return dot_general(x, y, (pairs, _NO_BATCH), precision, preferred_element_type)


def _axes(axes: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    return tuple(canonical_axis(i, ndim) for i in listed_axes(axes))


# ---- outer products ------------------------------------------------------------------------------------------


@one_program
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiply every element of a with every element of b: [elements of a, elements of b], both flattened.

    Raises: TypeError if a or b is no array of numbers.
    """
    check_no_out("outer", out)
    return _outer(*(reshape(x, (math.prod(x.shape),)) for x in promoted_dtypes("outer", a, b)))


@core.compound
def _outer(x: Array, y: Array) -> Array:
    shape = (x.shape[0], y.shape[0])
    return arithmetic.multiply(broadcast_in_dim(x, shape, (0,)), broadcast_in_dim(y, shape, (1,)))


@one_program
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the Kronecker product: each element of a times all of b, in blocks.

    Args:
      a, b: arrays; the one with fewer axes gets axes of size 1 before its own.
    Returns: an array whose sizes are products of those of a and b.
    """
    x, y = promoted_dtypes("kron", a, b)
    return _kron(x, y)


@core.compound
def _kron(x: Any, y: Any) -> Array:
    """Multiply over interleaved axes of x and y, then merge each pair of axes."""
    ndim = max(len(x.shape), len(y.shape))
    s, t = ((1,) * (ndim - len(v.shape)) + v.shape for v in (x, y))
    between = tuple(n for pair in zip(s, t, strict=True) for n in pair)
    left = broadcast_in_dim(reshape(x, s), between, tuple(range(0, 2 * ndim, 2)))
    right = broadcast_in_dim(reshape(y, t), between, tuple(range(1, 2 * ndim, 2)))
    return reshape(arithmetic.multiply(left, right), tuple(m * n for m, n in zip(s, t, strict=True)))


@one_program
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Compute cross products of vectors with 3 elements along an axis; of two vectors with 2, the third component.

    Args:
      a, b: [.., 3, ..] or [.., 2, ..]; a missing third element is 0. The other axes broadcast.
      axisa, axisb, axisc: the axis of the vectors in a, in b and in the result; `axis` sets all three.
    Returns: [.., 3, ..], or without that axis if both have 2 elements.
    Raises: ValueError for vectors of another length, or if the other axes do not broadcast.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (array_operand("cross", v) for v in promoted_dtypes("cross", a, b))
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(f"cross: vectors must have 2 or 3 elements along the axis: {aval_of(a)} and {aval_of(b)}.")
    batch = common_shape("cross", x.shape[:-1], y.shape[:-1])
    found = _cross(*(broadcast_to_shape(v, (*batch, v.shape[-1])) for v in (x, y)))
    return found if found.ndim == len(batch) else moveaxis(found, -1, axisc)


@core.compound
def _cross(x: Array, y: Array) -> Array:
    flat = x.shape[-1] == y.shape[-1] == 2
    (x0, x1, x2), (y0, y1, y2) = _components(x), _components(y)
    third = lax.sub(lax.mul(x0, y1), lax.mul(x1, y0))
    if flat:
        return reshape(third, third.shape[:-1])
    first = lax.sub(lax.mul(x1, y2), lax.mul(x2, y1))
    second = lax.sub(lax.mul(x2, y0), lax.mul(x0, y2))
    return concatenate([first, second, third], x.ndim - 1)


def _components(x: Array) -> list[Array]:
    found = [slice_in_dim(x, k, k + 1, axis=-1) for k in range(x.shape[-1])]
    return found if len(found) == 3 else [*found, lax.sub(found[0], found[0])]
