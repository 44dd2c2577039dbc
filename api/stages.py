"""Stages of compiling a function; `Wrapped`, the class of what `jit` makes; `load` reads a saved compiled function."""

import typing as _typing

from tapeless.compile.jit import Jitted as Wrapped
from tapeless.compile.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, load
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped", "load"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
