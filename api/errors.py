"""Exception types of `tapeless.tracer.errors`, and `JaxRuntimeError`, which the compiler raises."""

from tapeless.lowering.compat import XlaRuntimeError as JaxRuntimeError
from tapeless.tracer.errors import (
    ConcretizationTypeError,
    InternalError,
    LinearityError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError",
    "InternalError",
    "JaxRuntimeError",
    "LinearityError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]
