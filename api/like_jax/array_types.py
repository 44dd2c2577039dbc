"""Types of libraries that are arrays: the mappings of `jax.core` and `jax.interpreters.xla` that libraries write to."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, Final

import numpy as np

from tapeless.tracer.array import Array


class ArrayTypes(MutableMapping[type, Callable[[Any], Any]]):
    """A mapping from types to functions; a type that is written to it gets the protocol `__jax_array__`.

    The functions are not called: arrays of NumPy, by `numpy.asarray`, take the place of the type's instances.
    """

    def __init__(self) -> None:
        self._functions: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray, Array: np.asarray}

    def __getitem__(self, kind: type) -> Callable[[Any], Any]:
        return self._functions[kind]

    def __setitem__(self, kind: type, function: Callable[[Any], Any]) -> None:
        self._functions[kind] = function
        if kind not in (np.ndarray, Array):
            kind.__jax_array__ = _converted  # type: ignore[attr-defined]

    def __delitem__(self, kind: type) -> None:
        del self._functions[kind]
        del kind.__jax_array__  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[type]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def _converted(self: Any) -> np.ndarray[Any, Any]:
    return np.asarray(self)


array_types: Final = ArrayTypes()
