"""Exception types of `tapeless.tracer.errors`, and `JaxRuntimeError`, which the compiler raises."""

from tapeless.lowering.compat import XlaRuntimeError as JaxRuntimeError
from tapeless.tracer.errors import (
    ConcretizationTypeError,
    InternalError,
    JAXIndexError,
    JAXTypeError,
    LinearityError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError",
    "InternalError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "LinearityError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
]
