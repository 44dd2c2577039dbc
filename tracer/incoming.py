"""Convert users' NumPy arrays of 64 bits to 32 bits if `config.numpy_bits` is 32.

Such an array has a 32-bit type then (`types.aval_of`), and is converted where its elements are read: put on a device,
or made a constant of a program. NumPy arrays that we make are `Exact`: they keep their dtype.
"""

from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.settings.config import config


class Exact(np.ndarray[Any, Any]):
    """A NumPy array whose dtype is meant, whatever `config.numpy_bits` is; read-only, for programs share it."""


def exact(values: Any, dtype: Any = None) -> Exact:
    """Make a NumPy array of this dtype, one of ours."""
    made = np.asarray(values, dtype).view(Exact)
    made.flags.writeable = False
    return made


def kept(x: np.ndarray[Any, Any]) -> Exact:
    """Take a NumPy array into a program, which outlives the call that traced it: a copy, unless the array is ours."""
    return x if isinstance(x, Exact) and not x.flags.writeable else exact(x.copy())


def is_masked(value: Any) -> bool:
    """Tell whether `value` is a masked array of NumPy, which is no array here: its mask would be lost."""
    return type(value) is not np.ndarray and isinstance(value, np.ndarray) and hasattr(value, "mask")


def incoming(x: Any) -> Any:
    """Convert a user's NumPy array of 64 bits as `config.numpy_bits` says; return any other value as it is.

    A masked array is returned as it is, to be refused where arrays are expected: converted, it would lose its mask.

    Raises: OverflowError if an element does not fit.
    """
    if config.numpy_bits == 64 or not isinstance(x, np.ndarray) or isinstance(x, Exact) or is_masked(x):
        return x
    wide = dtypes.canonical(x.dtype)
    dtype = dtypes.numpy_dtype(wide)
    return x if dtype == wide else narrowed(x, dtype)


def incoming_number(x: Any) -> Any:
    """Convert a user's value as `incoming` does; also NumPy scalars of 64 bits."""
    if config.numpy_bits == 64 or not isinstance(x, np.generic):
        return incoming(x)
    return incoming(np.asarray(x))[()]


def narrowed(x: np.ndarray[Any, Any], dtype: Any) -> Exact:
    """Convert a NumPy array to a narrower dtype of its kind. Raises: OverflowError if an element does not fit."""
    if dtypes.is_integer(dtype):
        _check_integers(x, dtype)
        return exact(x, dtype)
    try:
        with np.errstate(over="raise"):
            return exact(x, dtype)
    except FloatingPointError:
        raise _unfit(x, dtype, x.flat[np.argmax(np.abs(np.where(np.isfinite(x), x, 0)))]) from None


def _check_integers(x: np.ndarray[Any, Any], dtype: Any) -> None:
    least, greatest = dtypes.limits(dtype)
    for extreme in (x.min(), x.max()) if x.size else ():
        if not least <= int(extreme) <= greatest:
            raise _unfit(x, dtype, extreme)


def _unfit(x: np.ndarray[Any, Any], dtype: Any, element: Any) -> OverflowError:
    array = f"{x.dtype}[{','.join(map(str, x.shape))}]"
    return OverflowError(
        f"config.numpy_bits is 32, so a NumPy array {array} is taken as {dtype}, which {element} does not fit.\n"
        f"  Keep its width with tnp.asarray(x, {x.dtype.name!r}), or by jax_enable_x64 inside of as_jax; or convert it "
        "where it is read."
    )
