"""The gamma function, beta functions, Pochhammer's symbol, factorials and binomial coefficients, for real numbers.

Integers become floating point by `dtypes.inexact_of`. Complex numbers raise a TypeError. Source: DLMF chapter 5.
The rounding errors, and their derivation: `tapeless.lowering.rules.gamma_functions`.
"""

import math
import operator
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.numpy.promotion import apply2_inexact, apply_inexact, array_operand, inexact, promoted_inexact
from tapeless.tracer.primitives import gamma_functions as g
from tapeless.tracer.primitives.special import lgamma

# ---- the gamma function --------------------------------------------------------------------------------------


def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function, elementwise; nan at negative integers and at -inf, infinite with the sign of x at 0.

    Returns: floating point; exactly the factorial of x - 1 where x is an integer up to 18.
    Raises: TypeError for complex numbers.
    Source: DLMF 5.2.1; its derivative is gamma(x) digamma(x), DLMF 5.2.2.
    """
    return apply_inexact("gamma", g.gamma_p, x)


def gammasgn(x: ArrayLike) -> Array:
    """Compute the sign of the gamma function, elementwise: 1 or -1; at 0 the sign of the zero.

    It is nan at negative integers and -inf. Raises: TypeError for complex numbers.
    """
    return _gammasgn(_real("gammasgn", x))


@compound
def _gammasgn(x: Any) -> Array:
    below = tnp.floor(x)
    pole = (x < 0) & (x == below) | tnp.isnan(x)
    odd = below * 0.5 != tnp.floor(below * 0.5)
    sign = tnp.where((x < 0) & odd | (x == 0) & tnp.signbit(x), -1, 1).astype(x.dtype)
    return tnp.where(pole, np.nan, sign)


def loggamma(x: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function, elementwise: infinite at 0, nan where x is negative.

    Raises: TypeError for complex numbers.
    """
    return _loggamma(_real("loggamma", x))


@compound
def _loggamma(x: Any) -> Array:
    return tnp.where(x < 0, np.nan, lgamma(tnp.where(x < 0, 1, x)))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """Compute the logarithm of the multivariate gamma function of dimension d, elementwise; nan unless a > (d - 1) / 2.

    Raises: TypeError if d is no integer or a complex, ValueError if d is not positive.
    Source: DLMF 35.3.4.
    """
    d = operator.index(d)
    if d < 1:
        raise ValueError(f"multigammaln: d must be a positive number of dimensions, not {d}.")
    return _multigammaln(_real("multigammaln", a), d=d)


@compound
def _multigammaln(a: Any, *, d: int) -> Array:
    inside = ~(a <= 0.5 * (d - 1))
    a = tnp.where(inside, a, d)
    total = sum((lgamma(a - 0.5 * i) for i in range(1, d)), lgamma(a)) + 0.25 * d * (d - 1) * math.log(math.pi)
    return tnp.where(inside, total, np.nan)


# ---- products and quotients ----------------------------------------------------------------------------------


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the beta function gamma(a) gamma(b) / gamma(a + b), elementwise.

    Raises: TypeError for complex numbers. Source: DLMF 5.12.1.
    """
    return apply2_inexact("beta", g.beta_p, a, b)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the logarithm of |beta(a, b)|, elementwise.

    Raises: TypeError for complex numbers. Source: DLMF 5.12.1.
    """
    return apply2_inexact("betaln", g.betaln_p, a, b)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute Pochhammer's symbol gamma(z + m) / gamma(z), elementwise: z (z + 1) ... (z + m - 1) for an integer m.

    Its derivatives are nan where z or z + m is an integer that is not positive.
    Raises: TypeError for complex numbers. Source: DLMF 5.2.4, 5.2.5.
    """
    return apply2_inexact("poch", g.poch_p, z, m)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial of n, gamma(n + 1), elementwise, as floating point; 0 where n is negative.

    Raises: TypeError for complex numbers; NotImplementedError for `exact` integers, which have no bound.
    """
    if exact:
        raise NotImplementedError("factorial: exact=True asks for integers of any size: use math.factorial.")
    return _factorial(_real("factorial", n))


@compound
def _factorial(n: Any) -> Array:
    return tnp.where(n < 0, 0, g.gamma(tnp.where(n < 0, 0, n) + 1))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Count the ways to choose k of N things, elementwise: each at most once, or with `repetition` any number of times.

    Returns: floating point, correctly rounded for integers up to 2^47; 0 unless N and k are at least 0, and k <= N.
    Raises: TypeError for complex numbers. Source: DLMF 1.2.1, 1.2.6.
    """
    n, k = promoted_inexact("comb", N, k)
    check_real("comb", n)
    return _repeated_choices(n, k) if repetition else _choices(n, k)


@compound
def _choices(n: Any, k: Any) -> Array:
    there = (k <= n) & (n >= 0) & (k >= 0)
    return tnp.where(there, g.comb(*(tnp.where(there, v, 0) for v in (n, k))), 0)


@compound
def _repeated_choices(n: Any, k: Any) -> Array:
    return tnp.where((k == 0) & (n >= 0), 1, _choices(n + k - 1, k))


# ---- operands ------------------------------------------------------------------------------------------------


def _real(name: str, x: ArrayLike) -> Any:
    found = inexact(name, array_operand(name, x))
    check_real(name, found)
    return found


def check_real(name: str, x: Any) -> None:
    """Check that x is not complex. Raises: TypeError in the name of `name`."""
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: takes real numbers, not {x.aval if isinstance(x, Array) else x.dtype}.")
