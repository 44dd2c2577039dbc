"""The stages of compiling a function, and `load`, which reads a compiled one that was saved."""

from tapeless.compilation_stages import Compiled, Lowered, Traced, load

__all__ = ["Compiled", "Lowered", "Traced", "load"]
