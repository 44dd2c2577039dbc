"""Modules for libraries that extend transformations: `jax.extend` and `jax.interpreters`."""

from tapeless.extend import analysis, backend, core, interpreters, linear_util, source_info_util

__all__ = ["analysis", "backend", "core", "interpreters", "linear_util", "source_info_util"]


def __dir__() -> list[str]:
    return __all__
