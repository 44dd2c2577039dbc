"""Element types: the names of `jax.dtypes`."""

from ml_dtypes import bfloat16

from tapeless.tracer.dtypes import canonical as canonicalize_dtype
from tapeless.tracer.dtypes import finfo, float0, iinfo, issubdtype, itemsize_bits, scalar_type_of
from tapeless.tracer.errors import TypePromotionError
from tapeless.tracer.extended_dtypes import extended, prng_key
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.scalar_types import result_type

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

_complete_namespace(globals())
