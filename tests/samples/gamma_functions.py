"""Samples of the gamma function and its relatives, against SciPy."""

import numpy as np
import scipy.special

from tapeless.tracer.primitives import gamma_functions as g
from tests.samples.elementwise import FLOATS, c64, i32, unary
from tests.samples.sample import Sample, f32

_BAD = (
    ((f32(3), f32(2)), {}, ValueError),
    ((f32(3), i32(3)), {}, TypeError),
    ((c64(3), c64(3)), {}, TypeError),
)
_A, _B = f32(3, 4, low=0.3, high=4), f32(3, 4, seed=1, low=0.3, high=4)

ROWS = [
    unary(g.gamma_p, scipy.special.gamma, 0.3, 4, FLOATS),
    Sample(g.beta_p, (_A, _B), scipy.special.beta, dtypes=FLOATS, bad=_BAD),
    Sample(g.betaln_p, (_A, _B), scipy.special.betaln, dtypes=FLOATS, bad=_BAD),
    Sample(g.comb_p, (_A + 4, _B), scipy.special.binom, dtypes=FLOATS, bad=_BAD),
    Sample(g.poch_p, (_A, _B), scipy.special.poch, dtypes=FLOATS, bad=_BAD),
    Sample(g.xlogy_p, (_A, _B), scipy.special.xlogy, dtypes=FLOATS, bad=_BAD),
    Sample(g.xlogy_p, (_A, np.asarray(3, np.float32)), scipy.special.xlogy, label="scalar"),
    Sample(g.xlogy_p, (np.asarray(3, np.float32), _A), scipy.special.xlogy, label="scalar first"),
    Sample(g.xlog1py_p, (_A, _B), scipy.special.xlog1py, dtypes=FLOATS, bad=_BAD),
    Sample(g.kl_div_p, (_A, _B), scipy.special.kl_div, dtypes=FLOATS, bad=_BAD),
    Sample(g.beta_p, (np.asarray(3, np.float32), _B), scipy.special.beta, label="scalar"),
]
