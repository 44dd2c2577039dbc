"""Element types: the names of `jax._src.dtypes` that libraries use."""

from tapeless.dtypes import canonicalize_dtype, finfo, float0, iinfo, issubdtype, result_type
from tapeless.tracer.errors import TypePromotionError

__all__ = ["TypePromotionError", "canonicalize_dtype", "finfo", "float0", "iinfo", "issubdtype", "result_type"]
