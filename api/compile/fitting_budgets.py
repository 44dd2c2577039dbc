"""Memory budgets that would fit a program which ran out of memory, by the search that `tl.frontier` does."""

from collections.abc import Sequence
from typing import Final

from tapeless.interpreters.residuals.budget import Budget, BudgetPlans, SurveyPolicy
from tapeless.lowering.memory_errors import Exhausted

USED: Final = 0.9  # of the free bytes: temporaries are not predicted to the byte, and allotted in whole pages


def describe_fitting(survey: SurveyPolicy, own: Budget | None, memory: Exhausted, name: str) -> str:
    """Say which budget of `jit` would fit, and the bytes that its gradients are predicted to need.

    Args:
      survey: has seen the gradients of the function that `name` is.
      own: the budget that it had.
      memory: what the compiled program needs, and what there is of it. If nobody knows that, half of what it needs.
    Returns: "" for a function without gradients, or one whose budget cannot be smaller.
    """
    plans = survey.plans
    if not plans:
        return ""
    needed = _peak(plans, own.limit) if own else max([each.flow.peak for each in plans])
    others = memory.results + max(0, memory.temporaries - needed)
    free = (memory.temporaries + memory.results) // 2 if memory.free is None else memory.free
    budget = _largest_below(int(USED * free) - others)
    limit = Budget.of(budget, "jit").limit
    peak = _peak(plans, limit)
    if peak >= needed:
        return ""
    budget = budget if peak <= limit else 0
    all_of_it = memory.temporaries + memory.results
    there = "." if memory.free is None else f", and {memory.free:,} are free."
    least = "" if budget else " That is the least that a budget can reach."
    return (
        f"tl.jit({name}, memory_budget={budget!r}) is predicted to need {peak + others:,} bytes beyond arguments;\n"
        f"this one needs {all_of_it:,}{there}{least}"
    )


def _peak(plans: Sequence[BudgetPlans], limit: int | float) -> int:
    """Predict the most bytes that are live at once in a gradient, of several that run one after the other."""
    return max([each.plan(each.bytes_of(limit)).peak for each in plans])


def _largest_below(limit: int) -> str | int:
    """Write a budget of at most so many bytes, in few digits: '97 MiB', or 0 for the fewest bytes."""
    for unit, name in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")):
        n = max(0, limit) >> unit
        if n >= 10:
            return f"{n} {name}"
    return 0
