"""Matrices by their structure: identity, triangles, diagonals, Vandermonde."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.at import AtIndexer
from tapeless.tracer.numpy.indexing import take
from tapeless.tracer.numpy.promotion import array_operand, as_array, cast, check_no_out, number_operand, strong
from tapeless.tracer.numpy.reductions import total
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis, constant, exact_integer, known_elements
from tapeless.tracer.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    expand_dims,
    full,
    pad,
    reshape,
    slice_in_dim,
    transpose,
)
from tapeless.tracer.types import aval_of

# ---- identity and triangles ----------------------------------------------------------------------------------


def eye(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Make the N x M matrix with ones on diagonal k, above the main one if positive.

    The number k may be a traced integer. Raises: TypeError if k is no integer, or N or M is not known.
    """
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    return core.place_array(_by_diagonal(lax.eq, "eye", _sizes("eye", N, M), k, dtype), device)


def _by_diagonal(compare: Any, name: str, shape: tuple[int, int], k: Any, dtype: np.dtype[Any]) -> Array:
    """Compare row index + k with the column index, as numbers of `dtype`."""
    if isinstance(k, Array) and known_elements(k) is None and not k.ndim and dtypes.is_integer(k.dtype):
        return _by_traced_diagonal(k, compare=compare, shape=shape, dtype=dtype)
    return _by_known_diagonal(compare=compare, shape=shape, k=exact_integer(k, f"{name}: k"), dtype=dtype)


def _sizes(name: str, n: Any, m: Any) -> tuple[int, int]:
    rows = exact_integer(n, f"{name}: N")
    return rows, rows if m is None else exact_integer(m, f"{name}: M")


@core.compound
def _by_known_diagonal(*, compare: Any, shape: tuple[int, int], k: int, dtype: np.dtype[Any]) -> Array:
    return lax.convert_element_type(compare(*_rows_and_columns(shape, k)), dtype)


@core.compound
def _by_traced_diagonal(k: Any, *, compare: Any, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
    info = dtypes.iinfo(k.dtype)
    inside = lax.clamp(max(-shape[0], int(info.min)), k, min(shape[1], int(info.max)))
    rows, columns = _rows_and_columns(shape, 0)
    return lax.convert_element_type(compare(lax.add(rows, lax.convert_element_type(inside, np.int32)), columns), dtype)


def _rows_and_columns(shape: tuple[int, ...], k: int) -> tuple[Array, Array]:
    """Return row index + k, and column index, of matrices in the last two axes; k is cut where no diagonal is left."""
    k = max(-shape[-2], min(k, shape[-1]))
    rows = broadcasted_iota(np.int32, shape[-2:], 0)
    return (lax.add(rows, k) if k else rows), broadcasted_iota(np.int32, shape[-2:], 1)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """Make the n x n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None) -> Array:
    """Make the N x M matrix with ones on and below diagonal k; of float32 if no dtype is given, as in JAX.

    The number k may be a traced integer. Raises: TypeError if k is no integer, or N or M is not known.
    """
    dtype = dtypes.canonical("float32" if dtype is None else dtype)
    return _by_diagonal(lax.ge, "tri", _sizes("tri", N, M), k, dtype)


@one_program
def tril(m: ArrayLike, k: int = 0) -> Array:
    """Replace elements above diagonal k of matrices m [.., n, m] by zeros."""
    return _triangle(_matrices("tril", m, number_operand), k=exact_integer(k, "tril: k"), lower=True)


@one_program
def triu(m: ArrayLike, k: int = 0) -> Array:
    """Replace elements below diagonal k of matrices m [.., n, m] by zeros."""
    return _triangle(_matrices("triu", m, number_operand), k=exact_integer(k, "triu: k") - 1, lower=False)


def _matrices(name: str, m: ArrayLike, operand: Callable[[str, Any], Array] = array_operand) -> Array:
    x = operand(name, m)
    if x.ndim < 2:
        raise ValueError(f"{name}: a matrix has at least two axes, {x.aval} has {x.ndim}.")
    return x


@core.compound
def _triangle(x: Array, *, k: int, lower: bool) -> Array:
    below = lax.ge(*_rows_and_columns(x.shape, k))
    below = broadcast_in_dim(below, x.shape, (x.ndim - 2, x.ndim - 1))
    zero = constant(0, x.aval.update(shape=()))
    return select(below, x, zero) if lower else select(below, zero, x)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Make the row and column indices of the elements on and below diagonal k of an n x m matrix."""
    rows, columns = np.tril_indices(*_sizes_and_diagonal("tril_indices", n, k, m))
    return _positions(rows), _positions(columns)


def _sizes_and_diagonal(name: str, n: Any, k: Any, m: Any) -> tuple[int, int, int]:
    rows, columns = _sizes(name, n, m)
    return rows, exact_integer(k, f"{name}: k"), columns


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Make the row and column indices of the elements on and above diagonal k of an n x m matrix."""
    rows, columns = np.triu_indices(*_sizes_and_diagonal("triu_indices", n, k, m))
    return _positions(rows), _positions(columns)


def tril_indices_from(arr: Array, k: int = 0) -> tuple[Array, Array]:
    """Make the `tril_indices` of the matrix arr. Raises: ValueError if it is not a matrix."""
    rows, columns = _lengths("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Array, k: int = 0) -> tuple[Array, Array]:
    """Make the `triu_indices` of the matrix arr. Raises: ValueError if it is not a matrix."""
    rows, columns = _lengths("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _lengths(name: str, arr: Array) -> tuple[int, int]:
    arr = array_operand(name, arr)
    if len(arr.shape) != 2:
        raise ValueError(f"{name}: a matrix has two axes, {aval_of(arr)} has {len(arr.shape)}.")
    return arr.shape[-2], arr.shape[-1]


def diag_indices_from(arr: Array) -> tuple[Array, ...]:
    """Make the `diag_indices` of arr. Raises: ValueError unless it has two or more axes of one length."""
    arr = array_operand("diag_indices_from", arr)
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ValueError(f"diag_indices_from: the axes must be two or more of one length, not those of {aval_of(arr)}.")
    return diag_indices(arr.shape[0], arr.ndim)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Make the indices of the main diagonal of an array of `ndim` axes of length n."""
    return (_positions(np.arange(n)),) * ndim


def _positions(values: np.ndarray[Any, Any]) -> Array:
    return as_array(values.astype(dtypes.default_dtype("i")))


# ---- diagonals -----------------------------------------------------------------------------------------------


@one_program
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Extract the diagonals of the matrices in two axes of a, as a new last axis.

    Raises: ValueError if the axes are the same, or a has fewer than two.
    """
    x = _matrices("diagonal", a)
    first, second = canonical_axis(axis1, x.ndim, "axis1"), canonical_axis(axis2, x.ndim, "axis2")
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 must differ, both are {first}.")
    rest = [d for d in range(x.ndim) if d not in (first, second)]
    return _diagonal(transpose(x, (*rest, first, second)), offset=exact_integer(offset, "offset"))


@core.compound
def _diagonal(x: Array, *, offset: int) -> Array:
    """Read row by row, the diagonal of an n x n matrix is every (n + 1)th element: nothing is masked or summed."""
    rows, columns = x.shape[-2:]
    top, left = max(-offset, 0), max(offset, 0)
    n, batch = max(0, min(rows - top, columns - left)), x.shape[:-2]
    if not n:
        return full((*batch, 0), 0, x.dtype)
    square = slice_in_dim(slice_in_dim(x, top, top + n, axis=-2), left, left + n, axis=-1)
    return slice_in_dim(reshape(square, (*batch, n * n)), 0, None, n + 1, axis=-1)


@one_program
def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make the matrix with the vector v on diagonal k, or extract diagonal k of the matrix v.

    Raises: ValueError for an array of other than one or two axes.
    """
    x = array_operand("diag", v)
    if x.ndim == 1:
        return _diag(number_operand("diag", x), k=exact_integer(k, "diag: k"))
    if x.ndim != 2:
        raise ValueError(f"diag: a vector or a matrix, not {x.aval}.")
    return diagonal(x, k)


@core.compound
def _diag(x: Array, *, k: int) -> Array:
    n = x.shape[0]
    zero = constant(0, x.aval.update(shape=()))
    on = lax.eq(*_rows_and_columns((n, n), 0))
    square = select(on, broadcast_in_dim(x, (n, n), (0,)), zero)
    return pad(square, zero, [(max(-k, 0), max(k, 0), 0), (max(k, 0), max(-k, 0), 0)])


@one_program
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make the matrix with the elements of v on diagonal k."""
    x = number_operand("diagflat", v)
    return _diag(reshape(x, (x.size,)), k=exact_integer(k, "diagflat: k"))


@one_program
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum of the diagonal of the matrices in two axes of a.

    Raises: ValueError if the axes are the same, or a has fewer than two; TypeError if there is no such dtype.
    """
    check_no_out("trace", out)
    x = diagonal(_matrices("trace", a, number_operand), offset, axis1, axis2)
    wanted = dtypes.canonical(dtype) if dtype is not None else _sum_dtype(x.dtype)
    return total(strong(cast(x, wanted)), (x.ndim - 1,))


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    kind = dtypes.kind(dtype)
    default = dtypes.default_dtype("i" if kind == "b" else kind)
    return default if kind in "biu" and dtypes.bits_of(dtype) < dtypes.bits_of(default) else dtype


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """Replace the main diagonal of a by the elements of `val`, repeated as needed; returns a new array.

    Args:
      wrap: below the last square of a matrix with more rows than columns a diagonal begins anew, a row further down.
      inplace: must be False, as arrays are immutable.
    Raises: NotImplementedError if `inplace`; ValueError if there are more than two axes, of different lengths.
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: arrays are never changed in place; pass inplace=False and use the result."
        )
    x = _matrices("fill_diagonal", a)
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"fill_diagonal: axes of different lengths have no diagonal: {x.aval}.")
    step = x.shape[1] + 1 if x.ndim == 2 else sum(math.prod(x.shape[d + 1 :]) for d in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else min(x.shape) * x.shape[1]
    places = np.arange(0, end, step)
    v = array_operand("fill_diagonal", val)
    v = reshape(v, (v.size,))
    if v.size > 1:
        v = take(v, np.arange(places.size) % v.size)
    return reshape(AtIndexer(reshape(x, (x.size,)), places).set(v), x.shape)


@one_program
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Make the matrix of powers of the vector x, N - 1 to 0 from left to right, or 0 to N - 1 if `increasing`.

    Raises: ValueError if x is no vector, or N is negative; TypeError if N is no integer.
    """
    v = array_operand("vander", x)
    if v.ndim != 1:
        raise ValueError(f"vander: x must be a vector, not {v.aval}.")
    n = v.shape[0] if N is None else exact_integer(N, "vander: N")
    if n < 0:
        raise ValueError(f"vander: N must be at least 0, not {N}.")
    return _vander(v, exponents=tuple(range(n)) if increasing else tuple(range(n)[::-1]))


@core.compound
def _vander(x: Array, *, exponents: tuple[int, ...]) -> Array:
    if not exponents:
        return full((x.shape[0], 0), 0, x.dtype)
    return concatenate([expand_dims(lax.integer_pow(x, n), (1,)) for n in exponents], 1)
