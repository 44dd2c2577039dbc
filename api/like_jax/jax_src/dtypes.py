"""Element types: the names of `jax._src.dtypes` that libraries use."""

from typing import Any as _Any

from tapeless.tracer.dtypes import canonical as canonicalize_dtype
from tapeless.tracer.dtypes import complex_of as _complex_of
from tapeless.tracer.dtypes import finfo, float0, iinfo, issubdtype
from tapeless.tracer.dtypes import inexact_of as _inexact_of
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


def to_complex_dtype(dtype: _Any) -> DType:
    """Return the complex dtype that holds a dtype. Raises: TypeError if there is no such dtype."""
    return _complex_of(canonicalize_dtype(dtype))


def to_inexact_dtype(dtype: _Any) -> DType:
    """Return a dtype if it is inexact, else the float that holds it. Raises: TypeError if there is no such dtype."""
    return _inexact_of(canonicalize_dtype(dtype))
