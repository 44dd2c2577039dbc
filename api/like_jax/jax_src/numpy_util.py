"""Arrays of one dtype: the names of `jax._src.numpy.util` that libraries use."""

from typing import Any

from tapeless.like_jax.jax_src.dtypes import to_complex_dtype, to_inexact_dtype
from tapeless.tracer.array import Array
from tapeless.tracer.numpy import asarray
from tapeless.tracer.numpy.scalar_types import result_type

__all__ = ["promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact"]


def promote_dtypes(*args: Any) -> list[Array]:
    """Convert arrays to the dtype that they have in common. Raises: TypeError if there is none."""
    dtype = result_type(*args)
    return [asarray(x, dtype) for x in args]


def promote_dtypes_inexact(*args: Any) -> list[Array]:
    """Convert arrays to the floating or complex dtype that holds all of theirs. Raises: TypeError if there is none."""
    dtype = to_inexact_dtype(result_type(*args))
    return [asarray(x, dtype) for x in args]


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """Convert arrays to the complex dtype that holds all of theirs. Raises: TypeError if there is none."""
    dtype = to_complex_dtype(result_type(*args))
    return [asarray(x, dtype) for x in args]
