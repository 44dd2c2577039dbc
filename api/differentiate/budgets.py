"""Functions that are differentiated within a memory budget: checkpoints whose other arguments are static."""

import functools
from collections.abc import Callable
from typing import Any, Final

from tapeless.arguments.names import shown_attributes
from tapeless.interpreters.residuals.budget import Budget
from tapeless.remat.checkpoint import checkpoint
from tapeless.tracer import pytree
from tapeless.tracer.types import is_arraylike


def read_limit(limit: int | float | str | Budget, who: str) -> Budget:
    """Return the policy of an argument `memory_budget` of `who`.

    Raises: TypeError and ValueError, which begin with `who`, if it is no limit.
    """
    return limit if isinstance(limit, Budget) else Budget.of(limit, f"{who}, memory_budget")


def within_budget(fun: Callable[..., Any], policy: Budget, has_aux: bool) -> Callable[..., Any]:
    """Make `fun` a checkpoint with the policy of a limit, arguments that are no arrays static.

    has_aux: `fun` returns (value, aux), where aux may hold what is no array.
    """
    traced = _with_static_aux(fun) if has_aux else fun

    @functools.cache
    def checkpointed(positions: tuple[int, ...], names: tuple[str, ...]) -> Callable[..., Any]:
        return checkpoint(traced, policy=policy, static_argnums=positions, static_argnames=names)

    @functools.wraps(fun, shown_attributes(fun))
    def bounded(*args: Any, **kwargs: Any) -> Any:
        positions = tuple([i for i, x in enumerate(args) if not _are_arrays(x)])
        names = tuple([name for name, x in kwargs.items() if not _are_arrays(x)])
        result = checkpointed(positions, names)(*args, **kwargs)
        return pytree.tree_map(_value_of, result, is_leaf=_is_static) if has_aux else result

    return bounded


@pytree.register_static
class _Static:
    """A value that is no array, in the result of a traced function."""

    def __init__(self, value: Any) -> None:
        self.value: Final = value


def _with_static_aux(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun, shown_attributes(fun))
    def run(*args: Any, **kwargs: Any) -> Any:
        result = fun(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            return result  # an error, which `grad` tells of
        return result[0], pytree.tree_map(lambda x: x if is_arraylike(x) else _Static(x), result[1])

    return run


def _is_static(x: Any) -> bool:
    return isinstance(x, _Static)


def _value_of(x: Any) -> Any:
    return x.value if _is_static(x) else x


def _are_arrays(x: Any) -> bool:
    return all(map(is_arraylike, pytree.leaves(x)))
