"""Printing of arrays, by NumPy and its options."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tapeless.tracer.array import ArrayLike
from tapeless.tracer.numpy.creation import asarray


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Set how Tapeless's and NumPy's arrays are printed, as `numpy.set_printoptions` does.

    >>> from tapeless.numpy import linspace
    >>> set_printoptions(precision=2)
    >>> linspace(0, 1, 4)
    Array([0.  , 0.33, 0.67, 1.  ], dtype=float32)
    >>> set_printoptions(precision=8)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> Mapping[str, Any]:
    """Return the options for printing arrays, as `numpy.get_printoptions` does."""
    return np.get_printoptions()


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Set how arrays are printed within a with block, as `numpy.printoptions` does.

    >>> import tapeless.numpy as tnp
    >>> with printoptions(precision=2):
    ...     print(tnp.array([0.125, 2.0]))
    [0.12 2.  ]
    """
    return np.printoptions(*args, **kwargs)


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Format an array as `repr` does, with the options of `numpy.array_repr`; None for the options that are set."""
    given = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    options: dict[str, Any] = {name: option for name, option in given.items() if option is not None}
    with np.printoptions(**options):
        return repr(asarray(arr))


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Format the elements of an array as `str` does, with the options of `array_repr`."""
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
