"""What `simplify` knows of primitives, by family, and its passes: importing this package fills the tables."""

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications import (
    contraction,
    contractions,
    control_flow,
    elementwise,
    masks,
    parts,
    parts_of,
    plans,
    reduction,
    shape,
)

__all__ = [
    "contraction",
    "contractions",
    "control_flow",
    "elementwise",
    "masks",
    "parts",
    "parts_of",
    "plans",
    "reduction",
    "shape",
]

simplify.programs += [masks.sunk, parts.narrowed, contractions.factored]
