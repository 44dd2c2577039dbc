"""Arrays in files, in NumPy's format."""

from typing import Any

import ml_dtypes
import numpy as np

from tapeless.tracer.array import ArrayLike
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.promotion import array_operand

_BFLOAT16, _UNNAMED = np.dtype(ml_dtypes.bfloat16), np.dtype("V2")  # what NumPy's files have in the place of bfloat16


def save(file: Any, arr: ArrayLike) -> None:
    """Write an array to a file, given as a path or opened, as `numpy.save` does.

    Raises: TypeError for a narrow dtype that NumPy's format does not name, but for bfloat16; for keys.
    """
    values = np.asarray(array_operand("save", arr))
    if values.dtype.kind == "V" and values.dtype != _BFLOAT16:
        raise TypeError(f"save: NumPy's format has no name for {values.dtype}: save x.view('uint8'), or convert it.")
    np.save(file, values)


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a file that `save` or `numpy.save` wrote; takes the arguments of `numpy.load`.

    Returns: an array, of bfloat16 where the file has elements of two bytes without a name; of an archive of several
      arrays, NumPy's object.
    Raises: what `numpy.load` raises.
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(_BFLOAT16) if found.dtype == _UNNAMED else found)
