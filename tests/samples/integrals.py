"""Samples of integrals of elementary functions, the error function's among them, against SciPy."""

import scipy.special

from tapeless.tracer.primitives import integrals as i
from tests.samples.elementwise import FLOATS, unary

ROWS = [
    unary(i.exp1_p, scipy.special.exp1, 0.3, 4, FLOATS),
    unary(i.expi_p, scipy.special.expi, 0.6, 4, FLOATS),
    unary(i.sine_integral_p, lambda x: scipy.special.sici(x)[0], -8, 8, FLOATS),
    unary(i.cosine_integral_p, lambda x: scipy.special.sici(x)[1], 0.7, 3, FLOATS),
    unary(i.fresnel_sine_p, lambda x: scipy.special.fresnel(x)[0], -2, 2, FLOATS),
    unary(i.fresnel_cosine_p, lambda x: scipy.special.fresnel(x)[1], -2, 2, FLOATS),
    unary(i.spence_p, scipy.special.spence, 0.1, 0.9, FLOATS),
    unary(i.erfcx_p, scipy.special.erfcx, -2, 6, FLOATS),
    unary(i.dawsn_p, scipy.special.dawsn, -6, 6, FLOATS),
    unary(i.ndtr_p, scipy.special.ndtr, -3, 3, FLOATS),
    unary(i.log_ndtr_p, scipy.special.log_ndtr, -6, 3, FLOATS),
    unary(i.ndtri_p, scipy.special.ndtri, 0.05, 0.95, FLOATS),
    unary(i.erfinv_p, scipy.special.erfinv, -0.95, 0.95, FLOATS),
]
