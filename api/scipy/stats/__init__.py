"""Distributions, ranks and densities under the names of `scipy.stats`: `tapeless.scipy.stats`."""

import typing as _typing

from tapeless.scipy.stats.kernel_density import gaussian_kde
from tapeless.scipy.stats.ranks import mode, rankdata, sem
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:
    from tapeless.scipy.stats import (
        bernoulli,
        beta,
        betabinom,
        binom,
        cauchy,
        chi2,
        dirichlet,
        expon,
        gamma,
        gennorm,
        geom,
        gumbel_l,
        gumbel_r,
        laplace,
        logistic,
        multinomial,
        multivariate_normal,
        nbinom,
        norm,
        pareto,
        poisson,
        t,
        truncnorm,
        uniform,
        vonmises,
        wrapcauchy,
    )

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

_LATE = {
    "": (
        "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace "
        "logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
    ),
}  # fmt: skip
# ---- end of what is written

_complete_namespace(globals(), _LATE)
