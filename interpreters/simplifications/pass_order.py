"""The order of the passes. Importing this module fills the tables of rewrites.

It is imported when the first program is simplified.
"""

from collections.abc import Callable
from typing import Final

from tapeless.interpreters.simplifications import (
    dead_operands,
    if_conversion,
    licm,
    rewrites,
    select_of_update,
)
from tapeless.interpreters.simplifications.fusion import fuse
from tapeless.interpreters.simplifications.masks import sink
from tapeless.interpreters.simplifications.slicing import pushdown
from tapeless.tracer.jaxpr import Jaxpr

_RULES = rewrites, if_conversion

Pass = Callable[[Jaxpr], Jaxpr]


def _passes(sink_masks: Pass) -> tuple[Pass, ...]:
    return (
        licm.hoist_invariants,
        dead_operands.remove_dead_operands,
        select_of_update.select_before_update,
        sink_masks,
        pushdown.narrow_program,
        fuse.fuse_contractions,
    )


# The pass that runs before the bodies of equations are simplified, which it makes smaller.
first: Final[Pass] = dead_operands.remove_dead_operands
# Passes over a whole program, in order: pass(jaxpr) -> a program, the same object if there is nothing to do.
programs: Final = _passes(sink.sink_masks)
# The same passes over the body of an equation, where linear inputs may be infinite.
bodies: Final = _passes(sink.sink_masks_in_body)
