"""Samples of functions made of the error function, against SciPy."""

import scipy.special

from tapeless.tracer.primitives import error_functions as f
from tests.samples.elementwise import FLOATS, unary

ROWS = [
    unary(f.erfcx_p, scipy.special.erfcx, -2, 6, FLOATS),
    unary(f.dawsn_p, scipy.special.dawsn, -6, 6, FLOATS),
    unary(f.ndtr_p, scipy.special.ndtr, -3, 3, FLOATS),
    unary(f.log_ndtr_p, scipy.special.log_ndtr, -6, 3, FLOATS),
    unary(f.ndtri_p, scipy.special.ndtri, 0.05, 0.95, FLOATS),
    unary(f.erfinv_p, scipy.special.erfinv, -0.95, 0.95, FLOATS),
]
