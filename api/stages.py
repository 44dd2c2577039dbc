"""Stages of compiling a function; `Wrapped`, the class of what `jit` makes; `load` reads a saved compiled function."""

from tapeless.compile.jit import Jitted as Wrapped
from tapeless.compile.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, load
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped", "load"]

_complete_namespace(globals())
