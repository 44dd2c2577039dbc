"""Tracebacks without frames of Tapeless: what Python, and IPython, print of an error that nobody caught.

The traceback of an error that passes through our code ends at the user's line, and a note says so.
`config.traceback_filtering = "quiet_remove_frames"` leaves the note out; with "off" every frame is shown, as of an
InternalError, which is a bug of ours. Tracebacks that a program formats itself, as `logging.exception` does, and those
of test runners are whole. A note below a TypeError about a keyword says what to write in its place.
"""

import functools
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tapeless.tracer import source
from tapeless.tracer.advice.keyword_advice import advise
from tapeless.tracer.errors import InternalError
from tapeless.tracer.settings.config import config

_NOTE = "(Frames of tapeless are left out. tapeless.config.traceback_filtering = 'off' shows them.)"


def install() -> None:
    """Filter tracebacks that are printed from now on, by whatever hooks there are."""
    _print, _print_of_thread = sys.excepthook, threading.excepthook

    def print_filtered(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        _print(kind, error, filtered(error, traceback))

    def print_filtered_of_thread(args: Any) -> None:
        found = filtered(args.exc_value, args.exc_traceback)
        _print_of_thread(threading.ExceptHookArgs((args.exc_type, args.exc_value, found, args.thread)))

    sys.excepthook, threading.excepthook = print_filtered, print_filtered_of_thread
    printer = getattr(_ipython(), "InteractiveTB", None)
    if printer is not None:
        printer.structured_traceback = _filtering(printer.structured_traceback)


def filtered(error: BaseException | None, traceback: TracebackType | None) -> TracebackType | None:
    """Leave our frames out of the traceback of an error, and of those that it followed, and add a note that says so.

    The traceback is whole where the setting asks for it, in a bug of ours, and where nobody else's frame is in it.
    """
    if config.traceback_filtering == "off" or not isinstance(error, Exception) or isinstance(error, InternalError):
        return traceback
    advise(error)
    found, causes = _without_ours(traceback), [each for each in _causes(error) if _has_ours(each.__traceback__)]
    if found is traceback and not causes:
        return traceback
    error.__traceback__ = found
    for each in causes:
        each.__traceback__ = _frames_of_user(each.__traceback__)
    if config.traceback_filtering != "quiet_remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)
    return found


def _causes(error: BaseException) -> list[BaseException]:
    """List the error before an error, its cause or context, then the one before this, and so on."""
    found, following = list[BaseException](), error.__cause__ or error.__context__
    while following is not None and following is not error and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


def _has_ours(traceback: TracebackType | None) -> bool:
    return any(source.is_of_package(part.tb_frame.f_code) for part in source.walk_traceback(traceback))


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback that are the user's; the same object if none is ours, or all are."""
    is_mixed = any(source.include_frame(part.tb_frame) for part in source.walk_traceback(traceback))
    return _frames_of_user(traceback) if is_mixed and _has_ours(traceback) else traceback


def _frames_of_user(traceback: TracebackType | None) -> TracebackType | None:
    """Return the frames of a traceback that are the user's; None if none is."""
    found = None
    for part in reversed([*source.walk_traceback(traceback)]):
        if source.include_frame(part.tb_frame):
            found = TracebackType(found, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return found


def _ipython() -> Any:
    """Return the IPython shell that this process is, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def _filtering(formatted: Callable[..., Any]) -> Callable[..., Any]:
    """Filter what IPython formats, of cells and of scripts alike: its hook for exceptions is not called for scripts."""

    @functools.wraps(formatted)
    def format_filtered(
        kind: Any = None, error: Any = None, traceback: Any = None, /, *args: Any, **params: Any
    ) -> Any:
        is_whole = isinstance(traceback, TracebackType)  # else it is that of a cause, which is filtered by now
        found = filtered(error, traceback) if is_whole else traceback
        return formatted(kind, error, found, *args, **params)

    return format_filtered
