"""Exception types of `tapeless.tracer.errors`, and `JaxRuntimeError`, which the compiler raises."""

import typing as _typing

from tapeless.tracer.errors import (
    AxisError,
    ConcretizationTypeError,
    InternalError,
    JAXIndexError,
    JAXTypeError,
    KeyReuseError,
    LinearityError,
    NonConcreteBooleanIndexError,
    ProgramTextError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    TypePromotionError,
    UnexpectedTracerError,
)
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:
    from tapeless.lowering.runtime_errors import JaxRuntimeError

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "AxisError", "ConcretizationTypeError", "InternalError", "JAXIndexError", "JAXTypeError", "JaxRuntimeError",
    "KeyReuseError", "LinearityError", "NonConcreteBooleanIndexError", "ProgramTextError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "TypePromotionError", "UnexpectedTracerError",
]  # fmt: skip

_LATE = {
    "lowering.runtime_errors": "JaxRuntimeError",
}  # fmt: skip
# ---- end of what is written

_complete_namespace(globals(), _LATE)
