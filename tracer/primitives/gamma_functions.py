"""The gamma function, ratios of its values, products with logarithms that vanish with their factor, and divergences.

All are elementwise and real. Operands have one shape and one floating point dtype, or rank 0.
Source: DLMF chapter 5; Abramowitz & Stegun 1964, chapter 6.
"""

import math
from typing import Final

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import kinds
from tapeless.tracer.primitives.bits import bitwise_and, bitwise_or
from tapeless.tracer.primitives.elementwise import add, div, eq, gt, log, log1p, lt, ne, select_n, sub
from tapeless.tracer.primitives.operands import align_operands, constant
from tapeless.tracer.types import aval_of


def _floating(name: str) -> Primitive:
    return Primitive(name, kinds.same(name, kinds.FLOAT))


gamma_p: Final = _floating("gamma")
beta_p: Final = _floating("beta")
betaln_p: Final = _floating("betaln")
comb_p: Final = _floating("comb")
poch_p: Final = _floating("poch")
xlogy_p: Final = _floating("xlogy")
xlog1py_p: Final = _floating("xlog1py")
kl_div_p: Final = _floating("kl_div")


def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function; nan at negative integers, infinite with the sign of x at 0. Source: DLMF 5.2.1."""
    return gamma_p.bind(x)[0]


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute gamma(a) gamma(b) / gamma(a + b) without overflow on the way. Source: DLMF 5.12.1."""
    return beta_p.bind(*align_operands(a, b))[0]


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute log |beta(a, b)| without cancellation between large logarithms. Source: DLMF 5.12.1."""
    return betaln_p.bind(*align_operands(a, b))[0]


def comb(n: ArrayLike, k: ArrayLike) -> Array:
    """Compute the binomial coefficient 1 / ((n + 1) beta(n - k + 1, k + 1)), 0 <= k <= n. Source: DLMF 1.2.6."""
    return comb_p.bind(*align_operands(n, k))[0]


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute Pochhammer's symbol gamma(z + m) / gamma(z). Source: DLMF 5.2.5."""
    return poch_p.bind(*align_operands(z, m))[0]


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(y); 0 where x is 0, unless y is nan."""
    return xlogy_p.bind(*align_operands(x, y))[0]


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute x log(1 + y); 0 where x is 0, unless y is nan."""
    return xlog1py_p.bind(*align_operands(x, y))[0]


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute p log(p/q) - p + q without cancellation, for p, q >= 0. Source: scipy.special.kl_div."""
    return kl_div_p.bind(*align_operands(p, q))[0]


def log_ratio(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute log(p/q) for p, q >= 0, from p - q where they are close; -inf where p is 0.

    Where p/q is no normal number it is the difference of two logarithms.
    """
    one, ratio = constant(1, aval_of(p)), div(p, q)
    near = bitwise_and(gt(ratio, 0.5), lt(ratio, 2.0))
    extreme = bitwise_or(eq(p, 0.0), bitwise_or(lt(ratio, _SMALL), eq(ratio, math.inf)))
    apart = sub(log(select_n(extreme, one, p)), log(select_n(bitwise_and(extreme, ne(add(p, q), 0.0)), one, q)))
    close = log1p(div(select_n(near, constant(0, aval_of(p)), sub(p, q)), select_n(near, one, q)))
    return select_n(near, select_n(extreme, log(ratio), apart), close)


_SMALL = float(np.finfo(np.float32).tiny)  # smaller quotients may be subnormal, with less precision
