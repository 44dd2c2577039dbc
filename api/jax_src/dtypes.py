"""Element types: the names of `jax._src.dtypes` that libraries use."""

from tapeless.tracer.dtypes import canonical as canonicalize_dtype
from tapeless.tracer.dtypes import finfo, float0, iinfo, issubdtype
from tapeless.tracer.errors import TypePromotionError
from tapeless.tracer.extended_dtypes import DType, ExtendedDType, extended
from tapeless.tracer.numpy.scalar_types import result_type

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
