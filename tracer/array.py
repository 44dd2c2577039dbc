"""`Array`: what every array value is, traced or on a device. isinstance(x, tl.Array) holds for both.

Operators and methods are NumPy's; `tracer/numpy/array_methods.py` installs them, since they are NumPy functions.
"""

from typing import Any

import numpy as np

from tapeless.tracer.types import ShapedArray


class Array:
    """An array of ours. Subclasses provide `aval`; operators and methods are those of `numpy.ndarray`."""

    __slots__ = ()
    __array_priority__ = 1000  # so that `np.ones(3) * x` asks us first

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way to that of any strongly typed operand of its kind."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.aval.size * self.aval.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.aval.dtype.itemsize

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of an array without axes.")
        return self.aval.shape[0]


ArrayLike = Any  # an Array, a NumPy array or scalar, or a Python number; `types.aval_of` says exactly what
