"""The interface of what computes: the slot at the bottom of core.py, which the package `tapeless` fills."""

from collections.abc import Callable
from typing import Any, Protocol

from tapeless.tracer.array import Array


class Evaluator(Protocol):
    """The interface of the evaluator at the bottom, which runs programs; the package `tapeless` sets it."""

    def evaluate(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Compute one primitive on concrete values."""
        ...

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute a `compound` function on concrete values as one program."""
        ...

    def unplaced(self, x: Any) -> Array:
        """Make an array of a number or a NumPy array, on whichever device it is used."""
        ...

    def place(self, x: Array, device: Any) -> Array:
        """Put an array on a device; a traced one stays where its program runs. Raises: TypeError for no device."""
        ...
