"""The two passes of reverse mode as functions that are compiled once each."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.arguments.argument_checks import check_callable
from tapeless.compile.jit import jit
from tapeless.differentiate.argnums import canonical_argnums, with_arguments
from tapeless.differentiate.autodiff import vjp_of


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Split reverse mode of a function into a forward and a backward pass, which are called separately.

    Args:
      fun: maps pytrees of arrays to a pytree of arrays, or to (that, aux) if `has_aux`.
      argnums: which positional arguments to differentiate; several give a tuple of cotangents.
      jitted: compile both passes, each once for arguments of the same types; else they are plain functions.
    Returns: `fwd(*args, **kwargs) -> (value, residuals)`, with aux as third if `has_aux`; and
      `bwd(residuals, cotangent) -> cotangents`, of the chosen arguments. The residuals are a pytree of arrays.
    Raises: TypeError if `fun` is no function; when called, ValueError if there is no argument at `argnums`, and what
      `vjp` and its result raise.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=0)
    >>> value, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    Array(3., dtype=float32, weak_type=True)
    """
    check_callable("fwd_and_bwd", fun)

    def fwd(*args: Any, **kwargs: Any) -> Any:
        chosen = canonical_argnums("fwd_and_bwd", argnums, args, fun)

        def of_chosen(*new: Any) -> Any:
            return with_arguments(fun, args, kwargs, chosen, *new)

        return vjp_of("fwd_and_bwd", of_chosen, [args[i] for i in chosen], has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        pulled = residuals(cotangent)
        return pulled if isinstance(argnums, Sequence) else pulled[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
