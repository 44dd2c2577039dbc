"""Linear systems, inverses, least squares, determinants, ranks and matrix powers, as `numpy.linalg` has them.

Matrices are in the last two axes; integers become floating point.
"""

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy import contraction, matrices
from tapeless.tracer.numpy.decompositions import matrix_operand, svdvals
from tapeless.tracer.numpy.matrices import eye
from tapeless.tracer.numpy.norms import norm
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcast_to_shape,
    cast,
    check_operands,
    common_shape,
    concrete,
    format_shape,
    promoted_dtypes,
    promoted_inexact_dtypes,
)
from tapeless.tracer.numpy.reductions import checked_axes
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.numpy.triangles import diagonal_of, lu_solve, parity
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import factorization, spectral
from tapeless.tracer.primitives.contraction import check_contraction, full_matmul
from tapeless.tracer.primitives.linalg import check_matrix, check_square
from tapeless.tracer.primitives.linear_solve import System, linear_solve
from tapeless.tracer.primitives.operands import shape_of
from tapeless.tracer.primitives.reduction import reduce_max, reduce_or, reduce_prod, reduce_sum
from tapeless.tracer.primitives.shape import broadcast_in_dim, expand_dims, reshape, slice_in_dim, squeeze
from tapeless.tracer.primitives.shape import transpose as transposed
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

# ---- systems -------------------------------------------------------------------------------------------------


@one_program
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve a @ x = b for x.

    Derivatives solve with the same LU factors; the factorization itself is not differentiated.

    Args:
      a: [.., n, n]; the leading axes broadcast with those of b.
      b: [.., n, m], or a vector [n].
    Returns: x, of the shape of b with broadcast leading axes; infinite or nan if a is singular.
    Raises: ValueError if shapes do not fit, TypeError for half precision; both operands are named.
    """
    x, y = (array_operand("solve", v) for v in promoted_inexact_dtypes("solve", a, b))
    given = f"{x.aval} and {y.aval}"
    check_square("solve", x.aval, given)
    vector = y.ndim == 1
    if vector:
        y = expand_dims(y, (1,))
    if y.ndim < 2 or y.shape[-2] != x.shape[-1]:
        raise ValueError(f"solve: the right side must be [.., n, m], or [n], with n = {x.shape[-1]}: {given}.")
    _check_batches(x, y, given)
    found = _solve_all(x, y) if x.ndim == 2 and y.ndim > 2 else _solve(x, y)
    return squeeze(found, (found.ndim - 1,)) if vector else found


def _check_batches(a: Array, b: Array, given: str) -> None:
    try:
        common_shape("solve", a.shape[:-2], b.shape[:-2])
    except ValueError:
        batches = f"{format_shape(a.shape[:-2])} and {format_shape(b.shape[:-2])}"
        raise ValueError(f"solve: the leading axes of {given} do not broadcast: {batches}.") from None


def _solve_all(a: Array, b: Array) -> Array:
    """Solve for one matrix and batches of right sides, as columns of a single right side."""
    rows = moveaxis(b, -2, 0)
    found = _solve(a, reshape(rows, (rows.shape[0], math.prod(rows.shape[1:]))))
    return moveaxis(reshape(found, rows.shape), 0, -2)


@core.compound
def _solve(a: Array, b: Array) -> Array:
    batch = common_shape("solve", a.shape[:-2], b.shape[:-2])
    a, b = (broadcast_to_shape(x, (*batch, *x.shape[-2:])) for x in (a, b))
    factors, _, permutation = factorization.lu(lax.stop_gradient(a))
    weak = a.aval.weak_type and b.aval.weak_type
    system = _system(a.aval.update(weak_type=weak), b.aval.update(weak_type=weak))
    known = (factors, permutation)
    return linear_solve(system, [(a,), (a,), known, known], [b])[0]


@functools.lru_cache(maxsize=256)
def _system(a: ShapedArray, b: ShapedArray) -> System:
    """Trace the maps and solvers of a @ x = b and of a^T @ x = b."""
    permutation = a.update(shape=a.shape[:-1], dtype=np.dtype(np.int32), weak_type=False)
    known = (a, permutation, b)

    def turned(a: Array, x: Array) -> Array:
        n = a.ndim
        return full_matmul(transposed(a, (*range(n - 2), n - 1, n - 2)), x)

    return System(
        _program(full_matmul, (a, b)),
        _program(turned, (a, b)),
        _program(lu_solve, known),
        _program(functools.partial(lu_solve, transposed=True), known),
    )


def _program(f: Any, avals: Sequence[ShapedArray]) -> Any:
    return trace_to_jaxpr(lambda *xs: (f(*xs),), avals, what="solve")[0]


@one_program
def inv(a: ArrayLike) -> Array:
    """Compute the inverse [.., n, n] of a [.., n, n]; infinite or nan if a is singular.

    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    x = matrix_operand("inv", a)
    check_square("inv", x.aval, f"{x.aval}")
    return solve(x, broadcast_in_dim(eye(x.shape[-1], dtype=x.dtype), x.shape, (x.ndim - 2, x.ndim - 1)))


@one_program
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """Compute the (Moore-Penrose) pseudoinverse [.., n, m] of a [.., m, n].

    Args:
      rtol: singular values up to `rtol`, [..], times the largest count as 0; 10 max(m, n) times the dtype's eps if
        None.
      hermitian: a is Hermitian, which is not checked: its eigenvalues are computed.
      rcond: another name of `rtol`.
    Raises: ValueError if a has fewer than two axes, `rtol` and [..] do not broadcast, or both names are given;
      TypeError if a is of half precision, or `rtol` complex.
    """
    if rtol is not None and rcond is not None:
        raise ValueError(f"pinv: rtol, {rtol!r}, and rcond, {rcond!r}, are two names of one number: give one of them.")
    x = matrix_operand("pinv", a)
    check_matrix("pinv", x.aval)
    least = rcond if rtol is None else rtol
    relative = array_operand("pinv", 10 * _noise(x) if least is None else least)
    if dtypes.is_complex(relative.dtype):
        raise TypeError(f"pinv: rtol must be real, not {relative.aval}.")
    batch = common_shape("pinv: rtol and matrices", relative.shape, x.shape[:-2])
    return factorization.pinv(
        broadcast_to_shape(x, (*batch, *x.shape[-2:])), broadcast_to_shape(relative, batch), hermitian
    )


def _known_number(name: str, what: str, x: Any) -> float | None:
    """Convert x to a float; None stays. Raises: TypeError if it has axes; ConcretizationTypeError if traced."""
    if x is None:
        return None
    check_operands(name, x)
    if shape_of(x):
        raise TypeError(f"{name}: {what} must be one number, not {aval_of(x)}.")
    return float(x)


def _noise(x: Array) -> float:
    """Bound the rounding errors of singular values, relative to the largest."""
    return max(x.shape[-2:]) * float(dtypes.finfo(x.dtype).eps)


@one_program
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solve a linear least-squares problem: the x of least norm that minimises the norm of a @ x - b.

    Args:
      a: [m, n].
      b: [m, k], or a vector [m].
      rcond: singular values up to `rcond` times the largest count as 0; max(m, n) times the dtype's eps if None.
      numpy_resid: return no sums of squares where NumPy returns none: unless a has full rank, which must be known, and
        more rows than columns.
    Returns: x [n, k] or [n]; the sums of squares of a @ x - b, [k] or [1]; the rank of a; its singular values.
    Raises: ValueError if shapes do not fit, both operands named; TypeError for half precision; ConcretizationTypeError
      if `numpy_resid` and an operand is traced.
    """
    x, y = (array_operand("lstsq", v) for v in promoted_inexact_dtypes("lstsq", a, b))
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ValueError(f"lstsq: a matrix [m, n] and a right side [m, k] or [m], not {x.aval} and {y.aval}.")
    least = _known_number("lstsq", "rcond", rcond)
    least = _noise(x) if least is None else least
    right = expand_dims(y, (1,)) if y.ndim == 1 else y
    found, _ = factorization.least_squares(x, right, least)
    sizes = lax.abs(lax.sub(full_matmul(x, found), right))
    solution = squeeze(found, (1,)) if y.ndim == 1 else found
    squares, values = reduce_sum(lax.square(sizes), (0,)), svdvals(x)
    rank = _count_above(values, least)
    if numpy_resid and (x.shape[0] <= x.shape[1] or concrete("lstsq", rank, _RESIDUALS_HELP) < x.shape[1]):
        squares = slice_in_dim(squares, 0, 0)
    return solution, squares, rank, values


_RESIDUALS_HELP = "Leave out numpy_resid: the sums of squares are returned in any case."


@one_program
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Invert the linear map y = tensordot(a, x, a.ndim - ind) of arrays: x = tensordot(tensorinv(a), y, ind).

    Args:
      a: [r.., c..], where r.. are `ind` axes with as many elements together as the axes c..
    Returns: [c.., r..]; infinite or nan if a is singular as a matrix.
    Raises: ValueError if ind is not positive, or numbers of elements differ; TypeError if it is no integer, or a is of
      half precision.
    """
    x = matrix_operand("tensorinv", a)
    k = _integer("tensorinv", "ind", ind)
    if k <= 0:
        raise ValueError(f"tensorinv: ind must be positive, not {k}.")
    rows, columns = x.shape[:k], x.shape[k:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"tensorinv: the first {k} axes of {x.aval} must have as many elements as the others.")
    n = math.prod(rows)
    return reshape(inv(reshape(x, (n, n))), (*columns, *rows))


@one_program
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve tensordot(a, x, x.ndim) = b for x.

    Args:
      a: [b.., x..], where the axes x.. have as many elements together as b.
      b: [b..].
      axes: the axes of a that are x.., moved to its end first; none are moved if None.
    Returns: [x..]; infinite or nan if a is singular as a matrix.
    Raises: ValueError if shapes do not fit, both operands named, or an axis is out of range or named twice; TypeError
      for half precision.
    """
    x, y = (array_operand("tensorsolve", v) for v in promoted_inexact_dtypes("tensorsolve", a, b))
    if axes is not None:
        x = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    shape = x.shape[y.ndim :]
    if math.prod(shape) != y.size or x.size != y.size**2:
        raise ValueError(f"tensorsolve: {x.aval} is no system for {y.aval}: its last axes must have {y.size} elements.")
    return reshape(solve(reshape(x, (y.size, y.size)), reshape(y, (y.size,))), shape)


# ---- diagonals, traces and cross products of the last axes ---------------------------------------------------


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Extract the diagonals of the matrices in the last two axes.

    Args:
      x: [.., m, n], of any dtype.
      offset: which diagonal: j - i of its elements [.., i, j]. A diagonal beyond the matrix is empty.
    Returns: [.., k], of the dtype of x.
    Raises: ValueError if x has fewer than two axes.
    """
    return matrices.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of the matrices in the last two axes.

    Args:
      x: [.., m, n], of any dtype.
      offset: which diagonal, as for `diagonal`.
      dtype: of the sums; if None that of x, but narrow integers and booleans become the default integer.
    Returns: [..].
    Raises: ValueError if x has fewer than two axes, TypeError if there is no such dtype.
    """
    return matrices.trace(x, offset, -2, -1, dtype)


@one_program
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Compute cross products of vectors of 3 numbers along an axis; the other axes broadcast.

    Args:
      x1, x2: [.., 3], with the vectors in `axis`.
    Returns: the products, along the same axis.
    Raises: ValueError for vectors of another length, other axes that do not broadcast, or an axis out of range;
      TypeError for bool.
    """
    x, y = array_operand("cross", x1), array_operand("cross", x2)
    if any(v.shape[checked_axes("cross", v, axis)[0]] != 3 for v in (x, y)):
        raise ValueError(f"cross: vectors must have 3 elements along axis {axis}: {x.aval} and {y.aval}.")
    return contraction.cross(x, y, axis=axis)


# ---- determinants --------------------------------------------------------------------------------------------


class SlogdetResult(NamedTuple):
    """Sign of a determinant, of absolute value 1 or 0, and the logarithm of its absolute value, which is real."""

    sign: Array
    logabsdet: Array


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply every element of a vector x1 [m] with every element of a vector x2 [n]: [m, n].

    Raises: ValueError if one is no vector; both are named.
    """
    x, y = array_operand("outer", x1), array_operand("outer", x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"outer: both must be vectors, not {x.aval} and {y.aval}; tnp.outer takes them as flat.")
    return contraction.outer(x, y)


@one_program
def det(a: ArrayLike) -> Array:
    """Compute the determinant [..] of a [.., n, n]; its gradient is exact also for a singular matrix.

    Raises: ValueError if a is not a square matrix, TypeError if it is of half precision.
    """
    return factorization.det(matrix_operand("det", a))


@one_program
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Compute the sign, and the logarithm of the absolute value, of the determinant; (0, -inf) for a singular matrix.

    Args:
      a: [.., n, n].
      method: None, "lu" or "qr": accepted, as in JAX; the factorization is LU.
    Returns: (sign, logabsdet), a named tuple, each [..]; the logarithm is real.
    Raises: ValueError if a is not a square matrix or for another method, TypeError if it is of half precision.
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be 'lu', 'qr' or None, not {method!r}.")
    x = matrix_operand("slogdet", a)
    check_square("slogdet", x.aval, f"{x.aval}")
    return SlogdetResult(*_slogdet(x))


@core.compound
def _slogdet(x: Array) -> tuple[Array, Array]:
    factors, pivots, _ = factorization.lu(x)
    values, last = diagonal_of(factors), (x.ndim - 2,)
    sign = lax.mul(reduce_prod(lax.sign(values), last), parity(pivots, x.dtype))
    return sign, reduce_sum(lax.log(lax.abs(values)), last)


# ---- rank, condition, powers ---------------------------------------------------------------------------------


@one_program
def matrix_rank(
    M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False, tol: ArrayLike | None = None
) -> Array:
    """Count the singular values above `rtol` times the largest; for a vector 1, or 0 if all elements are 0.

    Args:
      M: [.., m, n], or fewer axes for a vector.
      rtol: max(m, n) times the dtype's eps if None; an array has the shape of the result.
      hermitian: M is Hermitian, which is not checked: its eigenvalues are computed.
      tol: another name of `rtol`.
    Returns: [..], the default integer.
    Raises: ValueError if `rtol` has not the shape of the result, TypeError if M is a matrix of half precision.
    """
    x = matrix_operand("matrix_rank", M)
    if x.ndim < 2:
        return lax.convert_element_type(reduce_or(lax.ne(x, 0), tuple(range(x.ndim))), dtypes.default_dtype("i"))
    values = lax.abs(spectral.eigvalsh(x)) if hermitian else svdvals(x)
    least = tol if rtol is None else rtol
    return _count_above(values, _noise(x) if least is None else least)


def _count_above(values: Array, rtol: ArrayLike) -> Array:
    """Count the singular values above `rtol` times the largest."""
    batch, last = values.shape[:-1], (values.ndim - 1,)
    relative = broadcast_to_shape(cast(array_operand("matrix_rank", rtol), values.dtype), batch)
    bound = lax.mul(reduce_max(values, last) if values.size else reduce_sum(values, last), relative)
    bound = broadcast_in_dim(bound, values.shape, range(values.ndim - 1))
    return reduce_sum(lax.convert_element_type(lax.gt(values, bound), dtypes.default_dtype("i")), last)


@one_program
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """Compute the condition number of matrices: by singular values (p None, 2, -2), or norm(x) norm(inv(x)).

    Args:
      x: [.., m, n].
      p: a norm of matrices, as for `norm`.
    Returns: [..], real.
    Raises: ValueError if x has fewer than two axes, has no elements, is not square for other p, or there is no such
      norm; TypeError if it is of half precision.
    """
    matrix = matrix_operand("cond", x)
    check_matrix("cond", matrix.aval)
    if not math.prod(matrix.shape[-2:]):
        raise ValueError(f"cond: a matrix without elements has no condition number: {matrix.aval}.")
    if p in (None, 2, -2):
        values = spectral.svd(matrix, compute_uv=False)
        return lax.div(values[..., -1], values[..., 0]) if p == -2 else lax.div(values[..., 0], values[..., -1])
    return lax.mul(norm(matrix, p, (-2, -1)), norm(inv(matrix), p, (-2, -1)))


@one_program
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Compute the power a @ a @ .. @ a of n factors, by squaring; powers of the inverse if n is negative.

    Args:
      a: [.., m, m].
      n: a known integer; 0 gives the identity.
    Returns: [.., m, m].
    Raises: ValueError if a is not a square matrix; TypeError if n is no integer, or negative for half precision.
    """
    x, exponent = array_operand("matrix_power", a), _integer("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: the matrix must be square, [.., n, n]: {x.aval}.")
    if exponent == 0:
        return broadcast_in_dim(eye(x.shape[-1], dtype=x.dtype), x.shape, (x.ndim - 2, x.ndim - 1))
    return _power(x, exponent) if exponent > 0 else _power(inv(x), -exponent)


def _integer(name: str, parameter: str, n: Any) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"{name}: {parameter} must be an integer, not {n!r}.") from None


def _power(x: Array, n: int) -> Array:
    if n == 1:
        return x
    half = _power(x, n // 2)
    square = contraction.matmul(half, half)
    return contraction.matmul(square, x) if n % 2 else square


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """Multiply matrices, of which the first and last may be vectors, in the order of fewest multiplications.

    Args:
      arrays: [m, k], [k, l], .., [.., n]; the first may be [k], the last lack the axis n.
      precision: as for `lax.dot_general`.
    Returns: [m, n], without the axis that a vector lacks.
    Raises: ValueError for fewer than two arrays, or others than matrices in between; TypeError if sizes do not fit.
    Source: Cormen et al., "Introduction to algorithms", matrix-chain multiplication.
    """
    xs = [as_array(x) for x in promoted_dtypes("multi_dot", *arrays)] if arrays else []
    if len(xs) < 2:
        raise ValueError(f"multi_dot: at least two arrays, not {len(xs)}.")
    if any(x.ndim != 2 for x in xs[1:-1]) or not all(x.ndim in (1, 2) for x in xs):
        raise ValueError(f"multi_dot: matrices, between matrices or vectors, not {', '.join(str(x.aval) for x in xs)}.")
    for x, y in itertools.pairwise(xs):
        check_contraction("multi_dot", x.aval, y.aval, (((x.ndim - 1,), (0,)), ((), ())))
    rows = [x.shape[0] if x.ndim == 2 else 1 for x in xs[:1]] + [x.shape[0] for x in xs[1:]]
    return _chain_product(xs, (*rows, xs[-1].shape[1] if xs[-1].ndim == 2 else 1), precision)


def _chain_product(xs: Sequence[Array], sizes: tuple[int, ...], precision: Any) -> Array:
    """Multiply matrices, of which matrix i has the sizes [sizes[i], sizes[i + 1]], in the cheapest order."""
    if len(xs) == 1:
        return xs[0]
    k = 1 + _cheapest_split(sizes)[1]
    first, second = _chain_product(xs[:k], sizes[: k + 1], precision), _chain_product(xs[k:], sizes[k:], precision)
    return contraction.matmul(first, second, precision=precision)


@functools.lru_cache(maxsize=4096)
def _cheapest_split(sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the multiplications of a chain of matrices, and the last matrix of the outermost product's left factor."""
    if len(sizes) == 2:
        return 0, 0
    return min(
        (
            _cheapest_split(sizes[: k + 2])[0]
            + _cheapest_split(sizes[k + 1 :])[0]
            + sizes[0] * sizes[k + 1] * sizes[-1],
            k,
        )
        for k in range(len(sizes) - 2)
    )
