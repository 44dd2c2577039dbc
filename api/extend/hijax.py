"""Types of values that libraries define: the names of `jax.experimental.hijax` that they declare them by."""

from tapeless.interpreters.transpose import is_linear as is_undefined_primal
from tapeless.interpreters.zero import Zero
from tapeless.interpreters.zero import instantiate as instantiate_zeros
from tapeless.like_jax.hijax import (
    HiPrimitive,
    HiType,
    MutableHiType,
    VJPHiPrimitive,
    aval_method,
    aval_property,
    control_flow_allowed_effects,
    register_hitype,
)
from tapeless.tracer.types import ShapedArray as AbstractValue

__all__ = [
    "AbstractValue",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]
