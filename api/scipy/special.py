"""Special functions under the names of `scipy.special`: `tapeless.scipy.special`."""

from tapeless.tracer.activations import log_softmax, logsumexp, softmax
from tapeless.tracer.entropies import boxcox, boxcox1p, entr, kl_div, rel_entr, xlog1py, xlogy
from tapeless.tracer.gamma_relatives import (
    beta,
    betaln,
    comb,
    factorial,
    gamma,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
)
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
    i0,
    i0e,
    i1,
    i1e,
    logit,
    ndtr,
    polygamma,
    zeta,
)

__all__ = [
    "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "digamma", "entr", "erf", "erfc", "erfinv", "expit",
    "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "kl_div",
    "log_softmax", "loggamma", "logit", "logsumexp", "multigammaln", "ndtr", "poch", "polygamma", "rel_entr",
    "softmax", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
