"""What `simplify` knows of primitives, by family, and its passes: importing this package fills the tables."""

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications import (
    contraction,
    contractions,
    control_flow,
    elementwise,
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
    "contraction",
    "contractions",
    "control_flow",
    "elementwise",
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

simplify.programs += [unread.dropped, writes.chosen_first, masks.sunk, parts.narrowed, contractions.factored]
simplify.bodies += [unread.dropped, writes.chosen_first, masks.sunk_in_body, parts.narrowed, contractions.factored]
