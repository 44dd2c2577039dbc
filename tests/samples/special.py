"""Samples of special functions, against SciPy."""

from typing import Any

import numpy as np
import scipy.special

from tapeless.tracer.primitives import special as s
from tests.samples.elementwise import FLOATS, c64, i32, unary
from tests.samples.sample import Sample, f32

_BAD = (
    ((f32(3), f32(2)), {}, ValueError),
    ((f32(3), i32(3)), {}, TypeError),
    ((c64(3), c64(3)), {}, TypeError),
)
_A, _X = f32(3, 4, low=0.3, high=30), f32(3, 4, seed=1, low=0.3, high=30)
_ORDER = np.asarray([0, 1, 2, 4], np.float32)


def _by_order(a: Any, x: Any) -> Any:
    """d/da of the incomplete gamma function by central differences of fourth order."""
    a, x = np.asarray(a, float), np.asarray(x, float)
    h = 1e-3 * a
    p = scipy.special.gammainc
    return (8 * (p(a + h, x) - p(a - h, x)) - (p(a + 2 * h, x) - p(a - 2 * h, x))) / (12 * h)


def _density(a: Any, x: Any) -> Any:
    a, x = np.asarray(a, float), np.asarray(x, float)
    return np.exp((a - 1) * np.log(x) - x - scipy.special.gammaln(a))


ROWS = [
    unary(s.erf_p, scipy.special.erf, -3, 3, FLOATS),
    unary(s.erfc_p, scipy.special.erfc, -3, 3, FLOATS),
    unary(s.erf_inv_p, scipy.special.erfinv, -0.9, 0.9, FLOATS),
    unary(s.lgamma_p, scipy.special.gammaln, 0.2, 9, FLOATS, rtol=3e-6),  # chlo's, in float32
    unary(s.digamma_p, scipy.special.digamma, 0.2, 9, FLOATS, rtol=3e-6),
    unary(s.bessel_i0_p, scipy.special.i0, -6, 6, FLOATS),
    unary(s.bessel_i1_p, scipy.special.i1, -6, 6, FLOATS),
    unary(s.bessel_i0e_p, scipy.special.i0e, -20, 20, FLOATS),
    unary(s.bessel_i1e_p, scipy.special.i1e, -20, 20, FLOATS),
    Sample(
        s.polygamma_p,
        (_ORDER, f32(4, low=0.5, high=3)),
        lambda m, x: scipy.special.polygamma(np.asarray(m).astype(int), x),
        differentiable=(1,),  # there is no formula by the order
        dtypes=("float32", "float64"),
        bad=_BAD,
        rtol=1e-5,  # a product of chlo's zeta and gamma
    ),
    Sample(
        s.zeta_p,
        (np.asarray(2.5, np.float32), f32(4, low=0.5, high=3)),
        scipy.special.zeta,
        differentiable=(1,),
        dtypes=FLOATS,
        bad=_BAD,
        rtol=3e-6,
    ),
    # Series and continued fraction cancel by the size of the exponents, about 30.
    Sample(s.igamma_p, (_A, _X), scipy.special.gammainc, dtypes=FLOATS, bad=_BAD, rtol=2e-5),
    Sample(s.igammac_p, (_A, _X), scipy.special.gammaincc, dtypes=FLOATS, bad=_BAD, rtol=2e-5),
    Sample(s.igamma_p, (np.asarray(3, np.float32), _X), scipy.special.gammainc, label="scalar", rtol=2e-5),
    Sample(s.igammac_p, (_A, np.asarray(3, np.float32)), scipy.special.gammaincc, label="scalar", rtol=2e-5),
    *(
        Sample(
            primitive,
            (f32(3, 4, low=0.3, high=9), f32(3, 4, seed=1, low=0.3, high=9), f32(3, 4, seed=2, low=0.05, high=0.95)),
            reference,
            differentiable=(2,),  # there is no formula by the parameters
            dtypes=FLOATS,
            bad=(((f32(3), f32(3), f32(2)), {}, ValueError), ((f32(3), f32(3), i32(3)), {}, TypeError)),
            rtol=2e-5,
        )
        for primitive, reference in ((s.betainc_p, scipy.special.betainc), (s.betaincc_p, scipy.special.betaincc))
    ),
    Sample(
        s.igamma_grad_a_p, (_A, _X), _by_order, differentiable=(1,), dtypes=("float32", "float64"), bad=_BAD, rtol=2e-5
    ),
    Sample(
        s.random_gamma_grad_p,
        (_A, f32(3, 4, low=0.3, high=30) + f32(3, 4, seed=3, low=-0.2, high=2)),
        lambda a, x: -_by_order(a, x) / _density(a, x),
        differentiable=(),  # samples have one derivative
        bad=_BAD,
        rtol=2e-5,
    ),
]
