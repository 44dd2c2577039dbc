"""Errors about arguments of a program, by their numbers, turned by its caller into errors that name them.

They are errors of Python's classes beside: who lets them pass raises those.
"""

from abc import abstractmethod
from collections.abc import Callable

from tapeless.lowering.array import deleted_error
from tapeless.tracer.types import ShapedArray


class ArgumentError(Exception):
    """An error about arguments of a program."""

    @abstractmethod
    def after(self, count: int) -> "ArgumentError":
        """The same error, with positions counted from behind the first `count` arguments, which are negative."""

    @abstractmethod
    def by_name(self, name: Callable[[int], str]) -> Exception:
        """An error of Python's class whose message names the arguments by their positions."""


class DeletedArgument(ArgumentError, RuntimeError):
    """An argument was deleted, or its memory donated."""

    def __init__(self, aval: ShapedArray, position: int) -> None:
        super().__init__(aval, position)
        self._aval, self._position = aval, position

    def __str__(self) -> str:
        return str(self.by_name("argument {}".format))

    def after(self, count: int) -> "DeletedArgument":
        return DeletedArgument(self._aval, self._position - count)

    def by_name(self, name: Callable[[int], str]) -> RuntimeError:
        return deleted_error(self._aval, name(self._position))


class SharedArgument(ArgumentError, ValueError):
    """Two arguments are one array, whose memory is donated."""

    def __init__(self, aval: ShapedArray, first: int, second: int) -> None:
        super().__init__(aval, first, second)
        self._aval, self._positions = aval, (first, second)

    def __str__(self) -> str:
        return f"arguments {self._positions[0]} and {self._positions[1]} {self._told()}"

    def after(self, count: int) -> "SharedArgument":
        first, second = self._positions
        return SharedArgument(self._aval, first - count, second - count)

    def by_name(self, name: Callable[[int], str]) -> ValueError:
        return ValueError(f"{name(self._positions[0])} and {name(self._positions[1])} {self._told()}")

    def _told(self) -> str:
        return (
            f"are one array, {self._aval}, and its memory is donated.\n  Pass a copy as one of them, or donate neither."
        )
