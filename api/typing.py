"""Types for annotations: the names of `jax.typing`, and `Key`."""

import typing as _typing

import numpy as _np

from tapeless.tracer.array import Array
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

if _typing.TYPE_CHECKING:
    from tapeless.tracer.array import ArrayLike
    from tapeless.tracer.dtypes import DTypeLike
else:
    ArrayLike = Array | _np.ndarray | _np.generic | bool | int | float | complex  # isinstance takes it
    DTypeLike = _np.dtype | type | str
Key: _typing.TypeAlias = Array  # of random numbers: an array of a dtype of keys, which `random.key` makes

__all__ = ["Array", "ArrayLike", "DTypeLike", "Key"]

_complete_namespace(globals())
