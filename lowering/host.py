"""Host callbacks of compiled programs: the functions that jaxlib calls, their exceptions, waiting for their effects.

jaxlib passes read-only NumPy arrays to a callback and takes a tuple of contiguous ones, without any check of them. It
may call on any thread. Of an exception it keeps only the text, so the exception itself is kept here, under a number
that goes into the text. On the CPU a program with callbacks runs before its dispatch returns; on a GPU an exception is
raised where the results are read.
"""

import builtins
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import memory_errors
from tapeless.lowering.xla_workarounds.compat import xc
from tapeless.tracer.primitives.callback import Callback, call_host
from tapeless.tracer.types import ShapedArray


class HostCall:
    """A callback in the form that jaxlib calls, with results of the types `avals`."""

    def __init__(self, callback: Callback, avals: Sequence[ShapedArray]) -> None:
        self._callback, self._avals = callback, tuple(avals)

    def __call__(self, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        try:
            return tuple([np.asarray(y, order="C") for y in call_host(self._callback, self._avals, arrays)])
        except BaseException as error:  # an interrupt too belongs to whoever runs the program
            raise _Kept(_keep(error)) from None


class _Kept(Exception):
    """Raised instead of a callback's exception, with the number under which it is kept."""


def _keep(error: BaseException) -> str:
    number = next(_numbers)
    _raised[number] = error
    for old in list(_raised)[:-_LIMIT]:
        _raised.pop(old, None)
    return f"tapeless-callback-{number}"


def raising(run: Callable[..., Any], *args: Any) -> Any:
    """Run a program, or wait for its results; raise the exception of a callback as it was raised.

    The error of a program that ran out of memory says of its values what the program itself would.

    jaxlib's own error is what a second reader of the same results gets: the exception is kept once.
    """
    try:
        return run(*args)
    except xc.XlaRuntimeError as error:
        exception = _raised_by(error) or memory_errors.explain_read(error)
        if exception is error:
            raise
    raise exception


def _raised_by(error: Exception) -> BaseException | None:
    """Return the exception of a callback that jaxlib's error reports, and forget it; None if it reports none."""
    found = re.search(r"tapeless-callback-(\d+)", str(error))
    exception = _raised.pop(int(found[1]), None) if found else _raised_at_entry(str(error))
    for other in raised_as:
        exception = exception and other(exception)
    return exception


def _raised_at_entry(text: str) -> BaseException | None:
    """Rebuild the exception that a signal handler raised between jaxlib's call and our `try`, from its text.

    That is enough for exceptions of Python's own, such as KeyboardInterrupt.
    """
    found = re.search(r"Callback error calling callback: Traceback .*\n(\w+)(?:: (.*))?\Z", text.rstrip(), re.DOTALL)
    kind = vars(builtins).get(found[1]) if found else None
    return kind(found[2] or "") if found and isinstance(kind, type) and issubclass(kind, BaseException) else None


# Functions from a callback's exception to the one to raise in its place; for code that expects jaxlib's.
raised_as: list[Callable[[BaseException], BaseException]] = []
_LIMIT = 64  # exceptions that are kept though nobody fetches them, of programs whose results are not read
_raised: dict[int, BaseException] = {}
_numbers = itertools.count()

# ---- waiting -------------------------------------------------------------------------------------------------


def await_later(device: Any, token: Any) -> None:
    """Make `effects_barrier` wait for a dispatched program, by jaxlib's token of its execution."""
    _outstanding[device] = token


def effects_barrier() -> None:
    """Wait until the effects of all dispatched programs have happened, such as printing.

    Raises: the exception of a callback, if it was not raised yet.
    """
    for device in list(_outstanding):
        token = _outstanding.pop(device, None)
        if token is not None:
            raising(token.block_until_ready)


_outstanding: dict[Any, Any] = {}  # by device, which runs programs in the order of their dispatch
