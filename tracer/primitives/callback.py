"""Host callbacks: calls of Python functions, from compiled programs too; pure, with effects, or for debugging.

`callback(avals, *arrays)` takes the types that its results must have and NumPy arrays, and returns NumPy arrays of
these types. Callbacks are compared by identity. Users' functions are wrapped in `tapeless.host.callbacks`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.types import ShapedArray

Callback = Callable[..., Sequence[np.ndarray[Any, Any]]]  # callback(avals, *arrays)


def pure_callback(
    callback: Callback, result_avals: Sequence[ShapedArray], *args: Any, vmap_method: str | None = None
) -> tuple[Any, ...]:
    """Call a Python function without effects, and return its results; it may be called any number of times, or never.

    Args:
      vmap_method: how it is called under `vmap`, see interpreters/rules/callback.py.
    """
    return pure_callback_p.bind(*args, callback=callback, result_avals=tuple(result_avals), vmap_method=vmap_method)


def _pure_callback_type(
    *avals: ShapedArray, callback: Callback, result_avals: tuple[ShapedArray, ...], vmap_method: str | None
) -> tuple[ShapedArray, ...]:
    return result_avals


pure_callback_p: Final = Primitive("pure_callback", _pure_callback_type, remember=False, takes_keys=False)


def io_callback(
    callback: Callback, result_avals: Sequence[ShapedArray], *args: Any, ordered: bool = False
) -> tuple[Any, ...]:
    """Call a Python function with effects once, and return its results; ordered calls keep the program's order."""
    return io_callback_p.bind(*args, callback=callback, result_avals=tuple(result_avals), ordered=ordered)


def _io_callback_type(
    *avals: ShapedArray, callback: Callback, result_avals: tuple[ShapedArray, ...], ordered: bool
) -> tuple[ShapedArray, ...]:
    return result_avals


io_callback_p: Final = Primitive("io_callback", _io_callback_type, remember=False, effect="io", takes_keys=False)


def debug_callback(callback: Callback, *args: Any, ordered: bool = False) -> None:
    """Call a Python function that observes values and returns none; transformations leave the call as it is."""
    debug_callback_p.bind(*args, callback=callback, ordered=ordered)


def _debug_callback_type(*avals: ShapedArray, callback: Callback, ordered: bool) -> tuple[ShapedArray, ...]:
    return ()


debug_callback_p: Final = Primitive(
    "debug_callback", _debug_callback_type, remember=False, effect="debug", takes_keys=False
)


def call_host(callback: Callback, avals: Sequence[ShapedArray], arrays: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Call a callback outside of any trace, and return the list of its arrays."""
    return list(source.at(None, core.under, core.bottom_trace(), callback, avals, *arrays))
