"""Rules of special functions: derivatives from Abramowitz & Stegun, chapters 6, 7, 9 and 23."""

import math
from collections.abc import Callable
from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import special as s
from tapeless.tracer.primitives.elementwise import add, div, eq, exp, log, mul, neg, select_n, sign, square, sub
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.types import aval_of

_SLOPE = 2.0 / math.sqrt(math.pi)  # of erf at 0


def _undefined(primitive: Primitive, operand: str) -> Callable[..., Any]:
    """Return a row that raises: the derivative exists, but there is no formula for it here."""

    def row(t: Any, *operands: Any) -> Any:
        raise NotImplementedError(f"{primitive}: the derivative by {operand} is not implemented, of {aval_of(t)}.")

    return row


jvp.partials(s.erf_p, lambda t, x: mul(t, mul(_SLOPE, exp(neg(square(x))))))
jvp.partials(s.erfc_p, lambda t, x: mul(t, mul(-_SLOPE, exp(neg(square(x))))))
jvp.partials_of_result(s.erf_inv_p, lambda t, y, x: mul(t, mul(1.0 / _SLOPE, exp(square(y)))))

jvp.partials(s.lgamma_p, lambda t, x: mul(t, s.digamma(x)))
jvp.partials(s.digamma_p, lambda t, x: mul(t, s.zeta(constant(2, aval_of(x)), x)))
jvp.partials(
    s.polygamma_p,
    _undefined(s.polygamma_p, "its order"),
    lambda t, m, x: mul(t, s.polygamma(add(m, 1.0), x)),
)
jvp.partials(
    s.zeta_p,
    _undefined(s.zeta_p, "its exponent"),
    lambda t, x, q: mul(t, mul(neg(x), s.zeta(add(x, 1.0), q))),
)

jvp.partials(
    s.igamma_p,
    lambda t, a, x: mul(t, s.igamma_grad_a(a, x)),
    lambda t, a, x: mul(t, s.igamma_density(a, x)),
)
jvp.partials(
    s.igammac_p,
    lambda t, a, x: mul(t, neg(s.igamma_grad_a(a, x))),
    lambda t, a, x: mul(t, neg(s.igamma_density(a, x))),
)
jvp.partials(
    s.igamma_grad_a_p,
    _undefined(s.igamma_grad_a_p, "its order"),
    lambda t, a, x: mul(t, mul(s.igamma_density(a, x), sub(log(x), s.digamma(a)))),
)
jvp.partials(
    s.random_gamma_grad_p,
    _undefined(s.random_gamma_grad_p, "its order"),
    _undefined(s.random_gamma_grad_p, "the sample"),
)
jvp.partials(
    s.betainc_p,
    _undefined(s.betainc_p, "its first parameter"),
    _undefined(s.betainc_p, "its second parameter"),
    lambda t, a, b, x: mul(t, s.betainc_density(a, b, x)),
)
jvp.partials(
    s.betaincc_p,
    _undefined(s.betaincc_p, "its first parameter"),
    _undefined(s.betaincc_p, "its second parameter"),
    lambda t, a, b, x: mul(t, neg(s.betainc_density(a, b, x))),
)


def _i1e_slope(x: Any, y: Any) -> Any:
    """Compute the slope of i1e: with I1' = I0 - I1/x it is i0e - i1e (1/x + sign x), whose limit at 0 is 1/2."""
    at_zero = eq(x, 0.0)
    safe = select_n(at_zero, x, constant(1, aval_of(x)))
    slope = sub(s.bessel_i0e(x), mul(y, add(div(1.0, safe), sign(x))))
    return select_n(at_zero, slope, constant(0.5, aval_of(slope)))


jvp.partials(s.bessel_i0_p, lambda t, x: mul(t, s.bessel_i1(x)))
jvp.partials(s.bessel_i1_p, lambda t, x: mul(t, s.bessel_i1_slope(x)))
jvp.partials_of_result(s.bessel_i0e_p, lambda t, y, x: mul(t, sub(s.bessel_i1e(x), mul(sign(x), y))))
jvp.partials_of_result(s.bessel_i1e_p, lambda t, y, x: mul(t, _i1e_slope(x, y)))

for _primitive in [p for p in vars(s).values() if isinstance(p, Primitive)]:
    vmap.elementwise(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------

for _primitive in (
    s.erf_p, s.erfc_p, s.erf_inv_p, s.lgamma_p, s.digamma_p, s.polygamma_p, s.zeta_p, s.igamma_p, s.igammac_p,
    s.igamma_grad_a_p, s.random_gamma_grad_p, s.betainc_p, s.betaincc_p, s.bessel_i0_p, s.bessel_i1_p, s.bessel_i0e_p,
    s.bessel_i1e_p,
):  # fmt: skip
    rows[_primitive] = pointwise
