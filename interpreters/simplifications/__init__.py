"""What `simplify` knows of primitives, by family, and its passes: importing this package fills the tables."""

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications import (
    brackets,
    contraction,
    contractions,
    contractions_of,
    control_flow,
    elementwise,
    indexing,
    invariants,
    masks,
    masks_inside,
    masks_of,
    parts,
    parts_of,
    plans,
    reduction,
    shape,
    unread,
    writes,
)

__all__ = [
    "brackets",
    "contraction",
    "contractions",
    "contractions_of",
    "control_flow",
    "elementwise",
    "indexing",
    "invariants",
    "masks",
    "masks_inside",
    "masks_of",
    "parts",
    "parts_of",
    "plans",
    "reduction",
    "shape",
    "unread",
    "writes",
]

for _steps, _sunk in ((simplify.programs, masks.sunk), (simplify.bodies, masks.sunk_in_body)):
    _steps += [invariants.hoisted, unread.dropped, writes.chosen_first, _sunk]
    _steps += [parts.narrowed, contractions.factored, brackets.first]
