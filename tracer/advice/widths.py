"""Error texts for 64-bit NumPy arrays that are combined with 32-bit types.

NumPy makes arrays of 64 bits unless told otherwise, and they keep their width here (JAX truncates them). A typing rule
knows types only, so it marks its error as one of widths (`mismatch`); where the primitive was applied the operands are
known, and `explain` adds to the error which of them are NumPy's.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import Exact, ShapedArray


def mismatch(message: str, *avals: ShapedArray) -> TypeError:
    """Make the error for operands that differ in dtype, marked for `explain` if only some of them have 64 bits."""
    error = TypeError(message)
    if are_mixed(aval.dtype for aval in avals):
        vars(error)[_MARK] = True
    return error


def explain(error: Exception, operands: Iterable[Any]) -> None:
    """Add to the message of a marked error which operands are NumPy's, and what to do; leave other errors."""
    if vars(error).pop(_MARK, False):
        error.args = (f"{error.args[0]}{advice(operands)}",)


def advice(values: Iterable[Any]) -> str:
    """Advise on 64-bit values that came from NumPy, naming those among `values`, as a line of its own."""
    if config.numpy_bits == 32:
        return ""
    found = dict.fromkeys(f"{x.dtype}[{','.join(map(str, x.shape))}]" for x in values if is_wide(x))
    if found:
        arrays = " and ".join(found)
        what = f"{arrays} {'is a NumPy array' if len(found) == 1 else 'are NumPy arrays'}, and NumPy's width is kept"
    else:
        what = "NumPy arrays of 64 bits keep their width, as arguments of compiled functions, too"
    return (
        f"\n  {what}: convert where data come in, "
        "set tl.config.numpy_bits = 32 for all of them, "
        'or make 64 bits the default: tl.config.update("default_bits", 64).'
    )


def are_mixed(given: Iterable[Any]) -> bool:
    """Tell whether there are numbers of 64 bits among dtypes, and of fewer; parts of complex numbers count."""
    wide = [dtypes.bits_of(dtypes.real_part_dtype(d)) == 64 for d in given if dtypes.kind(d) in "iufc"]
    return any(wide) and not all(wide)


def is_wide(x: Any) -> bool:
    """Tell whether a value is an array of 64 bits from NumPy."""
    if not isinstance(x, np.ndarray) or (isinstance(x, Exact) and not x.ndim):  # constants of ours have no axes
        return False
    return dtypes.has_32_bit_form(x.dtype)


_MARK = "mixed_widths"
