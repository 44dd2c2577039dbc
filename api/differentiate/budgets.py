"""Functions that are differentiated within a memory budget: checkpoints of the arguments that are differentiated."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.arguments.names import shown_attributes
from tapeless.arguments.untraced import Untraced, hide, reveal
from tapeless.interpreters.residuals.budget import Budget, SurveyPolicy
from tapeless.interpreters.residuals.rematerialization import ProgramPolicy
from tapeless.remat.checkpoint import checkpoint


def read_limit(limit: int | float | str | Budget | SurveyPolicy, who: str) -> Budget | SurveyPolicy:
    """Return the policy of an argument `memory_budget` of `who`.

    Raises: TypeError and ValueError, which begin with `who`, if it is no limit.
    """
    return limit if isinstance(limit, Budget | SurveyPolicy) else Budget.of(limit, f"{who}, memory_budget")


def read_setting(limit: int | float | str | Budget | SurveyPolicy) -> Budget | SurveyPolicy:
    """Return the policy of the setting `memory_budget`, of all gradients: a part is kept to as nearly as each can.

    Raises: as `read_limit`.
    """
    found = read_limit(limit, "config")
    if isinstance(limit, Budget | SurveyPolicy) or not isinstance(found, Budget) or not isinstance(found.limit, float):
        return found
    return dataclasses.replace(found, lenient=True)


def within_budget(
    rest: Callable[..., Any],
    fun: Callable[..., Any],
    n: int,
    chosen: Sequence[int],
    policy: ProgramPolicy,
    has_aux: bool,
) -> Callable[..., Any]:
    """Make a function a checkpoint with the policy of a limit. It is traced at each call, as without a limit.

    Args:
      rest: `fun` of its arguments at the positions `chosen` alone; it closes over the others, which are what they are.
      n: the number of positional arguments; the checkpoint has them all, so that messages count as users do.
      has_aux: `fun` returns (value, aux), where aux may hold what is no array.
    """

    @functools.wraps(fun, shown_attributes(fun))
    def run(*args: Any) -> Any:
        result = rest(*[args[i] for i in chosen])
        if not has_aux or not isinstance(result, tuple) or len(result) != 2:
            return result  # or an error, which `grad` tells of
        return result[0], hide(result[1])

    bounded = checkpoint(run, policy=policy)

    def of_chosen(*args: Any) -> Any:
        given = dict(zip(chosen, args, strict=True))
        return reveal(bounded(*[given.get(i, _KNOWN) for i in range(n)]))

    return of_chosen


_KNOWN: Final = Untraced(None)
