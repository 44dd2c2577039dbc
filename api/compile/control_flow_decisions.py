"""Decisions about batched control flow, with their reasons: `explain_control_flow`."""

from collections.abc import Callable
from typing import Any

from tapeless.arguments.argument_checks import check_callable
from tapeless.compile.make_jaxpr import make_jaxpr
from tapeless.interpreters import batched_control_flow
from tapeless.interpreters.batched_control_flow import Decision


class Decisions(tuple[Decision, ...]):
    """The decisions, in the order in which they were taken; prints one a line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no control flow differs between the examples of a vmap"

    __repr__ = __str__


def explain_control_flow(fun: Callable[..., Any]) -> Callable[..., Decisions]:
    """Wrap a function to return the strategy of each branch and loop that differs between examples of a vmap, and why.

    Returns: a function of the arguments of `fun`, which is traced and not computed.
    Raises: TypeError if `fun` cannot be called; whatever tracing it raises.

    >>> import tapeless as tl
    >>> f = tl.vmap(lambda x: tl.lax.cond(x > 0, tl.numpy.sin, lambda x: x, x))
    >>> explain_control_flow(f)(tl.numpy.ones(3))[0].strategy
    'select'
    """

    check_callable("explain_control_flow", fun)

    def explained(*args: Any, **kwargs: Any) -> Decisions:
        return Decisions(batched_control_flow.heard(lambda: make_jaxpr(fun)(*args, **kwargs)))

    return explained
