"""Scalar operations per element, for functions that lower to more than one (used by the sparse cost model).

StableHLO's own functions of one number are one operation each. A function composed of them by our lowering, or chlo's,
counts the fewest operations that it takes for a float32: the steps of a loop once; selects, comparisons, constants and
conversions not at all. Functions of two numbers, and functions of complex numbers by their parts, count as in their
definitions. A derivative is composed of the same operations, so its cost is compared with that of its function
(docs/decisions/0010-what-functions-cost.md).
"""

from collections.abc import Callable

from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import gamma_functions as g
from tapeless.tracer.primitives import integrals as i
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import special as s
from tapeless.tracer.rules import Table

operations: Table[Callable[[Equation], int]] = Table(
    "operation counts",
    "row(eqn) -> scalar operations for each element of the result, in the sparse cost model",
    absent="1",
)

# Functions that are composed when they are lowered, as tests/lowering/test_operation_counts.py counts them.
COMPOSED: dict[Primitive, int] = {
    e.asin_p: 5, e.acos_p: 5, e.sinh_p: 12, e.cosh_p: 6, e.asinh_p: 14, e.acosh_p: 11, e.atanh_p: 6,
    s.erf_p: 25, s.erfc_p: 53, s.erf_inv_p: 26,
    s.lgamma_p: 47, s.digamma_p: 69, s.polygamma_p: 236, s.zeta_p: 115,
    s.bessel_i0_p: 90, s.bessel_i1_p: 89, s.bessel_i0e_p: 86, s.bessel_i1e_p: 86,
    s.igamma_p: 137, s.igammac_p: 137, s.igamma_grad_a_p: 249, s.random_gamma_grad_p: 206,
    s.betainc_p: 280, s.betaincc_p: 280,
    i.erfcx_p: 87, i.dawsn_p: 279, i.ndtr_p: 85, i.log_ndtr_p: 269, i.ndtri_p: 289, i.erfinv_p: 140,
    i.exp1_p: 209, i.expi_p: 598, i.sine_integral_p: 403, i.cosine_integral_p: 402, i.fresnel_sine_p: 389,
    i.fresnel_cosine_p: 387, i.spence_p: 96,
    g.gamma_p: 125, g.beta_p: 905, g.betaln_p: 894, g.comb_p: 914, g.poch_p: 1574, g.xlogy_p: 2,
    g.kl_div_p: 57,
}  # fmt: skip
DEFINED: dict[Primitive, int] = {
    e.pow_p: 4,  # exp(y log |x|)
    e.atan2_p: 3,  # atan(y / x), plus the quadrant
    g.xlog1py_p: 3,  # x log(1 + y)
    e.rem_p: 4,  # x - trunc(x / y) y
    r.cumlogsumexp_p: 4,  # log(exp y + exp x), for each step
}
OF_COMPLEX: dict[Primitive, int] = {
    e.abs_p: 3,  # sqrt(z conj z)
    e.sign_p: 4,  # z / |z|
}


def operations_of(eqn: Equation) -> int:
    """Count the scalar operations for each element of an equation's result."""
    return operations[eqn.primitive](eqn) if eqn.primitive in operations else 1


def _constant(count: int) -> Callable[[Equation], int]:
    return lambda eqn: count


def _of_complex(count: int) -> Callable[[Equation], int]:
    return lambda eqn: count if dtypes.is_complex(eqn.invars[0].aval.dtype) else 1


def _integer_pow(eqn: Equation) -> int:
    """Count the squarings, the products of squares, and a division for negative exponents."""
    n = abs(eqn.params["y"])
    return max(n.bit_length() - 1, 0) + max(n.bit_count() - 1, 0) + (eqn.params["y"] < 0)


for _primitive, _count in (COMPOSED | DEFINED).items():
    operations[_primitive] = _constant(_count)
for _primitive, _count in OF_COMPLEX.items():
    operations[_primitive] = _of_complex(_count)
operations[e.integer_pow_p] = _integer_pow
