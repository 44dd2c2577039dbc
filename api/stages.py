"""The stages of compiling a function, and `load`, which reads a compiled one that was saved."""

from tapeless.compile.stages import Compiled, Lowered, Traced, load

__all__ = ["Compiled", "Lowered", "Traced", "load"]
