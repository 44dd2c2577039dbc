"""How functions with rules of their own run: their rules forgotten; a transposed one as the program derived from it."""

from functools import partial
from typing import Any

from tapeless.lowering import dispatch, emit, ordering
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.effects import ORDERED, effects, effects_of
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs
from tapeless.tracer.primitives import custom as c
from tapeless.tracer.staging import trace_to_jaxpr


def _custom_linear(f: Function, outs: Any, *operands: Value, pull: Any, n: int) -> Any:
    """The program that is derived from the user's rule; it is only known here, too late to keep an order."""
    push = partial(c.push_forward, pull=pull, n=n)
    program, _ = trace_to_jaxpr(push, [x.aval for x in operands], what="lowering", function=push)
    if ORDERED in effects_of(program):
        raise _out_of_order(pull, _ordered(program), f.source)
    return emit.lower(f, program, operands)


def _ordered(program: Jaxpr) -> Equation:
    """The first equation that has an ordered effect of its own."""
    eqn = next(eqn for eqn in program.eqns if ORDERED in effects(eqn))
    inner = next((p for p in subjaxprs(eqn.params) if ORDERED in effects_of(p)), None)
    return _ordered(inner) if inner else eqn


def _out_of_order(pull: Any, eqn: Equation, reached: Any) -> NotImplementedError:
    there = f" at {eqn.source.describe()}" if eqn.source else ""
    called = f"\n  It was reached from {reached.describe()}." if reached else ""
    return NotImplementedError(
        f"custom_vjp: forward mode runs the backward rule {pull.name} transposed, where {eqn.primitive}{there} cannot "
        f"keep its order among other ordered effects.{called}\n"
        "  Use ordered=False in the rule, or give a rule for forward mode (tl.custom_jvp)."
    )


for _kind in (c.custom_jvp_p, c.custom_vjp_p):
    emit.rules[_kind] = emit.call
    dispatch.inline[_kind] = c.call_custom
    ordering.rules[_kind] = ordering.call
emit.rules[c.custom_linear_p] = _custom_linear
dispatch.inline[c.custom_linear_p] = c.push_forward
