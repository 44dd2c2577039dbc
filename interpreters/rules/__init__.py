"""How primitives transform, by family: importing this package fills the tables of `tapeless.interpreters`."""

from tapeless.interpreters.rules import call, contraction, elementwise, random, reduction, shape

__all__ = ["call", "contraction", "elementwise", "random", "reduction", "shape"]
