"""Random numbers from keys: the names of `jax.random`, and its bits."""

import typing as _typing

from tapeless.random.samplers import (
    bernoulli,
    bits,
    categorical,
    cauchy,
    choice,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    permutation,
    rademacher,
    randint,
    truncated_normal,
    uniform,
)
from tapeless.tracer.keys.prng_keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless.random.counts import binomial, multinomial, poisson
    from tapeless.random.gamma_family import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
    from tapeless.random.random_matrices import orthogonal
    from tapeless.random.transforms import (
        double_sided_maxwell,
        geometric,
        lognormal,
        maxwell,
        multivariate_normal,
        pareto,
        rayleigh,
        triangular,
        wald,
        weibull_min,
    )

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone",
    "dirichlet", "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric",
    "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace", "loggamma", "logistic", "lognormal", "maxwell",
    "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation", "poisson", "rademacher",
    "randint", "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
    "wrap_key_data",
]  # fmt: skip

_LATE = {
    "random.counts": "binomial multinomial poisson",
    "random.gamma_family": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
    "random.random_matrices": "orthogonal",
    "random.transforms": (
        "double_sided_maxwell geometric lognormal maxwell multivariate_normal pareto rayleigh triangular wald "
        "weibull_min"
    ),
}  # fmt: skip
# ---- end of what is written

if not _typing.TYPE_CHECKING:
    __all__ += ["random_gamma_p"]
    _LATE["like_jax.function_primitives"] = "random_gamma_p"
    _complete_namespace(globals(), _LATE)
