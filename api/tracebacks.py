"""Tracebacks without frames of Tapeless: what Python, and IPython, print of an error that nobody caught.

The traceback of an error that passes through our code ends at the user's line, and a note says so.
`config.traceback_filtering = "quiet_remove_frames"` leaves the note out; with "off" every frame is shown, as of an
InternalError, which is a bug of ours. Tracebacks that a program formats itself, as `logging.exception` does, and those
of test runners are whole. A note below a TypeError about a keyword of PyTorch's says what to write.
"""

import importlib
import sys
import threading
from types import TracebackType
from typing import Any

from tapeless.tracer import source
from tapeless.tracer.config import config
from tapeless.tracer.errors import InternalError

_NOTE = "(Frames of tapeless are left out. tapeless.config.traceback_filtering = 'off' shows them.)"


def install() -> None:
    """Filter what is printed from now on, by whatever hooks there are."""
    _print, _print_of_thread = sys.excepthook, threading.excepthook

    def print_filtered(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        _print(kind, error, filtered(error, traceback))

    def print_filtered_of_thread(args: Any) -> None:
        found = filtered(args.exc_value, args.exc_traceback)
        _print_of_thread(threading.ExceptHookArgs((args.exc_type, args.exc_value, found, args.thread)))

    sys.excepthook, threading.excepthook = print_filtered, print_filtered_of_thread
    shell = _ipython()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _print_in_ipython)


def filtered(error: BaseException | None, traceback: TracebackType | None) -> TracebackType | None:
    """Leave our frames out of the traceback of an error, and of those that it followed, and add a note that says so.

    The traceback is whole where the setting asks for it, in a bug of ours, and where nobody else's frame is in it.
    """
    if config.traceback_filtering == "off" or not isinstance(error, Exception) or isinstance(error, InternalError):
        return traceback
    _advise(error)
    found = _without_ours(traceback)
    if found is traceback:
        return traceback
    for each in _with_causes(error):
        each.__traceback__ = found if each is error else _frames_of_user(each.__traceback__)
    if config.traceback_filtering != "quiet_remove_frames" and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)
    return found


def _advise(error: Exception) -> None:
    """Note what to write in the place of a keyword of PyTorch's."""
    if type(error) is TypeError and "unexpected keyword argument" in str(error):
        advice = importlib.import_module("tapeless.tracer.pytorch_keywords").advice(str(error))
        if advice is not None and advice not in getattr(error, "__notes__", ()):
            error.add_note(advice)


def _with_causes(error: BaseException) -> list[BaseException]:
    """An error, the one that it followed, and so on."""
    found, following = [error], error.__cause__ or error.__context__
    while following is not None and following not in found:
        found.append(following)
        following = following.__cause__ or following.__context__
    return found


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are the user's; the same object if none is ours, or all are."""
    frames = [part.tb_frame for part in source.walk_traceback(traceback)]
    if not any(map(source.include_frame, frames)) or not any(source.is_of_package(frame.f_code) for frame in frames):
        return traceback
    return _frames_of_user(traceback)


def _frames_of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are the user's; None if none is."""
    found = None
    for part in reversed([*source.walk_traceback(traceback)]):
        if source.include_frame(part.tb_frame):
            found = TracebackType(found, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return found


def _ipython() -> Any:
    """The IPython shell that this process is, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def _print_in_ipython(
    shell: Any, kind: Any, error: BaseException, traceback: Any, tb_offset: int | None = None
) -> None:
    shell.showtraceback((kind, error, filtered(error, traceback)), tb_offset=tb_offset)
