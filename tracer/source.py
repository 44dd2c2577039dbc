"""Source lines: the place in the user's program that an equation comes from.

Recording costs one short walk up the stack per equation; file, line and text are decoded only when printed.
"""

import functools
import itertools
import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType, TracebackType
from typing import Any, Final

import numpy as np

from tapeless.tracer import name_stacks
from tapeless.tracer.advice.keyword_advice import advise
from tapeless.tracer.caches import bound_entries
from tapeless.tracer.errors import JAXIndexError, JAXTypeError, LinearityError
from tapeless.tracer.settings.scopes import Arguments, Result, call_in_scope

_LONGEST = 160  # characters of a line that messages quote
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The source folders: installed they lie under one, in a checkout beside one another.
_PACKAGES = ("",) if os.path.basename(_ROOT) == "tapeless" else ("api", "tracer", "interpreters", "lowering")
_FOLDERS = tuple(os.path.join(_ROOT, name, "") for name in _PACKAGES)
# Libraries that call our methods back: the line that called them is the user's. Other packages may lie in the first.
_CALL_BACK = tuple(os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "") for module in (os, np))
# Tables by the id of code, as functions of two files may have equal code; what they hold keeps an id from reuse.
_excluded: set[str] = set()  # files of libraries that asked not to be taken for the user's program
_ours: dict[int, CodeType] = {}  # code that is not the user's
_known: dict[tuple[int, int, str], "Source"] = {}  # one object for each place, so that programs can share what it costs
_LIMIT = 16384  # entries of each table, which only a program that generates code reaches
override: ContextVar["Source | None"] = ContextVar("source", default=None)  # the place of all equations, if set
_scope: ContextVar[str] = ContextVar("named scope", default="")  # what is around, see name_stacks.py


class Source:
    """One place in a user's program: `file`, `line`, `function`, `text`, and the named `scope` around it."""

    __slots__ = ("code", "instruction", "stack")

    def __init__(self, code: CodeType, instruction: int, stack: str = "") -> None:
        self.code: Final = code
        self.instruction: Final = instruction
        self.stack: Final = stack

    @property
    def scope(self) -> str:
        """Named scopes around, outermost first, in transformations: `encoder/vmap(attention)`; empty without names."""
        return name_stacks.format_stack(self.stack)

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def line(self) -> int:
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end:
                return line or self.code.co_firstlineno
        return self.code.co_firstlineno

    @property
    def called(self) -> str:
        """The function that the user's program called here, as written, or the operands with their operator."""
        line, last, start, end = next(itertools.islice(self.code.co_positions(), self.instruction // 2, None))
        if line is None or line != last or start is None:
            return ""
        written = linecache.getline(self.file, line).encode()[start:end].decode()  # places are counted in bytes
        return written.partition("(")[0] or written

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @property
    def name_stack(self) -> str:
        """Named scopes and transformations in the same program, by JAX's name: those around its call are the call's."""
        return name_stacks.shown_inside(self.stack)

    def within(self, call: "Source | None") -> "Source":
        """Return the place of an equation of a program that is written in the place of its call."""
        if call is None or not call.stack:
            return self
        return _source(self.code, self.instruction, name_stacks.within(call.stack, name_stacks.inside(self.stack)))

    def __str__(self) -> str:
        return f"{short_path(self.file)}:{self.line}"

    def file_line(self) -> str:
        """Describe the first line of the function: `model.py:12`."""
        return f"{short_path(self.file)}:{self.code.co_firstlineno}"

    def describe(self) -> str:
        """Describe the place in an error message: `model.py:41 (loss), y = sin(h)`."""
        text = f", {_quoted(self.text)}" if self.text else ""
        return f"{self} ({self.function}){text}"


def current() -> Source | None:
    """Return the place of the user's innermost frame, or the place set by `at`; None if there is none."""
    place = override.get()
    if place is not None:
        return place
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
    while frame is not None:
        code = frame.f_code
        if id(code) not in _ours:
            key = id(code), frame.f_lasti, _scope.get()
            if key in _known or is_users(code):
                return _source(code, *key[1:])
            bound_entries(_ours, _LIMIT)[id(code)] = code
        frame = frame.f_back
    return None


def _source(code: CodeType, instruction: int, stack: str) -> Source:
    key = id(code), instruction, stack
    return _known.get(key) or bound_entries(_known, _LIMIT).setdefault(key, Source(code, instruction, stack))


def transpose_source(place: Source | None) -> Source | None:
    """Return a place as that of what is transposed now, while its name stack says so."""
    if place is None or not place.stack:
        return place
    return _source(place.code, place.instruction, name_stacks.transpose_stack(place.stack, _scope.get()))


def call_transformed(
    name: str, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """Call `f(*args, **params)` with a transformation on the name stack."""
    return call_in_scope(_scope, name_stacks.within(_scope.get(), name_stacks.transformation(name)), f, *args, **params)


def call_by_rule(
    kind: str, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """Call `f(*args, **params)`, a rule of the user's of a kind such as `custom_vjp`, with that on the name stack."""
    entry, place = name_stacks.rule(kind), override.get()
    if place is None:
        return call_in_scope(_scope, name_stacks.within(_scope.get(), entry), f, *args, **params)
    if type(place) is not Source:  # one that knows more than a place
        return f(*args, **params)
    inner = _source(place.code, place.instruction, name_stacks.within(place.stack, entry))
    return call_in_scope(override, inner, f, *args, **params)


def in_program(f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs) -> Result:
    """Call `f(*args, **params)`, which writes a program, with its beginning on the name stack."""
    return call_in_scope(_scope, name_stacks.program(_scope.get()), f, *args, **params)


def at(
    place: Source | None, f: Callable[Arguments, Result], /, *args: Arguments.args, **params: Arguments.kwargs
) -> Result:
    """Call `f(*args, **params)` with `place` as the source of its equations; a derivative has that of its primal."""
    return call_in_scope(override, place, f, *args, **params)


def describe_here() -> str:
    """Describe the user's line that is running, for error messages; empty if there is none."""
    place = current()
    return place.describe() if place else ""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many frames above it is; once for each line, unless filters say otherwise."""
    place = current()
    if place is None:
        warnings.warn(message, category, stacklevel=3)
    else:
        registry = _warned.setdefault(place.file, {})
        warnings.warn_explicit(message, category, place.file, place.line, registry=registry)


_warned: dict[str, dict[Any, Any]] = {}  # by file, what Python keeps in modules as __warningregistry__


def writes_element() -> bool:
    """Tell whether the user's line that is running writes an element of something: `out[i] = x`."""
    place = current()
    return place is not None and _WRITES_ELEMENT.search(place.text) is not None


_WRITES_ELEMENT = re.compile(r"\] *(?:[-+*/@%&|^]|//|\*\*|<<|>>)?=(?!=)")


def name_line(error: Exception) -> None:
    """Add the user's line to the message of an error that our code raises, unless the message names a line."""
    if isinstance(error, (JAXTypeError, JAXIndexError, LinearityError)) or [*map(type, error.args)] != [str]:
        return  # those of traced values and of linearity name lines
    frames = [(tb.tb_frame.f_code, tb.tb_lasti) for tb in walk_traceback(error.__traceback__)]
    if not _is_ours(frames[-1][0]):
        advise(error)
        return
    users = [Source(*frame) for frame in frames if is_users(frame[0])]
    place = users[-1] if users else current()
    if place is not None and not _NAMED.search(error.args[0]):
        error.args = (f"{error.args[0]}\n  At {place.describe()}",)


def name_rule(error: Exception, rule: Callable[..., object] | None) -> None:
    """Add the place of a user's function to the message of an error about its result, as `name_line` does."""
    code = getattr(rule, "__code__", None)
    if code is not None and [*map(type, error.args)] == [str] and not _NAMED.search(error.args[0]):
        error.args = (f"{error.args[0]}\n  At {Source(code, 0).describe()}",)


_NAMED = re.compile(r"\S:\d+ \(")  # a place, as `describe` writes it


def walk_traceback(traceback: TracebackType | None) -> Generator[TracebackType]:
    """Yield the parts of a traceback, the innermost last."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


@contextmanager
def named_scope(name: str) -> Generator[None]:
    """Name the operations of a with block, or of a decorated function.

    The names are in the text of compiled programs, and so in what profilers show. Scopes nest, "layer/attention", and
    transformations wrap them: the gradient of what `attention` names is in "layer/transpose(jvp(attention))".

    Raises: TypeError if `name` is no string.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> with named_scope("activation"):
    ...     program = tl.make_jaxpr(tnp.tanh)(1.0)
    >>> program.eqns[0].source.scope
    'activation'
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may give anything
        raise TypeError(f"named_scope: the name must be a string, not {name!r}.")
    outside = _scope.get()
    try:
        _scope.set(name_stacks.within(outside, name))
        yield
    finally:
        _scope.set(outside)


def register_exclusion(path: str) -> None:
    """Take the code of a file for a library's: equations and messages then name the line that called it."""
    _excluded.add(os.path.abspath(path))
    _ours.clear()
    _known.clear()


def api_boundary(fun: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return `fun`: frames of libraries are left out of tracebacks when they are printed."""
    return fun


def include_frame(frame: FrameType) -> bool:
    """Tell whether tracebacks show a frame: it is neither ours nor of an excluded file."""
    return not _is_ours(frame.f_code)


def is_users(code: CodeType) -> bool:
    """Tell whether code is a user's: neither ours nor of a library that calls our methods back."""
    file = os.path.abspath(code.co_filename)
    return not (_is_ours(code) or (file.startswith(_CALL_BACK) and not _is_of_another_package(file)))


def _is_of_another_package(file: str) -> bool:
    return f"{os.sep}site-packages{os.sep}" in file and not file.startswith(_CALL_BACK[1])


def _is_ours(code: CodeType) -> bool:
    file = os.path.abspath(code.co_filename)
    between = code.co_filename.startswith("<frozen") or os.path.basename(file) in ("functools.py", "contextlib.py")
    return between or file in _excluded or is_of_package(code)


def is_of_package(code: CodeType) -> bool:
    """Tell whether code is that of a file of Tapeless."""
    return os.path.abspath(code.co_filename).startswith(_FOLDERS)


def line_of(file: str, line: int) -> str:
    """Return a line of a file, without its end; empty if it is not known."""
    return linecache.getline(file, line).rstrip()


def _quoted(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def short_path(file: str) -> str:
    """Shorten a path for messages: relative within the working directory, else the file's name."""
    return _short_path(file, os.getcwd()) if os.path.isabs(file) else file


@functools.lru_cache(maxsize=1024)
def _short_path(file: str, directory: str) -> str:
    relative = os.path.relpath(file, directory)
    return os.path.basename(file) if relative.startswith("..") else relative
