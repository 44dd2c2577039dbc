"""Stages of compiling a function, and `load`, which reads a saved compiled function."""

from tapeless.compile.stages import Compiled, Lowered, Traced, load

__all__ = ["Compiled", "Lowered", "Traced", "load"]
