"""Custom derivative rules, under the names of `jax.custom_derivatives`."""

from tapeless.custom.closures import closure_convert
from tapeless.custom.gradient import custom_gradient
from tapeless.custom.jvp import custom_jvp
from tapeless.custom.primitives import OwnPrimitive as _OwnPrimitive
from tapeless.custom.symbolic_zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from tapeless.custom.vjp import custom_vjp
from tapeless.tracer.primitives.custom import custom_jvp_p as _custom_jvp_p

custom_jvp_call_p = _OwnPrimitive(_custom_jvp_p, multiple_results=True)

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "zero_from_primal",
]
