"""Calls of programs: jit, and functions with rules of their own."""

from typing import Any

from tapeless.tracer import staging
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of


def jit(jaxpr: Jaxpr, *args: Any) -> tuple[Any, ...]:
    """Call a program: one function of the compiled module, however often it is called.

    Raises: TypeError if the types of the arguments are not those of the program's inputs.
    """
    return jit_p.bind(*args, jaxpr=jaxpr)


def _jit_type(*avals: ShapedArray, jaxpr: Jaxpr) -> tuple[ShapedArray, ...]:
    if [x.strong() for x in avals] != [x.strong() for x in jaxpr.in_avals]:
        raise TypeError(f"jit: {jaxpr.name} takes {_list(jaxpr.in_avals)}, not {_list(avals)}.")
    return jaxpr.out_avals


def _list(avals: tuple[ShapedArray, ...]) -> str:
    return f"({', '.join(map(str, avals))})"


jit_p = Primitive("jit", _jit_type, remember=False)


def custom_jvp(function: Any, rule: Any, *args: Any) -> tuple[Any, ...]:
    """Call a flat function whose derivative is `rule(primals, tangents) -> (results, tangents)`, also flat.

    When it is written into a program, the function becomes a program and what it closes over, first operands.
    """
    return custom_jvp_p.bind(*args, function=function, rule=rule, jaxpr=None, n_consts=0)


def _custom_jvp_type(*avals: ShapedArray, function: Any, rule: Any, jaxpr: Any, n_consts: int) -> Any:
    return _jit_type(*avals, jaxpr=jaxpr)


custom_jvp_p = Primitive("custom_jvp", _custom_jvp_type, remember=False)


def call_custom(*args: Any, function: Any, jaxpr: Any, **_: Any) -> tuple[Any, ...]:
    """What a function with its own rule computes, its rule forgotten."""
    return jit(jaxpr, *args) if jaxpr is not None else tuple(function(*args))


def _stage_custom_jvp(trace: Any, args: Any, *, function: Any, rule: Any, jaxpr: Any, n_consts: int) -> Any:
    if jaxpr is not None:
        return trace.write(custom_jvp_p, args, dict(function=None, rule=rule, jaxpr=jaxpr, n_consts=n_consts))
    program, consts = trace_to_jaxpr(function, [aval_of(x) for x in args], what="custom_jvp", function=function)
    params = dict(function=None, rule=rule, jaxpr=program, n_consts=len(consts))
    return trace.write(custom_jvp_p, (*consts, *args), params)


staging.rules[custom_jvp_p] = _stage_custom_jvp
