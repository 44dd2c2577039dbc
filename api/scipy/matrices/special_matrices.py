"""Special matrices, made from vectors or from a size, as in `scipy.linalg`.

Vectors are in the last axis, with any batch axes before it; the matrices are then in the last two. Where the elements
are known constants they are exact, or correctly rounded. Source: scipy.linalg, "special matrices".
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import (
    as_array,
    broadcast_to_shape,
    common_shape,
    number_operand,
    promoted_dtypes,
    promoted_inexact_dtypes,
)

# ---- from vectors --------------------------------------------------------------------------------------------


@one_program
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make the Toeplitz matrix, with constant diagonals, of first column c and first row r.

    Args:
      c: [.., m]; leading axes broadcast.
      r: [.., n], whose first element is not read; the conjugate of c if None.
    Returns: [.., m, n].
    Raises: ValueError if leading axes do not broadcast.
    """
    column = tnp.atleast_1d(number_operand("toeplitz", c))
    row = tnp.conj(column) if r is None else tnp.atleast_1d(number_operand("toeplitz", r))
    first, second = map(as_array, promoted_dtypes("toeplitz", column, row))
    m, n = first.shape[-1], second.shape[-1]
    if not m * n:
        return tnp.zeros((*common_shape("toeplitz", first.shape[:-1], second.shape[:-1]), m, n), first.dtype)
    return _picked("toeplitz", [first[..., ::-1], second[..., 1:]], m - 1 - np.arange(m)[:, None] + np.arange(n))


@one_program
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make the Hankel matrix, with constant antidiagonals, of first column c and last row r.

    Args:
      c: [.., m]; leading axes broadcast.
      r: [.., n], whose first element is not read; zeros like c if None.
    Returns: [.., m, n].
    Raises: ValueError if c or r is a number, or leading axes do not broadcast.
    """
    column = number_operand("hankel", c)
    row = tnp.zeros_like(column) if r is None else number_operand("hankel", r)
    first, second = map(as_array, promoted_dtypes("hankel", column, row))
    if not first.ndim or not second.ndim:
        raise ValueError(f"hankel: c and r must be vectors, not {first.aval} and {second.aval}.")
    m, n = first.shape[-1], second.shape[-1]
    if not m * n:
        return tnp.zeros((*common_shape("hankel", first.shape[:-1], second.shape[:-1]), m, n), first.dtype)
    return _picked("hankel", [first, second[..., 1:]], np.arange(m)[:, None] + np.arange(n))


@one_program
def circulant(c: ArrayLike) -> Array:
    """Make the circulant matrix [.., n, n]: column j is c [.., n], rotated down by j."""
    x = tnp.atleast_1d(number_operand("circulant", c))
    n = x.shape[-1]
    places = np.arange(n)
    return _picked("circulant", [x], (places[:, None] - places) % max(n, 1))


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Make the matrix whose product with a vector of n elements is its convolution with a.

    Args:
      a: [.., m].
      mode: "full", "valid" or "same", as of `numpy.convolve`.
    Returns: [.., k, n], k being the length of that convolution.
    Raises: ValueError if a has no elements or n is not positive, or there is no such mode; TypeError if n is no
      integer.
    """
    n, x = operator.index(n), number_operand("convolution_matrix", a)
    if n < 1 or not x.ndim or not x.shape[-1]:
        raise ValueError(f"convolution_matrix: a vector with elements and a positive n, not {x.aval} and {n}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolution_matrix: mode must be 'full', 'valid' or 'same', not {mode!r}.")
    m = x.shape[-1]
    cut = 0 if mode == "full" else min(n, m) - 1
    top, bottom = (cut // 2, cut - cut // 2) if mode == "same" else (cut, cut)
    places = np.arange(top, m + n - 1 - bottom)[:, None] - np.arange(n)
    inside = (places >= 0) & (places < m)
    return _picked("convolution_matrix", [x, _zeros(x)], np.where(inside, places, m))


@one_program
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Make the Leslie matrix of a population: fecundities in the first row, survival below the diagonal.

    Args:
      f: [.., n], n being at least 2; leading axes broadcast.
      s: [.., n - 1].
    Returns: [.., n, n].
    Raises: ValueError if shapes do not fit.
    """
    first, below = (tnp.atleast_1d(number_operand("leslie", v)) for v in promoted_dtypes("leslie", f, s))
    n = first.shape[-1]
    if n < 2 or below.shape[-1] != n - 1:
        raise ValueError(f"leslie: f [.., n] and s [.., n - 1], n at least 2, not {first.aval} and {below.aval}.")
    places = np.full((n, n), 2 * n - 1)
    places[0] = np.arange(n)
    places[np.arange(1, n), np.arange(n - 1)] = n + np.arange(n - 1)
    return _picked("leslie", [first, below, _zeros(first)], places)


@one_program
def companion(a: ArrayLike) -> Array:
    """Make the companion matrix of a polynomial, whose eigenvalues are its roots.

    Args:
      a: [.., n + 1], the coefficients, that of the highest power first; n is at least 1.
    Returns: [.., n, n], floating point or complex.
    Raises: ValueError if there are fewer than two coefficients.
    """
    x = _coefficients("companion", a, 2)
    n = x.shape[-1] - 1
    places = np.full((n, n), n)
    places[0] = np.arange(n)
    places[np.arange(1, n), np.arange(n - 1)] = n + 1
    return _picked("companion", [-x[..., 1:] / x[..., :1], _zeros(x), _zeros(x) + 1], places)


@one_program
def fiedler(a: ArrayLike) -> Array:
    """Make the Fiedler matrix [.., n, n] of the absolute values of all differences of elements of a [.., n]."""
    x = tnp.atleast_1d(number_operand("fiedler", a))
    return tnp.abs(x[..., :, None] - x[..., None, :])


@one_program
def fiedler_companion(a: ArrayLike) -> Array:
    """Make the Fiedler companion matrix of a polynomial, with five diagonals, whose eigenvalues are its roots.

    Args:
      a: [.., n + 1], the coefficients, that of the highest power first.
    Returns: [.., n, n], floating point or complex.
    Raises: ValueError if there is no coefficient.
    Source: Fiedler 2003, "A note on companion matrices".
    """
    x = _coefficients("fiedler_companion", a, 1)
    n = x.shape[-1] - 1
    zero, one = n, n + 1  # their positions, after those of the n negated coefficients
    places = np.full((n, n), zero)
    odd, even = np.arange(1, n, 2), np.arange(0, n, 2)
    places[odd[1:], odd[:-1]] = places[even[:-1], even[1:]] = one
    places[even[1:], even[1:] - 1] = even[1:]
    places[odd - 1, odd] = odd
    if n:
        places[0, 0] = 0
    if n > 1:
        places[1, 0] = one
    return _picked("fiedler_companion", [-x[..., 1:] / x[..., :1], _zeros(x), _zeros(x) + 1], places)


def block_diag(*arrs: ArrayLike) -> Array:
    """Make the block diagonal matrix.

    Args:
      arrs: [m, n] each; a vector is a row, a number a matrix of one element.
    Returns: a matrix of all their rows and columns; [1, 0] without arguments.
    Raises: ValueError for an array of more than two axes.
    """
    if not arrs:
        return tnp.zeros((1, 0))
    blocks = [tnp.atleast_2d(as_array(x)) for x in promoted_dtypes("block_diag", *arrs)]
    for i, x in enumerate(blocks):
        if x.ndim > 2:
            raise ValueError(f"block_diag: argument {i} must have at most two axes: {x.aval}.")
    columns, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(tnp.pad(x, ((0, 0), (before, columns - before - x.shape[1]))))
        before += x.shape[1]
    return tnp.concatenate(rows)


def _coefficients(name: str, a: ArrayLike, least: int) -> Array:
    x = tnp.atleast_1d(as_array(promoted_inexact_dtypes(name, a)[0]))
    if x.shape[-1] < least:
        raise ValueError(f"{name}: a polynomial has at least {least} coefficients: {x.aval}.")
    return x


def _zeros(x: Array) -> Array:
    return tnp.zeros_like(x, shape=(1,))


def _picked(name: str, parts: list[Array], places: np.ndarray[Any, Any]) -> Array:
    """Make matrices by gathering from the joined vectors `parts` at positions [m, n]; their leading axes broadcast."""
    batch = common_shape(name, *(x.shape[:-1] for x in parts))
    return _elements_at(*parts, batch=batch, places=_Places(places))


class _Places:
    """An array of positions that is hashable, as a static parameter."""

    def __init__(self, places: np.ndarray[Any, Any]) -> None:
        self.places = places.astype(np.int32)
        self.key = self.places.tobytes(), places.shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Places) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@core.compound
def _elements_at(*parts: Any, batch: tuple[int, ...], places: _Places) -> Any:
    return tnp.concatenate([broadcast_to_shape(x, (*batch, x.shape[-1])) for x in parts], -1)[..., places.places]


# ---- from a size ---------------------------------------------------------------------------------------------


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """Make the matrix [n, n] of the discrete Fourier transform: exp(-2 pi i j k / n).

    Args:
      scale: None, or the divisor: "sqrtn", which makes it unitary, or "n".
      dtype: complex; the default one if None.
    Raises: ValueError for another scale or dtype, or a negative n; TypeError if n is no integer.
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', not {scale!r}.")
    wanted = dtypes.default_dtype("c") if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_complex(wanted):
        raise ValueError(f"dft: dtype must be complex, not {wanted}.")
    k = np.arange(_size("dft", n))
    turns = np.outer(k, k) % max(n, 1) / max(n, 1)
    found = np.exp(-2j * np.pi * turns) / {None: 1, "sqrtn": math.sqrt(max(n, 1)), "n": max(n, 1)}[scale]
    return tnp.asarray(found.astype(wanted))


def hadamard(n: int, dtype: Any = int) -> Array:
    """Make the Hadamard matrix [n, n] of 1 and -1, by Sylvester's construction.

    Raises: ValueError unless n is a power of 2; TypeError if it is no integer.
    """
    if _size("hadamard", n) < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, not {n}.")
    k = np.arange(n)
    return tnp.asarray(1 - 2 * (np.bitwise_count(k[:, None] & k) % 2).astype(int), dtype=dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Make the orthogonal Helmert matrix [n, n], without its first row of equal elements unless `full`.

    Raises: ValueError unless n is positive; TypeError if it is no integer.
    """
    if _size("helmert", n) < 1:
        raise ValueError(f"helmert: n must be positive, not {n}.")
    k = np.arange(1.0, n)[:, None]
    j = np.arange(n)
    rows = np.where(j < k, 1, np.where(j == k, -k, 0)) / np.sqrt(k * (k + 1))
    return _float_array(np.concatenate([np.full((1, n), 1 / math.sqrt(n)), rows]) if full else rows)


def hilbert(n: int) -> Array:
    """Make the Hilbert matrix [n, n]: 1 / (i + j + 1).

    Raises: ValueError if n is negative; TypeError if it is no integer.
    """
    k = np.arange(_size("hilbert", n))
    return _float_array(1 / (k[:, None] + k + 1))


def invhilbert(n: int) -> Array:
    """Make the inverse [n, n] of the Hilbert matrix, whose elements are integers, each correctly rounded.

    Raises: ValueError if n is negative; TypeError if it is no integer.
    Source: Choi 1983, "Tricks or treats with the Hilbert matrix".
    """

    def element(i: int, j: int) -> int:
        size = (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return _of_integers("invhilbert", n, element)


def pascal(n: int, kind: str | None = None) -> Array:
    """Make the Pascal matrix [n, n] of binomial coefficients, each correctly rounded.

    Args:
      kind: "lower" for the coefficients (i over j), "upper" for its transpose, "symmetric" (also None) for the product
        of both.
    Returns: [n, n], default floating point.
    Raises: ValueError for another kind or a negative n; TypeError if n is no integer.
    """
    elements = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": lambda i, j: math.comb(i, j),
        "upper": lambda i, j: math.comb(j, i),
    }
    return _of_integers("pascal", n, _chosen("pascal", kind, elements))


def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse [n, n] of the Pascal matrix, each element correctly rounded.

    Args, Returns, Raises: as for `pascal`.
    """

    def symmetric(i: int, j: int) -> int:
        return (-1) ** (i + j) * sum(math.comb(k, i) * math.comb(k, j) for k in range(max(i, j), n))

    elements = {
        "symmetric": symmetric,
        "lower": lambda i, j: (-1) ** (i + j) * math.comb(i, j),
        "upper": lambda i, j: (-1) ** (i + j) * math.comb(j, i),
    }
    return _of_integers("invpascal", n, _chosen("invpascal", kind, elements))


def _chosen(name: str, kind: Any, elements: dict[str, Callable[[int, int], int]]) -> Callable[[int, int], int]:
    if kind not in (None, *elements):
        raise ValueError(f"{name}: kind must be 'symmetric', 'lower' or 'upper', not {kind!r}.")
    return elements[kind or "symmetric"]


def _of_integers(name: str, n: int, element: Callable[[int, int], int]) -> Array:
    found = [[_rounded(element(i, j)) for j in range(n)] for i in range(_size(name, n))]
    return _float_array(np.array(found, float).reshape(n, n))


def _rounded(x: int) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def _float_array(x: np.ndarray[Any, Any]) -> Array:
    dtype = dtypes.default_dtype("f")
    with np.errstate(over="ignore"):
        return tnp.asarray(x.astype(dtype))


def _size(name: str, n: Any) -> int:
    size = operator.index(n)
    if size < 0:
        raise ValueError(f"{name}: the size of a matrix is not negative: {size}.")
    return size
