"""Exceptions at chosen moments of a call: those at which CPython runs signal handlers.

That is when a function in Python is entered and when one in C has returned, which is what a profiler is told of.
"""

import random
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any

# NumPy's errstate may stay set if it is interrupted; it is not ours, and what it sets is NumPy's warnings.
_LEFT_OUT = "_ufunc_config.py"


class Interrupt(BaseException):
    """As KeyboardInterrupt, and of nobody else."""


def count(f: Callable[[], Any]) -> int:
    """How many moments a call of `f` has."""
    return len(_observed(f))


def chosen(f: Callable[[], Any], n: int) -> list[int]:
    """Moments of a call of `f`: `n` of all, and `n` of those around the setting of context variables.

    At random and the same ones each time.
    """
    seen, choice = _observed(f), random.Random(0)
    delicate = [i for i, is_delicate in enumerate(seen, 1) if is_delicate]
    return choice.sample(range(1, len(seen) + 1), n) + choice.sample(delicate, min(n, len(delicate)))


def interrupt(f: Callable[[], Any], moment: int, error: BaseException | None = None) -> None:
    """Call `f`, raising `error` at this moment if there is one, by default an Interrupt."""
    moments = 0

    def look(frame: FrameType, event: str, called: Any) -> None:
        nonlocal moments
        moments += _is_moment(frame, event)
        if moments == moment:
            moments += 1
            raise error or Interrupt

    _profiled(f, look)


def _observed(f: Callable[[], Any]) -> list[bool]:
    """For every moment of a call of `f`, whether it is one around the setting of context variables."""
    seen: list[bool] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        if _is_moment(frame, event):
            sets = event == "c_return" and isinstance(getattr(called, "__self__", None), ContextVar)
            seen.append(sets or frame.f_code.co_filename.endswith("contextlib.py"))

    _profiled(f, look)
    return seen


def _is_moment(frame: FrameType, event: str) -> bool:
    return event in ("call", "c_return") and not frame.f_code.co_filename.endswith(_LEFT_OUT)


def _profiled(f: Callable[[], Any], look: Any) -> None:
    sys.setprofile(look)
    try:
        f()
    finally:
        sys.setprofile(None)
