"""Element types: the names of `jax._src.dtypes` that libraries use."""

from typing import Any

from tapeless.tracer.dtypes import canonical as canonicalize_dtype
from tapeless.tracer.dtypes import complex_of, finfo, float0, iinfo, inexact_of, issubdtype
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
    "to_complex_dtype",
    "to_inexact_dtype",
]


def to_complex_dtype(dtype: Any) -> DType:
    """Return the complex dtype that holds a dtype. Raises: TypeError if there is no such dtype."""
    return complex_of(canonicalize_dtype(dtype))


def to_inexact_dtype(dtype: Any) -> DType:
    """Return a dtype if it is inexact, else the float that holds it. Raises: TypeError if there is no such dtype."""
    return inexact_of(canonicalize_dtype(dtype))
