"""Passes over a program: dead code, forwarded inputs, constants as literals, rearranged inputs and results."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects
from tapeless.tracer.types import ShapedArray, holds_keys


def used_variables(jaxpr: Jaxpr) -> set[Atom]:
    """Collect the variables that some equation reads or that are results, and literals."""
    used = set(jaxpr.outvars)
    for eqn in jaxpr.eqns:
        used.update(eqn.invars)
    return used


def dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Eliminate dead code: equations that no result needs and that have no effect."""
    kept, _ = live(jaxpr.eqns, jaxpr.outvars)
    return jaxpr if len(kept) == len(jaxpr.eqns) else jaxpr.replace(eqns=kept)


def live(eqns: Sequence[Equation], outvars: Sequence[Atom]) -> tuple[list[Equation], set[Atom]]:
    """Find the equations with a use or an effect, and the atoms read by these or by the results."""
    needed = set(outvars)
    kept: list[Equation] = []
    is_unread, read, keep = needed.isdisjoint, needed.update, kept.append
    for eqn in reversed(eqns):
        if not is_unread(eqn.outvars) or effects(eqn):
            keep(eqn)
            read(eqn.invars)
    return kept[::-1], needed


def order_equations(eqns: Sequence[Equation]) -> list[Equation]:
    """Order equations so that each comes after those whose results it reads, and else as they are."""
    maker = {v: eqn for eqn in eqns for v in eqn.outvars}
    done: dict[Equation, None] = {}
    for eqn in eqns:
        todo = [eqn]
        while todo:
            before = [maker[v] for v in todo[-1].invars if v in maker and maker[v] not in done]
            if before:
                todo += before
            else:
                done[todo.pop()] = None
    return list(done)


def forwarded_inputs(jaxpr: Jaxpr) -> tuple[int | None, ...]:
    """Map each result to the number of the input that it is, or None if it is computed."""
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    return tuple(position.get(v) if type(v) is Var else None for v in jaxpr.outvars)


def with_literals(jaxpr: Jaxpr, consts: Sequence[Any]) -> Jaxpr:
    """Replace the first inputs by literals of their values, `consts`."""
    if not consts:
        return jaxpr
    known = {v: Literal(x if holds_keys(v.aval) else np.asarray(x), v.aval) for v, x in zip(jaxpr.invars, consts)}

    def read(v: Any) -> Any:
        return known.get(v, v) if type(v) is Var else v

    eqns = [eqn.replace(invars=[read(v) for v in eqn.invars]) for eqn in jaxpr.eqns]
    return jaxpr.replace(invars=jaxpr.invars[len(consts) :], eqns=eqns, outvars=[read(v) for v in jaxpr.outvars])


def rearrange_program(jaxpr: Jaxpr, ins: Sequence[int | ShapedArray], outs: Sequence[int]) -> Jaxpr:
    """Select the inputs and results of a program by number; a type in `ins` makes a new input, which is not used.

    Dead code is eliminated. Cached for as long as `jaxpr` lives: the same object every time.
    """
    cache = _rearranged.setdefault(jaxpr, {})
    key = (tuple(ins), tuple(outs))
    if key not in cache:
        invars = [jaxpr.invars[i] if isinstance(i, int) else Var(i) for i in ins]
        cache[key] = dead_code(jaxpr.replace(invars=invars, outvars=[jaxpr.outvars[i] for i in outs]))
    return cache[key]


_rearranged = core.program_cache()
