"""Stages of compiling a function; `Wrapped`, the class of what `jit` makes; `load` reads a saved compiled function."""

from tapeless.compile.jit import Jitted as Wrapped
from tapeless.compile.stages import Compiled, Lowered, Traced, load

__all__ = ["Compiled", "Lowered", "Traced", "Wrapped", "load"]
