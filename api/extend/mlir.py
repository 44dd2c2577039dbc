"""Lowering rules of primitives: the names of `jax.interpreters.mlir`."""

from tapeless.custom.primitive_lowering import LoweringRuleContext, emit_python_callback, lower_fun, register_lowering

__all__ = ["LoweringRuleContext", "emit_python_callback", "lower_fun", "register_lowering"]
