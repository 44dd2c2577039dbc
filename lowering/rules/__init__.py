"""How primitives run, by family: importing this package fills the table of `tapeless.lowering.emit`."""

from tapeless.lowering.rules import (
    bits,
    call,
    contraction,
    elementwise,
    indexing,
    random,
    reduction,
    shape,
    sorting,
    special,
    windows,
)

__all__ = [
    "bits",
    "call",
    "contraction",
    "elementwise",
    "indexing",
    "random",
    "reduction",
    "shape",
    "sorting",
    "special",
    "windows",
]
