"""Simplification rules of primitives, by family, and the passes. Importing this package fills the tables."""

from tapeless.interpreters import rows, simplify
from tapeless.interpreters.simplifications import (
    control_flow,
    dead_operands,
    licm,
    mask_before_product,
    rewrites,
    select_of_update,
)
from tapeless.interpreters.simplifications.fusion import fuse
from tapeless.interpreters.simplifications.masks import analysis as mask_analysis
from tapeless.interpreters.simplifications.masks import control_flow as masks_in_control_flow
from tapeless.interpreters.simplifications.slicing import pushdown

_RULES = rewrites, control_flow, rows
_RULES_OF_PASSES = (masks_in_control_flow,)

for _steps, _sink in (
    (simplify.programs, mask_analysis.sink_masks),
    (simplify.bodies, mask_analysis.sink_masks_in_body),
):
    _steps += [licm.hoisted, dead_operands.remove_dead_operands, select_of_update.select_before_update, _sink]
    _steps += [pushdown.narrowed, fuse.fuse_contractions, mask_before_product.mask_factors]
