"""Types for annotations: the names of `jax.typing`."""

from typing import TypeAlias

import numpy as np

from tapeless.tracer.array import Array

ArrayLike: TypeAlias = Array | np.ndarray | np.generic | bool | int | float | complex  # isinstance takes it, too
DTypeLike: TypeAlias = np.dtype | type | str

__all__ = ["Array", "ArrayLike", "DTypeLike"]
