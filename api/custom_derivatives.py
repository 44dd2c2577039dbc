"""What goes with functions that have rules of their own, under the names of `jax.custom_derivatives`."""

from tapeless.closures import closure_convert
from tapeless.custom_reverse import custom_vjp
from tapeless.custom_rules import custom_jvp
from tapeless.symbolic_zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "zero_from_primal",
]
