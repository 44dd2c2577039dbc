"""Values that users' functions are called with: rules, branches and bodies of loops get arrays of ours.

A transformation often has no more than a number: the seed of a gradient, or an operand that somebody wrote. Handed on
as it is, it would compute by NumPy's promotion, and might be one that programs share.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.types import is_masked


def as_argument(x: Any) -> Any:
    """Make an array of a number or a NumPy array; what is one of ours, or is none at all, stays.

    Truth values of Python stay too, as rules branch on them, and zeros of dtype float0, which are NumPy's everywhere.
    """
    if type(x) in (int, float, complex):
        return core.make_unplaced(x)
    if not isinstance(x, _VALUES) or isinstance(x, bool) or getattr(x, "dtype", None) == dtypes.float0 or is_masked(x):
        return x
    return core.make_unplaced(x)


_VALUES = (np.ndarray, np.generic, int, float, complex)


def as_arguments(xs: Iterable[Any]) -> list[Any]:
    """Make arrays of numbers and NumPy arrays: `as_argument` of each."""
    return [x if isinstance(x, Array) else as_argument(x) for x in xs]
