"""Calls of programs: jit, and functions with rules of their own."""

from typing import Any

from tapeless.tracer import staging
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.staging import StagingTrace
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


def custom_jvp(custom: Any, *args: Any) -> tuple[Any, ...]:
    """Call a flat function with a derivative of its own.

    Args:
      custom: `custom.function(*args)` computes, `custom.rule(primals, tangents) -> (results, tangents)` is the
        derivative, `custom.traced(avals)` the function as a program with its constants, which become the first
        operands when it is written into another.
    """
    return custom_jvp_p.bind(*args, custom=custom, jaxpr=None, n_consts=None)


def _custom_jvp_type(*avals: ShapedArray, custom: Any, jaxpr: Jaxpr, n_consts: int) -> tuple[ShapedArray, ...]:
    return _jit_type(*avals, jaxpr=jaxpr)


custom_jvp_p = Primitive("custom_jvp", _custom_jvp_type, remember=False)


def call_custom(*args: Any, custom: Any, jaxpr: Jaxpr | None, n_consts: int | None) -> tuple[Any, ...]:
    """What a function with its own rule computes, its rule forgotten."""
    return tuple(custom.function(*args)) if jaxpr is None else jit(jaxpr, *args)


def _stage_custom_jvp(trace: StagingTrace, args: Any, *, custom: Any, jaxpr: Any, n_consts: Any) -> Any:
    if jaxpr is not None:
        return trace.write(custom_jvp_p, args, {"custom": custom, "jaxpr": jaxpr, "n_consts": n_consts})
    program, consts = custom.traced(tuple([aval_of(x) for x in args]))
    return trace.write(custom_jvp_p, (*consts, *args), {"custom": custom, "jaxpr": program, "n_consts": len(consts)})


staging.rules[custom_jvp_p] = _stage_custom_jvp
