"""Functions that are differentiated within a memory budget: checkpoints of the arguments that are differentiated."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tapeless.arguments.names import argument_name, shown_attributes
from tapeless.arguments.untraced import hide, reveal
from tapeless.interpreters.residuals.budget import Budget, SurveyPolicy
from tapeless.remat.checkpoint import checkpoint
from tapeless.tracer.types import is_arraylike


def read_limit(limit: int | float | str | Budget | SurveyPolicy, who: str) -> Budget | SurveyPolicy:
    """Return the policy of an argument `memory_budget` of `who`.

    Raises: TypeError and ValueError, which begin with `who`, if it is no limit.
    """
    return limit if isinstance(limit, Budget | SurveyPolicy) else Budget.of(limit, f"{who}, memory_budget")


def within_budget(
    rest: Callable[..., Any],
    fun: Callable[..., Any],
    chosen: Sequence[int],
    policy: Budget | SurveyPolicy,
    has_aux: bool,
) -> Callable[..., Any]:
    """Make a function a checkpoint with the policy of a limit. It is traced at each call, as without a limit.

    Args:
      rest: `fun` of its arguments at the positions `chosen` alone; it closes over the others, which are what they are.
      has_aux: `fun` returns (value, aux), where aux may hold what is no array.
    """

    @functools.wraps(fun, shown_attributes(fun))
    def run(*args: Any) -> Any:
        result = rest(*args)
        if not has_aux or not isinstance(result, tuple) or len(result) != 2:
            return result  # or an error, which `grad` tells of
        return result[0], hide(result[1], lambda x: not is_arraylike(x))

    names: dict[str, None] = dict.fromkeys([argument_name(fun, i) for i in chosen])
    if all(map(str.isidentifier, names)):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        run.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    bounded = checkpoint(run, policy=policy)
    return lambda *args: reveal(bounded(*args))
