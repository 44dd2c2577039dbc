"""Printing of arrays: NumPy prints ours too, and has the options."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how arrays are printed, ours and NumPy's, as `numpy.set_printoptions` does.

    >>> from tapeless.numpy import linspace
    >>> set_printoptions(precision=2)
    >>> linspace(0, 1, 4)
    Array([0.  , 0.33, 0.67, 1.  ], dtype=float32)
    >>> set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> Mapping[str, Any]:
    """Return the options that arrays are printed with, as `numpy.get_printoptions` does."""
    return np.get_printoptions()


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Set how arrays are printed within a with block, as `numpy.printoptions` does."""
    return np.printoptions(*args, **kwargs)
