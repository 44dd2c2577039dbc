"""Comparison of two runs of a user's functions: where they take different branches, by the instructions executed.

Search terms: branch coverage, path condition, tracing of instructions. What a function does for one value of a size
holds for another only if it takes the same branches; Python does not say what was compared, but it does say what ran.
"""

import os
import sys
import sysconfig
from collections.abc import Callable, Mapping
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

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if not _is_users(frame):
            return None
        frame.f_trace_opcodes = True
        offsets = executed.setdefault(code, set())

        def on_event(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "opcode":
                offsets.add(frame.f_lasti)
            return on_event

        return on_event

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        return f(), executed
    finally:
        sys.settrace(before)


def branch_between(one: Executed, other: Executed) -> Source | None:
    """Find a place where two runs branch apart, in code that both of them execute; None if there is none."""
    for code in one:
        different = one[code] ^ other.get(code, one[code])
        if different:
            first = min(different)
            return Source(code, max([at for at in one[code] & other[code] if at < first], default=first))
    return None


def _is_users(frame: FrameType) -> bool:
    """Tell whether code is a user's: neither of a library nor made of text, as methods of dataclasses of ours are."""
    code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
    file = code.co_filename
    of_library = file.startswith((*_MADE, *_LIBRARY)) or any(folder in file for folder in _PACKAGES)
    return not (of_library or is_of_package(code) or module.startswith("tapeless."))
