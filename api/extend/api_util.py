"""Flat functions of functions of pytrees: the names of `jax.api_util`."""

from tapeless.custom.flat_functions import debug_info, flatten_fun, flatten_fun_nokwargs, safe_map
from tapeless.tracer.types import aval_of as shaped_abstractify

__all__ = ["debug_info", "flatten_fun", "flatten_fun_nokwargs", "safe_map", "shaped_abstractify"]
