"""The gamma function, ratios of its values, and products with logarithms that vanish with their factor.

All are elementwise and real. Operands have one shape and one floating point dtype, or rank 0.
Source: DLMF chapter 5; Abramowitz & Stegun 1964, chapter 6.
"""

from typing import Final

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.operands import aligned


def _floating(name: str) -> Primitive:
    return Primitive(name, kinds.same(name, kinds.FLOAT))


gamma_p: Final = _floating("gamma")
beta_p: Final = _floating("beta")
betaln_p: Final = _floating("betaln")
comb_p: Final = _floating("comb")
poch_p: Final = _floating("poch")
xlogy_p: Final = _floating("xlogy")
xlog1py_p: Final = _floating("xlog1py")


def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function; nan at negative integers, infinite with the sign of x at 0. Source: DLMF 5.2.1."""
    return gamma_p.bind(x)[0]


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute gamma(a) gamma(b) / gamma(a + b) without overflow on the way. Source: DLMF 5.12.1."""
    return beta_p.bind(*aligned(a, b))[0]


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute log |beta(a, b)| without cancellation between large logarithms. Source: DLMF 5.12.1."""
    return betaln_p.bind(*aligned(a, b))[0]


def comb(n: ArrayLike, k: ArrayLike) -> Array:
    """Compute the binomial coefficient 1 / ((n + 1) beta(n - k + 1, k + 1)), 0 <= k <= n. Source: DLMF 1.2.6."""
    return comb_p.bind(*aligned(n, k))[0]


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute Pochhammer's symbol gamma(z + m) / gamma(z). Source: DLMF 5.2.5."""
    return poch_p.bind(*aligned(z, m))[0]


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(y); 0 where x is 0, unless y is nan."""
    return xlogy_p.bind(*aligned(x, y))[0]


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(1 + y); 0 where x is 0, unless y is nan."""
    return xlog1py_p.bind(*aligned(x, y))[0]
