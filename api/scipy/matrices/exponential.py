"""The exponential of matrices and its derivative, by scaling and squaring of Padé's approximations.

Source: Higham 2005, "The scaling and squaring method for the matrix exponential revisited"; one order of approximation
for each dtype, the largest of his: lower ones would save products for small matrices only. How often to square: Al-Mohy
and Higham 2009, "A new scaling and squaring algorithm for the matrix exponential", section 3: by the norms of powers,
which may be far below powers of the norm, as each squaring too many doubles rounding errors.
"""

from functools import partial
from typing import Any

import numpy as np

from tapeless.batch.vmap import vectorize
from tapeless.compile.jit import jit
from tapeless.control_flow.branches_and_loops import cond
from tapeless.control_flow.scan import scan
from tapeless.differentiate.autodiff import jvp
from tapeless.scipy.matrices.linear_systems import solve_triangular
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.decompositions import matrix_operand
from tapeless.tracer.numpy.norms import norm
from tapeless.tracer.numpy.promotion import array_operand, mixing_inside, promoted_inexact_dtypes
from tapeless.tracer.numpy.systems import solve
from tapeless.tracer.primitives.contraction import Precision
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.primitives.linalg import check_square

# Coefficients of Padé's approximations of orders 7 and 13, and the norms up to which they are exact to the dtype.
_ORDER_7 = (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0, 1.0)
_ORDER_13 = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_NORM_7, _NORM_13 = 3.925724783138660, 5.371920351148152
_NORM_13_OF_POWERS = 4.25  # smaller, for a denominator that is well conditioned
_NEXT_7, _NEXT_13 = 2.228e-16, 8.830e-36  # the first coefficients of their backward errors, of powers 15 and 27


@one_program
@mixing_inside
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the exponential of a matrix.

    Args:
      A: [.., n, n].
      upper_triangular: promise that A is, so that a system is solved without factorization.
      max_squarings: the result is nan if more would be needed: by default for norms above 4 * 2^17, unless the norms of
        powers are far below the powers of the norm.
    Returns: [.., n, n], floating point or complex.
    Raises: ValueError if A is not a square matrix, TypeError if it is of half precision.
    """
    x = matrix_operand("expm", A)
    check_square("expm", x.aval, f"{x.aval}")
    return _expm(x, upper_triangular=bool(upper_triangular), max_squarings=int(max_squarings)) if x.size else x


@partial(jit, static_argnames=("upper_triangular", "max_squarings"))
def _expm(x: Any, *, upper_triangular: bool, max_squarings: int) -> Any:
    one = partial(_of_one, upper_triangular=upper_triangular, max_squarings=max_squarings)
    return vectorize(one, signature="(n,n)->(n,n)")(x)


def _of_one(x: Any, *, upper_triangular: bool, max_squarings: int) -> Any:
    wide = dtypes.bits_of(dtypes.real_part_dtype(x.dtype)) > 32
    needed = _squarings(stop_gradient(x), wide)
    squarings = tnp.maximum(0, needed)
    odd, even = _approximation(x * tnp.exp2(-squarings).astype(x.dtype), _ORDER_13 if wide else _ORDER_7)
    found = solve_triangular(even - odd, even + odd) if upper_triangular else solve(even - odd, even + odd)

    def square(y: Any, k: Any) -> tuple[Any, None]:
        return cond(k < squarings, lambda y: _product(y, y), lambda y: y, y), None

    found, _ = scan(square, found, np.arange(max_squarings + 1, dtype=np.float32))
    return tnp.where(needed > max_squarings + 1, np.nan, found)


def _squarings(x: Any, wide: bool) -> Any:
    """Count the squarings after which the approximation of x over a power of 2 is exact to the dtype.

    By the norm, or by the norms of powers where that is less; powers that overflow are nan or infinite, and the norm's
    count is taken.
    """
    square = _product(x, x)
    fourth = _product(square, square)
    sixth = _product(square, fourth)
    d6, d8 = norm(sixth, 1) ** (1 / 6), norm(_product(fourth, fourth), 1) ** (1 / 8)
    spread = tnp.maximum(d6, d8)
    if wide:
        spread = tnp.minimum(spread, tnp.maximum(d8, norm(_product(fourth, sixth), 1) ** (1 / 10)))
    few = tnp.maximum(0, tnp.ceil(tnp.log2(spread / (_NORM_13_OF_POWERS if wide else _NORM_7))))
    magnitudes = abs(x)
    few = few + _more(magnitudes * tnp.exp2(-few).astype(magnitudes.dtype), wide)
    return tnp.fmin(tnp.ceil(tnp.log2(norm(x, 1) / (_NORM_13 if wide else _NORM_7))), few)


def _more(x: Any, wide: bool) -> Any:
    """Count the squarings by which the first term of the backward error, of magnitudes, is small, too."""
    order = 13 if wide else 7
    sums, _ = scan(lambda row, _: (_product(row, x), None), tnp.ones(x.shape[0], x.dtype), None, length=2 * order + 1)
    error = (_NEXT_13 if wide else _NEXT_7) * tnp.max(sums) / norm(x, 1)
    return tnp.maximum(0, tnp.ceil(tnp.log2(error / dtypes.finfo(x.dtype).eps * 2) / (2 * order)))


def _approximation(x: Any, coefficients: tuple[float, ...]) -> tuple[Any, Any]:
    """Compute odd and even part of Padé's numerator: of powers up to 6, of order 13 also the 6th times these."""
    identity, square = tnp.eye(x.shape[0], dtype=x.dtype), _product(x, x)
    powers = [identity, square]
    for _ in range(2):
        powers.append(_product(powers[-1], square))

    def part(parity: int) -> Any:
        c = coefficients[parity::2]
        low = sum(b * p for b, p in zip(c[:4], powers))
        if len(c) <= 4:
            return low
        return low + _product(powers[3], sum(b * p for b, p in zip(c[4:], powers[1:])))

    return _product(x, part(1)), part(0)


def _product(x: Any, y: Any) -> Any:
    return tnp.matmul(x, y, precision=Precision.HIGHEST)


@mixing_inside
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """Compute the exponential of a matrix, and its derivative in a direction.

    Args:
      A: [.., n, n].
      E: [.., n, n], the direction.
      method: "SPS", which None is, to differentiate the approximation; "blockEnlarge" to take it from the exponential
        of the matrix of the blocks A, E and A.
      compute_expm: whether the exponential is wanted, too.
    Returns: (exponential, derivative), each [.., n, n], or the derivative.
    Raises: ValueError if A is not a square matrix, E has another shape or there is no such method; TypeError if they
      are of half precision.
    Source: Al-Mohy & Higham 2009, "Computing the Fréchet derivative of the matrix exponential".
    """
    x, t = (array_operand("expm_frechet", v) for v in promoted_inexact_dtypes("expm_frechet", A, E))
    check_square("expm_frechet", x.aval, f"{x.aval} and {t.aval}")
    if x.shape != t.shape:
        raise ValueError(f"expm_frechet: A and E must have one shape: {x.aval} and {t.aval}.")
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"expm_frechet: method must be 'SPS' or 'blockEnlarge', not {method!r}.")
    if method == "blockEnlarge":
        n = x.shape[-1]
        whole = expm(tnp.block([[x, t], [tnp.zeros_like(x), x]]))
        value, slope = whole[..., :n, :n], whole[..., :n, n:]
    else:
        value, slope = jvp(expm, (x,), (t,))
    return (value, slope) if compute_expm else slope
