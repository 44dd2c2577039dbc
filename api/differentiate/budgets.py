"""Functions that are differentiated within a memory budget: checkpoints whose other arguments are static."""

import functools
from collections.abc import Callable
from typing import Any

from tapeless.arguments.names import shown_attributes
from tapeless.interpreters.residuals.budget import Budget
from tapeless.remat.checkpoint import checkpoint
from tapeless.tracer import pytree
from tapeless.tracer.types import is_arraylike


def within_budget(fun: Callable[..., Any], limit: int | float | str, who: str) -> Callable[..., Any]:
    """Make `fun` a checkpoint with the policy of a limit, arguments that are no arrays static.

    Raises: TypeError and ValueError, which begin with `who`, if the limit is no number of bytes.
    """
    policy = Budget.of(limit, who)

    @functools.cache
    def checkpointed(positions: tuple[int, ...], names: tuple[str, ...]) -> Callable[..., Any]:
        return checkpoint(fun, policy=policy, static_argnums=positions, static_argnames=names)

    @functools.wraps(fun, shown_attributes(fun))
    def bounded(*args: Any, **kwargs: Any) -> Any:
        positions = tuple([i for i, x in enumerate(args) if not _are_arrays(x)])
        names = tuple([name for name, x in kwargs.items() if not _are_arrays(x)])
        return checkpointed(positions, names)(*args, **kwargs)

    return bounded


def _are_arrays(x: Any) -> bool:
    return all(map(is_arraylike, pytree.leaves(x)))
