"""Arrays in files: in NumPy's format, in text, and as raw bytes."""

from typing import Any

import ml_dtypes
import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.promotion import array_operand, as_array
from tapeless.tracer.types import exact

_BFLOAT16, _UNNAMED = np.dtype(ml_dtypes.bfloat16), np.dtype("V2")  # NumPy's files name bfloat16 so


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format, as `numpy.save` does.

    Args:
      file: a path or an open file.
      allow_pickle: passed to `numpy.save`; arrays of numbers are never pickled.
    Raises: TypeError for keys, and for a narrow dtype that NumPy's format does not name, except bfloat16.

    >>> import io, tapeless.numpy as tnp
    >>> file = io.BytesIO()
    >>> tnp.save(file, tnp.arange(3))
    >>> np.load(io.BytesIO(file.getvalue()))
    array([0, 1, 2], dtype=int32)
    """
    np.save(file, _storable("save", arr), allow_pickle)


def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Write several arrays to one archive, as `numpy.savez` does, under `arr_0`, `arr_1`, ..., or their keywords.

    Raises: as `save`.

    >>> import io, tapeless.numpy as tnp
    >>> file = io.BytesIO()
    >>> tnp.savez(file, tnp.arange(2), w=tnp.ones(2))
    >>> sorted(tnp.load(io.BytesIO(file.getvalue())))
    ['arr_0', 'w']
    """
    arrays = {name: _storable("savez", x) for name, x in kwds.items()}
    np.savez(file, *[_storable("savez", x) for x in args], allow_pickle=allow_pickle, **arrays)


def _storable(name: str, arr: ArrayLike) -> np.ndarray[Any, Any]:
    """Return the elements as a NumPy array. Raises: TypeError if NumPy's format has no name for the dtype."""
    values = np.asarray(array_operand(name, arr))
    if values.dtype.isbuiltin != 1 and values.dtype != _BFLOAT16:
        raise TypeError(f"{name}: NumPy's format has no name for {values.dtype}: save x.view('uint8'), or convert it.")
    return values


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array from a file that `save` or `numpy.save` wrote; takes the arguments of `numpy.load`.

    Returns: an array; elements of two bytes without a name become bfloat16. For an archive of several arrays, NumPy's
      object.
    Raises: as `numpy.load`.

    >>> import io, tapeless.numpy as tnp
    >>> file = io.BytesIO()
    >>> tnp.save(file, tnp.arange(3))
    >>> tnp.load(io.BytesIO(file.getvalue()))
    Array([0, 1, 2], dtype=int32)
    """
    found = np.load(file, *args, **kwargs)
    if not isinstance(found, np.ndarray):
        return found
    return asarray(found.view(_BFLOAT16) if found.dtype == _UNNAMED else found)


def fromfile(file: Any, dtype: DTypeLike | None = None, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """Read a vector from a binary or text file, as `numpy.fromfile` does; immediately, also while tracing.

    Args:
      dtype: of the elements. For text the default float if None; for bytes it must be given.
      count, sep, offset: as for `numpy.fromfile`.
    Raises: TypeError for bytes without a dtype; as `numpy.fromfile`.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"\\x01\\x02\\x03"), file.seek(0)
    ...     fromfile(file, "uint8", count=2)
    Array([1, 2], dtype=uint8)
    """
    if dtype is None and not sep:
        raise TypeError("fromfile: the file does not say what its bytes are: give the dtype, as 'float64'.")
    return as_array(exact(np.fromfile(file, dtypes.canonical(dtype or float), count, sep, offset=offset)))


def fromiter(iter: Any, dtype: DTypeLike, count: int = -1) -> Array:
    """Make a vector from the numbers of an iterator, as `numpy.fromiter` does.

    Args:
      dtype: of the elements.
      count: how many numbers are taken, all if -1.
    Raises: ValueError if there are fewer numbers than `count`.
    """
    return as_array(exact(np.fromiter(iter, dtypes.canonical(dtype), count)))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Read a vector from the numbers in a text, as `numpy.fromstring` does.

    Args:
      dtype: of the elements, the default float if not given.
      count: how many numbers are read, all if -1.
      sep: the separator of the numbers, besides white space.
    Raises: ValueError if the text has anything else than numbers and separators.
    """
    return as_array(exact(np.fromstring(string, dtypes.canonical(dtype), count, sep=sep)))
