"""How primitives run, by family: importing this package fills the table of `tapeless.lowering.emit`."""

from tapeless.lowering.rules import call, contraction, elementwise, random, reduction, shape

__all__ = ["call", "contraction", "elementwise", "random", "reduction", "shape"]
