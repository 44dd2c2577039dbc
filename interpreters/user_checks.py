"""User checks (runtime assertions): callbacks that raise an error when their condition is false.

`checkify` (`interpreters/error_values.py`) does not call them: it computes their conditions, and returns the error.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.interpreters.vmap import Dim
from tapeless.tracer.types import ShapedArray


class UserCheck:
    """The callback of a `debug_callback` equation whose operands are a condition and the values in its message.

    Args:
      message: maps the values to the text of the error.
      error: the class of the error.
      mapped: for every `vmap` around it, from the innermost, the mapped axes of the condition and the values.
      debug: never raise as a callback; only `checkify` evaluates the check.
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
        """Return the check for operands with mapped axes `dims`, of the condition and the values."""
        return UserCheck(self.message, self._error, (*self._mapped, tuple(dims)), self._debug)

    def first(self, xp: Any, values: Sequence[Any]) -> list[Any]:
        """Return condition and values, by the array namespace `xp`, of the first example that fails, or else of one."""
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
