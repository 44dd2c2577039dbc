"""Comparison of two runs of a user's functions: where they take different branches, by the instructions executed.

Search terms: branch coverage, path condition, tracing of instructions. What a function does for one value of a size
holds for another only if it takes the same branches; Python does not say what was compared, but it does say what ran:
by `sys.monitoring`, and before Python 3.12 by `sys.settrace`. (From 3.12 on the latter is built upon the former, and
leaves out the instructions of a function that had begun when they were asked for.)
"""

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, TypeVar

from tapeless.tracer.source import Source, is_of_package

Result = TypeVar("Result")
Executed = Mapping[CodeType, set[int]]  # offsets of instructions

_MADE = "<frozen", "<rewrites"  # by the interpreter, and by us
_LIBRARY = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_PACKAGES = f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}"


def with_executed(f: Callable[[], Result]) -> tuple[Result, Executed]:
    """Call a function, and list the instructions of users' code that it executes. Raises: what `f` raises."""
    executed = dict[CodeType, set[int]]()
    with _recorded(executed):
        return f(), executed


def branch_between(one: Executed, other: Executed) -> Source | None:
    """Find a place where two runs branch apart, in code that both runs execute; None if there is none."""
    for code in one:
        different = one[code] ^ other.get(code, one[code])
        if different:
            first = min(different)
            return Source(code, max([at for at in one[code] & other[code] if at < first], default=first))
    return None


def _is_users(frame: FrameType) -> bool:
    """Tell whether code is a user's: neither of a library nor made of text, as methods of dataclasses of ours are.

    It is asked at every call of every function. The answers are kept by the identity of the code, as Python hashes all
    instructions of a code for its hash. A code stays alive as long as its answer.
    """
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    found = _answers.get(id(code))
    if found is None or found[1] != module:
        if len(_answers) >= _MOST_ANSWERS:
            _answers.clear()
        found = _answers[id(code)] = code, module, _is_of_users(code, module)
    return found[2]


_answers = dict[int, tuple[CodeType, Any, bool]]()  # by the identity of the code
_MOST_ANSWERS = 8192


def _is_of_users(code: CodeType, module: Any) -> bool:
    file = code.co_filename
    of_library = file.startswith((*_MADE, *_LIBRARY)) or any(folder in file for folder in _PACKAGES)
    return not (of_library or is_of_package(code) or str(module).startswith("tapeless."))


# ---- what Python tells -------------------------------------------------------------------------------------------

if sys.version_info >= (3, 12):
    _monitoring = sys.monitoring
    _TOOLS = range(6)  # of one interpreter at a time: debuggers, coverage, profilers

    @contextmanager
    def _recorded(executed: dict[CodeType, set[int]]) -> Generator[None]:
        """Record the instructions that this thread executes in a with block; none if other tools take all places."""
        tool = next(filter(_is_taken_by_us, _TOOLS), None)
        if tool is None:
            yield
            return
        thread, events = threading.get_ident(), _monitoring.events

        def on_start(code: CodeType, offset: int) -> None:
            if code in executed or threading.get_ident() != thread:
                return
            if _is_users(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]  # the frame that starts
                executed[code] = set()
                _monitoring.set_local_events(tool, code, events.INSTRUCTION)

        def on_instruction(code: CodeType, offset: int) -> None:
            if threading.get_ident() == thread:
                executed[code].add(offset)

        callbacks = {events.PY_START: on_start, events.PY_RESUME: on_start, events.INSTRUCTION: on_instruction}
        try:
            for event, callback in callbacks.items():
                _monitoring.register_callback(tool, event, callback)
            _monitoring.set_events(tool, events.PY_START | events.PY_RESUME)
            yield
        finally:
            _monitoring.set_events(tool, events.NO_EVENTS)
            for code in executed:
                _monitoring.set_local_events(tool, code, events.NO_EVENTS)
            for event in callbacks:
                _monitoring.register_callback(tool, event, None)
            _monitoring.free_tool_id(tool)

    def _is_taken_by_us(tool: int) -> bool:
        """Take the place of a tool, and tell whether it was free."""
        try:
            _monitoring.use_tool_id(tool, "tapeless")
        except ValueError:
            return False
        return True

else:

    @contextmanager
    def _recorded(executed: dict[CodeType, set[int]]) -> Generator[None]:
        """Record the instructions that this thread executes in a with block."""

        def on_call(frame: FrameType, event: str, arg: Any) -> Any:
            if not _is_users(frame):
                return None
            frame.f_trace_opcodes = True
            offsets = executed.setdefault(frame.f_code, set())

            def on_event(frame: FrameType, event: str, arg: Any) -> Any:
                if event == "opcode":
                    offsets.add(frame.f_lasti)
                return on_event

            return on_event

        before = sys.gettrace()
        sys.settrace(on_call)
        try:
            yield
        finally:
            sys.settrace(before)
