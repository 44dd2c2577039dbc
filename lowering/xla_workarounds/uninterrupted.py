"""Calls of jaxlib that an interrupt must not cut short.

jaxlib compiles on threads of its own while the calling thread waits and polls for signals. A handler that raises, as
Ctrl-C's does, ends the wait but not the compilation. This goes on with a module that the caller has freed: the
process ends by a segmentation fault, now or later (jaxlib 0.10.2). Signal handlers run on the main thread only, so such
a call is made on a thread of its own, which keeps the arguments alive until the call is done; an interrupt only ends
the main thread's wait for it, at once.

Left out: ending the compilation, for which jaxlib has no means. The interpreter waits for it at exit.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")
LATE = 5.0  # seconds


def call_uninterrupted(
    f: Callable[..., Result], *args: Any, when_late: Callable[[], None] | None = None, **keywords: Any
) -> Result:
    """Call `f(*args, **keywords)` on another thread, where no signal handler runs; return its result.

    Exceptions of `f` are raised here. If no thread can be started any more, `f` is called on this one. `when_late` is
    called here, once, if the result is not there after LATE seconds.
    """
    call = _CallingThread(f, args, keywords)
    try:
        call.start()
    except RuntimeError:  # as while the interpreter ends
        call.run()
    else:
        call.wait(when_late)
    return call.outcome()


class _CallingThread(threading.Thread):
    """A thread that makes one call and keeps its result or exception."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        super().__init__(name="tapeless compiling")
        self._call = f, args, keywords
        self._result: Any = None
        self._error: BaseException | None = None
        self._running = threading.Lock()
        self._running.acquire()

    def run(self) -> None:
        f, args, keywords = self._call
        try:
            self._result = f(*args, **keywords)
        except BaseException as error:
            self._error = error
        finally:
            self._running.release()

    def wait(self, when_late: Callable[[], None] | None) -> None:
        """Wait until the call is over. An interrupted `join` would take the thread for ended (CPython 3.11, 3.12)."""
        if when_late is not None:
            if self._running.acquire(timeout=LATE):
                return
            when_late()
        with self._running:
            pass

    def outcome(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        error, self._error = self._error, None  # the traceback refers to this thread, which must not refer to it
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error
