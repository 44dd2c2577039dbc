"""Chunk sizes of Jacobians: how many columns or rows are computed at a time, given or chosen by a memory budget.

The residuals R of the linearization are live throughout; the tangents, or cotangents, of one column take C bytes more.
So k at a time need R + k C bytes.
"""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Jaxpr, Var, subjaxprs
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.types import ShapedArray

if TYPE_CHECKING:
    from tapeless.differentiate import gradients
    from tapeless.interpreters.residuals import budget
    from tapeless.interpreters.residuals.segments import Flow
    from tapeless.interpreters.simplifications import repeatable_equations
else:
    gradients = LateModule("tapeless.differentiate.gradients")
    budget = LateModule("tapeless.interpreters.residuals.budget")
    repeatable_equations = LateModule("tapeless.interpreters.simplifications.repeatable_equations")


def check_chunk_size(who: str, chunk_size: Any) -> int | None:
    """Return a chunk size as an integer. Raises: ValueError unless it is a positive integer or None."""
    if chunk_size is None:
        return None
    if isinstance(chunk_size, bool) or not hasattr(chunk_size, "__index__") or operator.index(chunk_size) < 1:
        raise ValueError(f"{who}: chunk_size must be a positive integer or None, not {chunk_size!r}.")
    return operator.index(chunk_size)


class ChunkChoice:
    """The choice of a chunk size: given, by a budget, or all at once.

    Raises: ValueError, TypeError if one of these is none, or both are given.
    """

    def __init__(self, who: str, chunk_size: Any, memory_budget: Any) -> None:
        self._who = who
        self._given = check_chunk_size(who, chunk_size)
        self._budget = None if memory_budget is None else budget.Budget.of(memory_budget, f"{who}, memory_budget")
        if self._given is not None and self._budget is not None:
            raise ValueError(
                f"{who}: chunk_size and memory_budget are both given, but a budget chooses the chunk size.\n"
                "  Leave one of them out."
            )

    @property
    def at_once(self) -> bool:
        """Tell whether nothing limits how many are computed at a time."""
        return self._given is None and self._budget is None

    def of(self, fun: Callable[..., Any], args: tuple[Any, ...], basis: Sequence[ShapedArray]) -> int | None:
        """Choose how many elements of a basis go through the derivative of `fun` at a time; None for all.

        Raises: ValueError naming the fewest bytes if one at a time needs more than the budget.
        """
        if self._budget is None:
            return self._given
        total = sum([t.size for t in basis])
        return self._largest(gradients.TracedGradient(self._who, fun, args, {}).plans.flow, total) if total else None

    def _largest(self, flow: "Flow", total: int) -> int | None:
        assert self._budget is not None
        fixed, one = sum(flow.residual_bytes()), tangent_bytes(flow.halves.linear)
        limit = self._budget.limit
        limit = int(limit * (fixed + total * one)) if isinstance(limit, float) else limit
        if fixed + total * one <= limit:
            return None
        if 0 < limit < fixed + one:
            raise ValueError(self._too_small(limit, fixed, one, flow))
        return max((limit - fixed) // one, 1) if one else None

    def _too_small(self, limit: int, fixed: int, one: int, flow: "Flow") -> str:
        kept = f", of which {fixed} are residuals, the largest {flow.describe_largest()}" if fixed else ""
        return (
            f"{self._who}, memory_budget: {limit} bytes are too few: the derivative needs at least {fixed + one} with "
            f"chunk_size=1{kept}.\n"
            "  Allow more; memory_budget=0 uses as few bytes as it can."
        )


@core.memoize_by_program
def tangent_bytes(linear: Jaxpr) -> int:
    """Count the bytes of tangents that are live at once, at most, in a linear program, those of its ends included.

    Operands of sums and products of elements die as the results are made, those of other equations after that.
    """
    last = {v: k for k, eqn in enumerate(linear.eqns) for v in eqn.invars}
    last.update(dict.fromkeys(linear.outvars, len(linear.eqns)))
    live = sum([v.aval.nbytes for v in linear.invars if v.linear])
    peak = live
    for k, eqn in enumerate(linear.eqns):
        made = sum([v.aval.nbytes for v in eqn.outvars if v.linear])
        dying = sum([v.aval.nbytes for v in set(eqn.invars) if isinstance(v, Var) and v.linear and last[v] == k])
        inside = max(map(tangent_bytes, subjaxprs(eqn.params)), default=0)
        peak = max(peak, live + made - (dying if repeatable_equations.is_fused(eqn) else 0), live - dying + inside)
        live += made - dying
    return peak
