"""Lowering rules of primitives: the names of `jax.interpreters.mlir`."""

from tapeless.custom.primitive_lowering import LoweringRuleContext, lower_fun, register_lowering

__all__ = ["LoweringRuleContext", "lower_fun", "register_lowering"]
