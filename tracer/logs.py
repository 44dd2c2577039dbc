"""The logger "tapeless": what `config.log_compiles` and `config.explain_cache_misses` tell."""

import importlib
import time
from collections.abc import Callable
from typing import TypeVar

from tapeless.tracer.config import config

T = TypeVar("T")


def warn(message: str) -> None:
    """Log a warning."""
    importlib.import_module("logging").getLogger("tapeless").warning(message)  # loaded when there is something to log


def timed(what: str, work: Callable[[], T]) -> T:
    """Do some work; with `config.log_compiles`, log how long it took."""
    if not config.log_compiles:
        return work()
    start = time.perf_counter()
    done = work()
    warn(f"{what} in {time.perf_counter() - start:.6f} sec")
    return done
