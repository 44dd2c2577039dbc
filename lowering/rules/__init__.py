"""How primitives run, by family: importing this package fills the table of `tapeless.lowering.emit`."""

from tapeless.lowering.rules import call, contraction, elementwise, reduction, shape

__all__ = ["call", "contraction", "elementwise", "reduction", "shape"]
