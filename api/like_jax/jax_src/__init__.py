"""Modules of `jax._src` that libraries use, as far as they have a meaning here."""

from tapeless.like_jax.jax_src import (
    ad_util,
    api_util,
    core,
    dispatch,
    distributed,
    dtypes,
    flatten_util,
    lib,
    literals,
    monitoring,
    pjit,
    public_test_util,
    state,
    traceback_util,
    tree_util,
    xla_bridge,
)

__all__ = [
    "ad_util",
    "api_util",
    "core",
    "dispatch",
    "distributed",
    "dtypes",
    "flatten_util",
    "lib",
    "literals",
    "monitoring",
    "pjit",
    "public_test_util",
    "state",
    "traceback_util",
    "tree_util",
    "xla_bridge",
]


def __dir__() -> list[str]:
    return __all__
