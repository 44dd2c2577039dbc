"""Custom derivative rules, under the names of `jax.custom_derivatives`."""

import typing as _typing

from tapeless.custom.closures import closure_convert
from tapeless.custom.jvp import custom_jvp
from tapeless.custom.symbolic_zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from tapeless.custom.vjp import custom_vjp
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:
    from tapeless.custom.gradient import custom_gradient
    from tapeless.custom.linear_calls import linear_call
    from tapeless.like_jax.own_primitives import custom_jvp_call_p

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip

_LATE = {
    "custom.gradient": "custom_gradient",
    "custom.linear_calls": "linear_call",
    "like_jax.own_primitives": "custom_jvp_call_p",
}  # fmt: skip
# ---- end of what is written

_complete_namespace(globals(), _LATE)
