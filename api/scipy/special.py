"""Special functions under the names of `scipy.special`: `tapeless.scipy.special`."""

from tapeless.nn import logsumexp
from tapeless.scipy.special_functions.entropies import boxcox, boxcox1p, entr, kl_div, rel_entr, xlog1py, xlogy
from tapeless.scipy.special_functions.from_lax import (
    bernoulli,
    betainc,
    dawsn,
    digamma,
    erf,
    erfc,
    erfcx,
    erfinv,
    expit,
    gammainc,
    gammaincc,
    gammaln,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    polygamma,
    zeta,
)
from tapeless.scipy.special_functions.gamma_relatives import (
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
from tapeless.scipy.special_functions.hypergeometric import hyp1f1, hyp2f1
from tapeless.scipy.special_functions.integrals import exp1, expi, fresnel, sici, spence
from tapeless.scipy.special_functions.quadratures import owens_t, wofz
from tapeless.scipy.special_functions.recurrences import bessel_jn, expn, lpmn_values, sph_harm_y
from tapeless.scipy.special_functions.softmax import log_softmax, softmax
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "bernoulli", "bessel_jn", "beta", "betainc", "betaln", "boxcox", "boxcox1p", "comb", "dawsn", "digamma", "entr",
    "erf", "erfc", "erfcx", "erfinv", "exp1", "expi", "expit", "expn", "factorial", "fresnel", "gamma", "gammainc",
    "gammaincc", "gammaln", "gammasgn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "kl_div", "log_ndtr",
    "log_softmax", "loggamma", "logit", "logsumexp", "lpmn_values", "multigammaln", "ndtr", "ndtri", "owens_t", "poch",
    "polygamma", "rel_entr", "sici", "softmax", "spence", "sph_harm_y", "wofz", "xlog1py", "xlogy", "zeta",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())
