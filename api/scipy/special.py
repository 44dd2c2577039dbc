"""Special functions under the names of `scipy.special`: `tapeless.scipy.special`."""

from tapeless.tracer.activations import log_softmax, logsumexp, softmax
from tapeless.tracer.special import (
    betainc,
    digamma,
    erf,
    erfc,
    erfinv,
    expit,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
    logit,
    polygamma,
    zeta,
)

__all__ = [
    "betainc", "digamma", "erf", "erfc", "erfinv", "expit", "gammainc", "gammaincc", "gammaln", "i0e", "i1e",
    "log_softmax", "logit", "logsumexp", "polygamma", "softmax", "zeta",
]  # fmt: skip
