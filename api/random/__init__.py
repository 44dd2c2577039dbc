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
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = [
    "key",
    "PRNGKey",
    "key_data",
    "key_impl",
    "key_dtype",
    "wrap_key_data",
    "clone",
    "split",
    "fold_in",
    "bits",
    "uniform",
    "randint",
    "bernoulli",
    "rademacher",
    "permutation",
    "choice",
    "categorical",
    "normal",
    "truncated_normal",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "cauchy",
    "orthogonal",
    "ball",
    "beta",
    "binomial",
    "chisquare",
    "dirichlet",
    "double_sided_maxwell",
    "f",
    "gamma",
    "generalized_normal",
    "geometric",
    "loggamma",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "pareto",
    "poisson",
    "rayleigh",
    "t",
    "triangular",
    "wald",
    "weibull_min",
]

if _typing.TYPE_CHECKING:  # what few programs use is loaded when it is used
    from tapeless.random.counts import binomial, multinomial, poisson
    from tapeless.random.gamma_family import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
    from tapeless.random.matrices import orthogonal
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
else:
    __all__ += ["random_gamma_p"]
    _LATE = {
        "like_jax.function_primitives": "random_gamma_p",
        "random.counts": "binomial multinomial poisson",
        "random.gamma_family": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
        "random.matrices": "orthogonal",
        "random.transforms": (
            "double_sided_maxwell geometric lognormal maxwell multivariate_normal pareto rayleigh triangular wald"
            " weibull_min"
        ),
    }
    __getattr__ = _imported_late(globals(), _LATE)
