"""Element types: the names of `jax._src.dtypes` that libraries use."""

from tapeless.dtypes import canonicalize_dtype, extended, finfo, float0, iinfo, issubdtype, result_type
from tapeless.tracer.errors import TypePromotionError
from tapeless.tracer.extended_dtypes import DType, ExtendedDType

__all__ = [
    "DType",
    "ExtendedDType",
    "TypePromotionError",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "result_type",
]
