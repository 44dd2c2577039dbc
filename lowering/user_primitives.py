"""Lowering of primitives that libraries define: calls of programs, traced from their rules, Python functions.

This is the first step of lowering, so that these programs are simplified, and in-place loops see their reads and
writes.
"""

import operator
from typing import Any

from tapeless.tracer import core, linear_vars, passes
from tapeless.tracer.jaxpr import Equation, Jaxpr, map_subjaxprs
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of
from tapeless.tracer.user_primitives import UserPrimitive, check_types


@core.remembered
def expanded(jaxpr: Jaxpr) -> Jaxpr:
    """Replace users' primitives in a program by calls of programs; return the same object if it has none.

    Remembered for as long as `jaxpr` lives.
    Raises: NotImplementedError if a primitive has no lowering rule; TypeError if the rule gives other types than the
      primitive has; UnexpectedTracerError if it closes over a traced value.
    """
    if not jaxpr.carrying:
        return jaxpr
    eqns = [_expanded_equation(eqn) for eqn in jaxpr.eqns]
    return jaxpr if all(map(operator.is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=eqns)


def is_uncompilable(jaxpr: Jaxpr) -> bool:
    """Does a program, or a checkpoint in it, apply a primitive that has an `impl` rule and no lowering rule?"""
    return any(map(_is_uncompilable_equation, jaxpr.carrying))


def _is_uncompilable_equation(eqn: Equation) -> bool:
    if isinstance(eqn.primitive, UserPrimitive):
        return "impl" in eqn.primitive.rules and "lowering" not in eqn.primitive.rules
    return eqn.primitive is checkpoint_p and is_uncompilable(eqn.params["jaxpr"])


def _expanded_equation(eqn: Equation) -> Equation:
    primitive = eqn.primitive
    if not primitive.carries_programs:
        return eqn
    if isinstance(primitive, UserPrimitive):
        return eqn.replace(primitive=jit_p, params={"jaxpr": _program(primitive, eqn)})
    params = map_subjaxprs(expanded, eqn.params)
    return eqn if params is eqn.params else eqn.replace(params=params)


def _program(primitive: UserPrimitive, eqn: Equation) -> Jaxpr:
    """Trace a primitive's lowering rule at the types of an equation; inputs are linear where the operands are."""
    function = primitive.rule("lowering")
    wanted = [v.aval for v in eqn.outvars]

    def flat(*args: Any) -> list[Any]:
        outs = function(wanted, *args, **eqn.params)
        check_types(primitive, "lowering", "as results of types", [aval_of(y) for y in outs], wanted)
        return [_as_weak(y, aval) for y, aval in zip(outs, wanted)]

    program, consts = trace_to_jaxpr(flat, [v.aval for v in eqn.invars], what="lowering", function=primitive)
    for x in consts:
        if isinstance(x, core.Tracer):
            raise core.leak_error(x)
    closed = expanded(passes.with_literals(program, consts)).replace(name=primitive.name)
    return linear_vars.marked(closed, tuple([v.linear for v in eqn.invars]))


def _as_weak(x: Any, aval: ShapedArray) -> Any:
    """Give x the weak type of `aval`."""
    weak = aval_of(x).weak_type
    return x if weak == aval.weak_type else convert_element_type(x, aval.dtype, aval.weak_type)
