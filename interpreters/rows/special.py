"""Index rows of special functions: pointwise."""

from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.primitives import special as s

for _primitive in (
    s.erf_p, s.erfc_p, s.erf_inv_p, s.lgamma_p, s.digamma_p, s.polygamma_p, s.zeta_p, s.igamma_p, s.igammac_p,
    s.igamma_grad_a_p, s.random_gamma_grad_p, s.betainc_p, s.betaincc_p, s.bessel_i0_p, s.bessel_i1_p, s.bessel_i0e_p,
    s.bessel_i1e_p,
):  # fmt: skip
    rows[_primitive] = pointwise
