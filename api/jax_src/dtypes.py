"""Element types: what libraries use of `jax._src.dtypes`."""

from tapeless.dtypes import canonicalize_dtype, finfo, float0, iinfo, issubdtype, result_type
from tapeless.tracer.errors import TypePromotionError

__all__ = ["TypePromotionError", "canonicalize_dtype", "finfo", "float0", "iinfo", "issubdtype", "result_type"]
