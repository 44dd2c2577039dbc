"""Lowering of custom_jvp and custom_vjp, calls of the function; of custom_linear, the program derived from its rule."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tapeless.lowering import dispatch, emit, physical
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.jaxpr import ORDERED, Atom, Equation, Jaxpr, effects, effects_of, subjaxprs
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import custom as c
from tapeless.tracer.primitives.custom import custom_vmap_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray


def _custom_linear(f: Function, outs: Any, *operands: Value, pull: Any, n: int) -> Any:
    """Emit the program that is derived from the user's rule. It is traced only here: too late for ordered effects."""
    program = _derived([x.aval for x in operands], pull, n, f.source)
    return emit.lower(f, physical.program(program), operands)


def _custom_linear_words(w: physical.WordWriter, *words: Atom, pull: Any, n: int) -> Any:
    """Write a custom_linear call on words as the program that is derived from its rule, traced on keys."""
    program = _derived([v.aval for v in w.eqn.invars], pull, n, w.eqn.source)
    return w.write(call.jit_p, *words, jaxpr=physical.program(program))


def _derived(avals: Sequence[ShapedArray], pull: Any, n: int, source: Any) -> Jaxpr:
    push = partial(c.push_forward, pull=pull, n=n)
    program = trace_closed(push, avals, what="lowering", function=push)
    if ORDERED in effects_of(program):
        raise _out_of_order(pull, _ordered(program), source)
    return emit.expand_primitives(program)


def _ordered(program: Jaxpr) -> Equation:
    """Find the first equation, in bodies too, that has an ordered effect of its own."""
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
emit.rules[c.custom_linear_p] = _custom_linear
physical.rules[c.custom_linear_p] = _custom_linear_words
dispatch.inline[c.custom_linear_p] = c.push_forward

# ---- custom vmap rules ---------------------------------------------------------------------------------------
# A call of the function, as its vmap rule plays no part.


def _call_custom_vmap(*args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return call.jit(jaxpr, *args)


emit.rules[custom_vmap_p] = emit.call
dispatch.inline[custom_vmap_p] = _call_custom_vmap
