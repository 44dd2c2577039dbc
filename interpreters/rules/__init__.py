"""How primitives transform, by family: importing this package fills the tables of `tapeless.interpreters`."""

from tapeless.interpreters.rules import (
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
