"""Random numbers from keys: the names of `jax.random`, and its bits."""

from tapeless.tracer.prng_keys import PRNGKey, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from tapeless.tracer.random import (
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
from tapeless.tracer.random_matrices import orthogonal

__all__ = [
    "key",
    "PRNGKey",
    "key_data",
    "key_impl",
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
]
