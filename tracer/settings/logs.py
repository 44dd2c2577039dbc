"""The logger "tapeless", for `config.log_compiles` and `config.explain_cache_misses`."""

import importlib
import time
from collections.abc import Callable
from typing import TypeVar

from tapeless.tracer.settings.config import config

T = TypeVar("T")
Event = tuple[str, str, str]  # "traced", "loss at model.py:3", "jit"
listeners: list[Callable[[str, str, str], None]] = []  # called with each event


def warn(message: str) -> None:
    """Log a warning."""
    importlib.import_module("logging").getLogger("tapeless").warning(message)  # loaded when there is something to log


def time_work(event: Callable[[], Event], work: Callable[[], T], result: Callable[[T], str]) -> T:
    """Run work, and notify listeners; with `config.log_compiles`, log how long it took, and what `result` says."""
    if not config.log_compiles and not listeners:
        return work()
    start = time.perf_counter()
    done = work()
    seconds = time.perf_counter() - start
    what, name, purpose = event()
    for listener in listeners:
        listener(what, name, purpose)
    if config.log_compiles:
        warn(f"{what.capitalize()} {name} for {purpose} in {_duration(seconds)}{result(done)}")
    return done


def _duration(seconds: float) -> str:
    """Write a duration in the unit that suits it: `0.2 ms`, `59 ms`, `1.25 s`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.1f} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"
