"""`custom_gradient`: a value and its backward rule in one function."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tapeless.arguments.argument_checks import check_callable
from tapeless.custom.vjp import custom_vjp
from tapeless.tracer import core, pytree
from tapeless.tracer.jaxpr import eval_jaxpr
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of

P = ParamSpec("P")
R = TypeVar("R")


def custom_gradient(fun: Callable[P, tuple[R, Any]], *, check_linear: bool = True) -> custom_vjp[P, R]:
    """Give a function the backward rule that it returns beside its value, as `tf.custom_gradient` does.

    Args:
      fun: `fun(*args) -> (value, rule)`, where `rule(cotangent)`, of the structure of the value, gives a tuple of
        cotangents, one for each argument; of one argument it may be bare. The rule may use what `fun` computed.
      check_linear: as of `custom_vjp.defvjp`.
    Returns: the function of the same arguments that gives the value. Forward mode is the rule transposed.
    Raises: TypeError if `fun` is not callable, or when called, if it gives no pair with a function; what `custom_vjp`
      raises.

    >>> from tapeless import grad
    >>> @custom_gradient
    ... def square(x):
    ...     return x**2, lambda g: (g * x,)
    >>> square(3.0), grad(square)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))
    """
    check_callable("custom_gradient", fun)
    pair_of: Callable[..., Any] = fun

    def fwd(*args: Any) -> tuple[Any, pytree.Partial]:
        value, rule = _pair(fun, pair_of(*args))
        return value, _staged(rule, value)

    def bwd(residuals: pytree.Partial, ct: Any) -> tuple[Any, ...]:
        cts = residuals(ct)
        return tuple(cts) if isinstance(cts, (tuple, list)) else (cts,)

    defined: Any = custom_vjp(fun)
    defined.fun = lambda *args: _pair(fun, pair_of(*args))[0]
    defined.defvjp(fwd, bwd, check_linear=check_linear)
    return defined


def _pair(fun: Any, result: Any) -> tuple[Any, Callable[..., Any]]:
    if isinstance(result, (tuple, list)) and len(result) == 2 and callable(result[1]):
        return result[0], result[1]
    raise TypeError(
        f"custom_gradient: {core.describe_function(fun)} must return (value, rule), a value and a function, but "
        f"returned {result!r}."
    )


def _staged(rule: Callable[..., Any], value: Any) -> pytree.Partial:
    """Return the rule as a pytree: a program of the cotangent, and the values that it closes over."""
    leaves, tree = pytree.flatten(value)
    out_tree: Any = None

    def flat(*cts: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = pytree.flatten(rule(pytree.unflatten(tree, cts)))
        return outs

    program, consts = trace_to_jaxpr(
        flat, [aval_of(y).tangent() for y in leaves], what="custom_gradient", function=rule
    )
    return pytree.Partial(partial(_applied, program, out_tree), list(consts))


def _applied(program: Any, out_tree: Any, consts: list[Any], ct: Any) -> Any:
    return pytree.unflatten(out_tree, eval_jaxpr(program, [*consts, *pytree.leaves(ct)]))
