"""Where in the user's program an equation comes from.

Recording costs one short walk up the stack per equation; file, line and text are decoded only when printed.
"""

import linecache
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import CodeType

from tapeless.tracer.recency import bounded
from tapeless.tracer.scopes import Arguments, Result, scoped

_LONGEST = 160  # characters of a line that messages quote: who has longer ones finds them by the number
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The source folders: installed they lie under one, in a checkout beside one another.
_PACKAGES = ("",) if os.path.basename(_ROOT) == "tapeless" else ("api", "tracer", "interpreters", "lowering")
_FOLDERS = tuple(os.path.join(_ROOT, name, "") for name in _PACKAGES)
# Both by id, which what is stored keeps from being used again: functions of two files may have equal code.
_ours: dict[int, tuple[CodeType, bool]] = {}
_known: dict[tuple[int, int], "Source"] = {}  # one object for each place, so that programs can share what it costs
_LIMIT = 16384  # entries of each, of which only a program that makes code as it runs has so many
override: ContextVar["Source | None"] = ContextVar("source", default=None)  # the place of all equations, if set


class Source:
    """One place in a user's program: `file`, `line`, `function`, `text`."""

    __slots__ = ("code", "instruction")

    def __init__(self, code: CodeType, instruction: int) -> None:
        self.code, self.instruction = code, instruction

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def line(self) -> int:
        for i, (line, *_) in enumerate(self.code.co_positions()):
            if i == self.instruction // 2:
                return line or self.code.co_firstlineno
        return self.code.co_firstlineno

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{_short_path(self.file)}:{self.line}"

    def file_line(self) -> str:
        """`model.py:12`, the first line of the function."""
        return f"{_short_path(self.file)}:{self.code.co_firstlineno}"

    def describe(self) -> str:
        """`model.py:41 (loss), y = sin(h)`: for error messages."""
        text = f", {_quoted(self.text)}" if self.text else ""
        return f"{self} ({self.function}){text}"


def current() -> Source | None:
    """The innermost frame that is not ours, or the place set by `at`."""
    place = override.get()
    if place is not None:
        return place
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
    while frame is not None:
        code = frame.f_code
        _, ours = _ours.get(id(code)) or bounded(_ours, _LIMIT).setdefault(id(code), (code, _is_ours(code)))
        if not ours:
            key = id(code), frame.f_lasti
            return _known.get(key) or bounded(_known, _LIMIT).setdefault(key, Source(code, frame.f_lasti))
        frame = frame.f_back
    return None


def at(
    place: Source | None, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """`f(*args, **params)`, whose equations come from `place`: a derivative belongs to the line it differentiates."""
    return scoped(override, place, f, *args, **params)


def describe_here() -> str:
    """The user's line that is running, for error messages; empty if there is none."""
    place = current()
    return place.describe() if place else ""


def _is_ours(code: CodeType) -> bool:
    file = os.path.abspath(code.co_filename)
    between = code.co_filename.startswith("<frozen") or os.path.basename(file) in ("functools.py", "contextlib.py")
    return between or file.startswith(_FOLDERS)


def _quoted(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _short_path(file: str) -> str:
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return os.path.basename(file) if relative.startswith("..") else relative
