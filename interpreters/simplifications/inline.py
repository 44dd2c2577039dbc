"""Inlining: a function that a program calls once is written in the place of its call.

What reads a part of its result, or is given an array of which it reads a part, is then in one program with what makes
the array. A function that is called twice stays one, also if one of the calls is inside of another function: so no
equation is ever copied, and the pass is for whole programs that are about to be compiled, before they are simplified.
XLA inlines all calls, so nothing else changes. Left out: functions with effects.
"""

import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.call import jit_p


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """Write functions that are called once in the places of their calls."""
    if not any(eqn.primitive.carries_programs for eqn in jaxpr.eqns):
        return jaxpr
    once = {program for program, calls in _calls(jaxpr).items() if calls == 1}
    return _Inlining(once).rewritten(jaxpr)


def _calls(jaxpr: Jaxpr) -> Counter[Jaxpr]:
    """Count the equations that carry each program, in the whole of a program."""
    found, todo = Counter[Jaxpr](), [jaxpr]
    while todo:
        carried = [inner for eqn in todo.pop().eqns for inner in subjaxprs(eqn.params)]
        todo += [inner for inner in dict.fromkeys(carried) if inner not in found]
        found.update(carried)
    return found


class _Frame(NamedTuple):
    """A function that is being written: its call, the equations to come, and what its variables are now.

    linear: are its linear variables linear in the whole? A transposed function is called with ordinary values.
    """

    call: Equation | None
    rest: Iterator[Equation]
    env: dict[Any, Atom]
    linear: bool

    def now(self, atoms: Sequence[Atom]) -> list[Atom]:
        """Look operands or results up."""
        return [self.env.get(v, v) for v in atoms]


class _Inlining:
    """Programs without calls of those that occur `once`."""

    def __init__(self, once: set[Jaxpr]) -> None:
        self._once = once
        self._done: dict[Jaxpr, Jaxpr] = {}

    def rewritten(self, jaxpr: Jaxpr) -> Jaxpr:
        """A program with functions in the places of their calls, in programs inside too; the same if there are none."""
        if jaxpr not in self._done:
            whole = _Frame(None, iter(jaxpr.eqns), {}, True)
            eqns = list(self._flat(whole))
            same = len(eqns) == len(jaxpr.eqns) and all(new is old for new, old in zip(eqns, jaxpr.eqns))
            self._done[jaxpr] = jaxpr if same else jaxpr.replace(eqns=eqns, outvars=whole.now(jaxpr.outvars))
        return self._done[jaxpr]

    def _flat(self, whole: _Frame) -> Iterator[Equation]:
        """Equations of a program and of those that it calls, one inside of the other to any depth."""
        frames = [whole]
        while frames:
            frame = frames[-1]
            eqn = next(frame.rest, None)
            if eqn is None:
                frames.pop()
                if frame.call is not None:
                    results = frame.now(frame.call.params["jaxpr"].outvars)
                    frames[-1].env.update(zip(frame.call.outvars, results))
            elif (inner := self._entered(frame, eqn)) is not None:
                frames.append(inner)
            else:
                yield self._written(frame, eqn)

    def _entered(self, frame: _Frame, eqn: Equation) -> _Frame | None:
        """The function that is called, to be written in the place of this equation; None if it stays a call."""
        if eqn.primitive is not jit_p or eqn.params["jaxpr"] not in self._once or effects(eqn):
            return None
        body, operands = eqn.params["jaxpr"], frame.now(eqn.invars)
        results = [frame.linear and v.linear for v in eqn.outvars]
        same = body.linear_in == tuple([v.linear for v in operands]) and [v.linear for v in body.outvars] == results
        if not same and any([*results, *[v.linear for v in operands]]):
            return None
        if any(inner is not v.aval for inner, v in zip((*body.in_avals, *body.out_avals), (*operands, *eqn.outvars))):
            return None
        return _Frame(eqn, iter(body.eqns), dict(zip(body.invars, operands)), same)

    def _written(self, frame: _Frame, eqn: Equation) -> Equation:
        """An equation, in a function of variables of its own: programs made of one another share theirs."""
        params = map_subjaxprs(self.rewritten, eqn.params) if eqn.primitive.carries_programs else eqn.params
        outs = eqn.outvars
        if frame.call is not None:
            outs = tuple([Var(v.aval, v.linear and frame.linear) for v in eqn.outvars])
        if outs is not eqn.outvars:
            frame.env.update(zip(eqn.outvars, outs))
        now = frame.now(eqn.invars)
        same = outs is eqn.outvars and params is eqn.params and all(map(operator.is_, now, eqn.invars))
        return eqn if same else eqn.replace(invars=now, params=params, outvars=outs)
