"""Rules of the gamma function and its relatives: derivatives by digamma, DLMF 5.2.2."""

from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import gamma_functions as g
from tapeless.tracer.primitives.bits import bitwise_and
from tapeless.tracer.primitives.elementwise import add, convert_element_type, div, eq, log, log1p, mul, neg, sub
from tapeless.tracer.primitives.special import digamma
from tapeless.tracer.types import aval_of


def _share(x: Any, y: Any) -> Any:
    """Compute x / y, and 0 for 0 / 0, where the product with a logarithm does not depend on y."""
    both_zero = bitwise_and(eq(x, 0.0), eq(y, 0.0))
    return div(x, add(y, convert_element_type(both_zero, aval_of(y).dtype)))


def _digamma_step(z: Any, m: Any) -> Any:
    return sub(digamma(add(z, m)), digamma(z))


jvp.partials_of_result(g.gamma_p, lambda t, y, x: mul(t, mul(y, digamma(x))))
jvp.partials_of_result(
    g.beta_p,
    lambda t, y, a, b: mul(t, mul(y, sub(digamma(a), digamma(add(a, b))))),
    lambda t, y, a, b: mul(t, mul(y, sub(digamma(b), digamma(add(a, b))))),
)
jvp.partials(
    g.betaln_p,
    lambda t, a, b: mul(t, sub(digamma(a), digamma(add(a, b)))),
    lambda t, a, b: mul(t, sub(digamma(b), digamma(add(a, b)))),
)
jvp.partials_of_result(
    g.comb_p,
    lambda t, y, n, k: mul(t, mul(y, sub(digamma(add(n, 1.0)), digamma(add(sub(n, k), 1.0))))),
    lambda t, y, n, k: mul(t, mul(y, sub(digamma(add(sub(n, k), 1.0)), digamma(add(k, 1.0))))),
)
jvp.partials_of_result(
    g.poch_p,
    lambda t, y, z, m: mul(t, mul(y, _digamma_step(z, m))),
    lambda t, y, z, m: mul(t, mul(y, digamma(add(z, m)))),
)
jvp.partials(g.xlogy_p, lambda t, x, y: mul(t, log(y)), lambda t, x, y: mul(t, _share(x, y)))
jvp.partials(g.xlog1py_p, lambda t, x, y: mul(t, log1p(y)), lambda t, x, y: mul(t, _share(x, add(y, 1.0))))
jvp.partials(
    g.kl_div_p,
    lambda t, p, q: mul(t, g.log_ratio(p, q)),
    lambda t, p, q: mul(t, neg(_share(sub(p, q), q))),
)

for _primitive in [p for p in vars(g).values() if isinstance(p, Primitive)]:
    vmap.elementwise(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------

for _primitive in (g.gamma_p, g.beta_p, g.betaln_p, g.comb_p, g.poch_p, g.xlogy_p, g.xlog1py_p, g.kl_div_p):
    rows[_primitive] = pointwise
