"""Checks that a user writes into a program: callbacks that raise an error when their condition is false.

Where a program is made functional in its errors (`interpreters/error_values.py`) they are conditions like any other.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.interpreters.vmap import Dim
from tapeless.tracer.types import ShapedArray


class UserCheck:
    """A condition with what its message is made of: `callback(avals, condition, *values)` of the primitive.

    Args:
      message: makes the text of an error of values.
      error: the class of the error.
      debug: do nothing as a callback.
      mapped: for every `vmap` around it, from the innermost, the mapped axes of the condition and the values.
    """

    def __init__(
        self,
        message: Callable[[Sequence[Any]], str],
        error: type[Exception],
        mapped: Sequence[Sequence[Dim]] = (),
        debug: bool = False,
    ) -> None:
        self.message: Final = message
        self._error = error
        self._mapped = tuple(mapped)
        self._debug = debug
        self.__name__ = "check"

    def batched(self, dims: Sequence[Dim]) -> "UserCheck":
        """The check of all examples at once."""
        return UserCheck(self.message, self._error, (*self._mapped, tuple(dims)), self._debug)

    def first(self, xp: Any, values: Sequence[Any]) -> list[Any]:
        """The condition and the values of the first example for which it is false, or of any if there is none."""
        condition, *others = values
        for dims in reversed(self._mapped):
            axis = dims[0]
            place = 0
            if axis is not None:
                holds = xp.all(condition, axis=tuple([i for i in range(xp.ndim(condition)) if i != axis]))
                place = xp.argmin(holds)
            taken = [x if d is None else xp.take(x, place, d) for x, d in zip((condition, *others), dims)]
            condition, *others = taken
        return [condition, *others]

    def __call__(self, avals: Sequence[ShapedArray], *arrays: Any) -> list[np.ndarray[Any, Any]]:
        condition, *values = self.first(np, [np.asarray(x) for x in arrays])
        if not (condition or self._debug):
            raise self._error(self.message(values))
        return []
