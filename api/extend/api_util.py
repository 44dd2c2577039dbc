"""Flat functions of functions of pytrees: the names of `jax.api_util`."""

from tapeless.like_jax.flat_functions import argnums_partial, debug_info, flatten_fun, flatten_fun_nokwargs, safe_map
from tapeless.tracer.types import aval_of as shaped_abstractify

__all__ = ["argnums_partial", "debug_info", "flatten_fun", "flatten_fun_nokwargs", "safe_map", "shaped_abstractify"]
