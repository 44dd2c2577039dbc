"""Types for annotations: the names of `jax.typing`."""

import typing as _typing

import numpy as _np

from tapeless.tracer.array import Array

ArrayLike: _typing.TypeAlias = (
    Array | _np.ndarray | _np.generic | bool | int | float | complex
)  # isinstance takes it, too
DTypeLike: _typing.TypeAlias = _np.dtype | type | str

__all__ = ["Array", "ArrayLike", "DTypeLike"]
