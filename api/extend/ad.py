"""Derivatives of primitives: the names of `jax.interpreters.ad`."""

from tapeless.custom.primitive_derivatives import (
    add_tangents,
    def_linear_in,
    defbilinear,
    defjvp,
    defjvp2,
    defjvp_zero,
    deflinear,
    deflinear2,
    primitive_jvps,
    primitive_transposes,
    zeros_like_aval,
)
from tapeless.interpreters.jvp import JVPTrace, JVPTracer
from tapeless.interpreters.transpose import Linear as UndefinedPrimal
from tapeless.interpreters.transpose import is_linear as is_undefined_primal
from tapeless.interpreters.zero import Zero
from tapeless.interpreters.zero import instantiate as instantiate_zeros
from tapeless.tracer.primitives.elementwise import add as add_jaxvals

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_tangents",
    "def_linear_in",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "defjvp_zero",
    "deflinear",
    "deflinear2",
    "instantiate_zeros",
    "is_undefined_primal",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]
