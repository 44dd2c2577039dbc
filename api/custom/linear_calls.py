"""Calls of linear functions whose transposes are given: `custom_derivatives.linear_call`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tapeless.arguments.argument_checks import check_arrays, check_callable, structure
from tapeless.control_flow.body_tracing import TracedBody, trace
from tapeless.interpreters import vmap
from tapeless.interpreters.rules.custom import Pull
from tapeless.interpreters.zero import instantiate
from tapeless.tracer import core, pytree
from tapeless.tracer.jaxpr import Jaxpr, Var
from tapeless.tracer.primitives.custom import custom_linear
from tapeless.tracer.types import ShapedArray, aval_of


def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a function that is linear in its second argument, with a function for its transpose.

    The transpose of the call is a call of `fun_transpose`, whose transpose is one of `fun`: that both are linear, and
    each the transpose of the other, is promised. Derivatives with respect to the residuals are those of `fun`.

    Args:
      fun: `fun(residual_args, linear_args)` gives a pytree of arrays.
      fun_transpose: `fun_transpose(residual_args, cts)` of a pytree like that gives one like `linear_args`.
      residual_args, linear_args: pytrees of arrays.
    Returns: `fun(residual_args, linear_args)`.
    Raises: TypeError for arguments that are no arrays, or if `fun_transpose` gives another structure or other types
      than those of `linear_args`; both are named.

    >>> import tapeless as tl
    >>> halved = lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)
    >>> tl.grad(halved)(3.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    check_callable("linear_call", fun, "fun")
    check_callable("linear_call", fun_transpose, "fun_transpose")
    check_arrays("linear_call: residual_args{}", residual_args)
    check_arrays("linear_call: linear_args{}", linear_args)
    residuals, of_residuals = pytree.flatten(residual_args)
    xs, tree = pytree.flatten(linear_args)
    n = len(residuals)

    def traced(function: Any, avals: Sequence[ShapedArray], of_linear: Any) -> TracedBody:
        def flat(*given: Any) -> Any:
            return function(pytree.unflatten(of_residuals, given[:n]), pytree.unflatten(of_linear, given[n:]))

        return trace("linear_call", function, flat, [*map(aval_of, residuals), *avals])

    in_avals = [aval_of(x) for x in xs]
    there = traced(fun, in_avals, tree)
    out_tree = pytree.structure(there.result)
    back = traced(fun_transpose, there.jaxpr.out_avals, out_tree)
    _check_like(fun_transpose, back, tree, in_avals)
    back = back.giving(in_avals)
    consts = (*there.consts, *back.consts)
    pull = _Coupled(
        _taking_constants(there.jaxpr, 0, len(there.consts), consts),
        len(consts) + n,
        there.jaxpr.name,
        transposed=False,
        back=_taking_constants(back.jaxpr, len(there.consts), len(back.consts), consts),
    )
    return pytree.unflatten(out_tree, custom_linear(pull, [*consts, *residuals], xs))


def _check_like(function: Any, body: TracedBody, tree: Any, avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError if the result of the transpose has not the structure and types of the linear arguments."""
    found, have = pytree.structure(body.result), body.jaxpr.out_avals
    fits = found == tree and all(
        h.shape == a.shape and (h.dtype == a.dtype or h.weak_type or a.weak_type)
        for h, a in zip(have, avals, strict=True)
    )
    if not fits:
        raise TypeError(
            f"linear_call: {core.describe_function(function)} gives {structure(found, have)}, but linear_args are "
            f"{structure(tree, avals)}."
        )


def _taking_constants(jaxpr: Jaxpr, first: int, n: int, consts: Sequence[Any]) -> Jaxpr:
    """Make the program take more constants than its own n, which are at number `first`."""
    unused = [Var(aval_of(x)) for x in consts]
    unused[first : first + n] = jaxpr.invars[:n]
    return jaxpr.replace(invars=[*unused, *jaxpr.invars[n:]])


@dataclass(frozen=True)
class _Coupled(Pull):
    """A linear map by a program, `residuals, xs -> ys`, whose transpose is by `back`: `residuals, ys -> xs`."""

    back: Any = None

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        there = replace(self, jaxpr=self.back, back=self.jaxpr)
        return custom_linear(there, residuals, list(map(instantiate, cts)))

    def batched(self, size: int, dims: Sequence[int | None]) -> "_Coupled":
        def batch(program: Jaxpr) -> Jaxpr:
            return vmap.batch_jaxpr(program, size, (*dims, *[0] * (len(program.invars) - self.n)))

        return replace(self, jaxpr=batch(self.jaxpr), back=batch(self.back), name=f"vmap_{self.name}")
