"""Functions with transformations wrapped around them: the names of `jax.extend.linear_util`."""

from tapeless.like_jax.wrapped_functions import (
    StoreException,
    WrappedFun,
    merge_linear_aux,
    transformation,
    transformation2,
    transformation_with_aux,
    transformation_with_aux2,
    wrap_init,
)

__all__ = [
    "StoreException",
    "WrappedFun",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]
