"""Calls of functions with custom rules (custom_jvp, custom_vjp, custom_vmap), and linear maps with given transposes."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from tapeless.tracer import core, linear_vars, staging
from tapeless.tracer.bodies import descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation, Jaxpr, list_inner_jaxprs
from tapeless.tracer.primitives import call
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of


def _custom_type(name: str, *avals: ShapedArray, custom: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[ShapedArray, ...]:
    return call.result_types(name, jaxpr, avals)


class _CustomPrimitive(Primitive):
    """The primitive of calls of functions with rules; libraries that take programs apart call them without the rules.

    They find the function among what `get_bind_params` gives, as `subfuns`, and may give that back to `bind`.
    """

    __slots__ = ()

    def bind(self, /, *args: Any, subfuns: Any = None, **params: Any) -> tuple[Any, ...]:
        """Apply the primitive to values; the function that `subfuns` holds is that of `params`."""
        return self.apply(*args, **params)

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return no functions, and `params` with `subfuns`: what has the function as `call_wrapped(*args)`."""
        return [], {**params, "subfuns": (_WithoutRule(params),)}


class _WithoutRule:
    """The function of an equation that applies one with a rule."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._params = params

    def call_wrapped(self, *args: Any) -> list[Any]:
        """Call it, flat to flat, without using the rule."""
        return list(call_custom(*args, **self._params))


# `custom` has `function(*args)`, the function; `rule(primals, tangents) -> (results, tangents)`, its derivative; and
# `traced(avals)`, the function as a jaxpr with its constants. When staged into another jaxpr, the constants become the
# first `n_consts` operands, and the jaxpr the param; before that both are None. If the function has a backward
# rule, the tangents that `rule` returns are results of `custom_linear`.
custom_jvp_p: Final = _CustomPrimitive("custom_jvp", partial(_custom_type, "custom_jvp"), remember=False)
custom_vjp_p: Final = _CustomPrimitive("custom_vjp", partial(_custom_type, "custom_vjp"), remember=False)
descriptions[custom_jvp_p] = descriptions[custom_vjp_p] = call.call_of(fixed=True)


def call_custom(*args: Any, custom: Any, jaxpr: Jaxpr | None, n_consts: int | None) -> tuple[Any, ...]:
    """Call a function that has a custom rule, without using the rule."""
    return tuple(custom.function(*args)) if jaxpr is None else call.jit(jaxpr, *args)


def custom_linear(pull: Any, residuals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
    """Apply the linear map whose transpose is a backward rule.

    Args:
      pull: `pull.backward(residuals, cts)` is the rule: cotangents of the tangents from cotangents of the results, any
        of which may be symbolic zeros; if `pull.unchecked`, it need not be linear, or has effects.
        `pull.forward(residuals, tangents)` is the map, derived from it; `pull.out_avals` are the types of the results.
        `pull.closed(avals)`, for residuals of these types, returns the values closed over by the rule, and a pull
        that takes them as its first residuals.
    """
    return custom_linear_p.bind(*residuals, *tangents, pull=pull, n=len(residuals))


def _custom_linear_type(*avals: ShapedArray, pull: Any, n: int) -> tuple[ShapedArray, ...]:
    pull.check(avals[:n], avals[n:])
    return pull.out_avals


custom_linear_p: Final = Primitive("custom_linear", _custom_linear_type, remember=False)


def push_forward(*args: Any, pull: Any, n: int) -> tuple[Any, ...]:
    """Compute `custom_linear`: apply the map of `pull`."""
    return tuple(pull.forward(args[:n], args[n:]))


def is_unchecked(eqn: Equation) -> bool:
    """Tell whether an equation applies a user's rule that need not be linear or has effects, as in programs it carries.

    It is not moved, as linear maps are, and its backward rule is called for cotangents that are known to be 0, too.
    """
    if not eqn.primitive.carries_programs:
        return False
    return getattr(eqn.own_params.get("pull"), "unchecked", False) or any(
        map(holds_unchecked_rules, list_inner_jaxprs(eqn))
    )


@core.memoize_by_program
def holds_unchecked_rules(jaxpr: Jaxpr) -> bool:
    """Tell whether an equation of a program `is_unchecked`; cached for as long as the program lives."""
    return any(map(is_unchecked, jaxpr.carrying))


# ---- staging -------------------------------------------------------------------------------------------------


def _stage_custom(primitive: Primitive) -> None:
    def rule(trace: StagingTrace, args: Any, *, custom: Any, jaxpr: Any, n_consts: Any) -> Any:
        if jaxpr is not None:
            return trace.write(primitive, args, {"custom": custom, "jaxpr": jaxpr, "n_consts": n_consts})
        program, consts = custom.traced(tuple([aval_of(x) for x in args]))
        return trace.write(primitive, (*consts, *args), {"custom": custom, "jaxpr": program, "n_consts": len(consts)})

    staging.rules[primitive] = rule


def _stage_custom_linear(trace: StagingTrace, args: Any, *, pull: Any, n: int) -> Any:
    consts, closed = pull.closed(tuple([aval_of(x) for x in args[:n]]))
    return trace.write(custom_linear_p, (*consts, *args), {"pull": closed, "n": len(consts) + n})


_stage_custom(custom_jvp_p)
_stage_custom(custom_vjp_p)
staging.rules[custom_linear_p] = _stage_custom_linear

# ---- custom vmap rules ---------------------------------------------------------------------------------------
# custom_vmap: calls of functions with a custom batching rule.


def custom_vmap(rule: Any, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Call a jaxpr that has a custom rule for `vmap`.

    Args:
      rule: `rule(size, args, mapped) -> (results, mapped)`, where `mapped` tells for args, and for results, whether
        they have the mapped axis, as the first; `rule.__name__` names the function in messages. A rule with `linear`
        true promises that all results are linear if some inputs are, also those that for one example are zero.
      jaxpr: constants, args -> results, for one example.
      consts: values that the function closes over; the rule does not take them.
    """
    return custom_vmap_p.bind(*consts, *args, rule=rule, jaxpr=jaxpr, n_consts=len(consts))


def mapped_closure(name: str, x: Any, dim: int) -> TypeError:
    """Make the error for a function that closes over a mapped array."""
    return TypeError(
        f"custom_vmap: {name} closes over a value that is mapped, {aval_of(x)}, axis {dim}, which its rule is not "
        "given.\n  Pass it as an argument."
    )


def _custom_vmap_type(*avals: ShapedArray, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[ShapedArray, ...]:
    return call.result_types("custom_vmap", jaxpr, avals)


def _mark(linear_in: tuple[bool, ...], *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[dict[str, Any], list[bool]]:
    program = linear_vars.mark_linear_cached(jaxpr, linear_in)
    every = getattr(rule, "linear", False)
    return {"rule": rule, "jaxpr": program, "n_consts": n_consts}, [every or v.linear for v in program.outvars]


custom_vmap_p: Final = Primitive("custom_vmap", _custom_vmap_type, remember=False)
linear_vars.rules[custom_vmap_p] = _mark
descriptions[custom_vmap_p] = call.call_of(fixed=True)
