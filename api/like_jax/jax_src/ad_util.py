"""Zeros of derivatives, and the primitive that stops them: the names of `jax._src.ad_util` that libraries use."""

from tapeless.custom.primitive_derivatives import zeros_like_aval
from tapeless.custom.symbolic_zeros import SymbolicZero
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.like_jax.own_primitives import stop_gradient_p

__all__ = ["SymbolicZero", "Zero", "instantiate", "stop_gradient_p", "zeros_like_aval"]
