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
    """A function that is being written: its call, the equations to come, and what its variables are now."""

    call: Equation | None
    rest: Iterator[Equation]
    env: dict[Any, Atom]

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
            whole = _Frame(None, iter(jaxpr.eqns), {})
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
            elif self._is_inlined(eqn):
                body = eqn.params["jaxpr"]
                frames.append(_Frame(eqn, iter(body.eqns), dict(zip(body.invars, frame.now(eqn.invars)))))
            else:
                yield self._written(frame, eqn)

    def _is_inlined(self, eqn: Equation) -> bool:
        if eqn.primitive is not jit_p or eqn.params["jaxpr"] not in self._once or effects(eqn):
            return False
        body = eqn.params["jaxpr"]
        pairs = [*zip(body.invars, eqn.invars), *zip(body.outvars, eqn.outvars)]
        return all(inner.linear == outer.linear and inner.aval is outer.aval for inner, outer in pairs)

    def _written(self, frame: _Frame, eqn: Equation) -> Equation:
        """An equation, in a function of variables of its own: programs made of one another share theirs."""
        params = map_subjaxprs(self.rewritten, eqn.params) if eqn.primitive.carries_programs else eqn.params
        outs = eqn.outvars if frame.call is None else tuple([Var(v.aval, v.linear) for v in eqn.outvars])
        if outs is not eqn.outvars:
            frame.env.update(zip(eqn.outvars, outs))
        now = frame.now(eqn.invars)
        same = outs is eqn.outvars and params is eqn.params and all(map(operator.is_, now, eqn.invars))
        return eqn if same else eqn.replace(invars=now, params=params, outvars=outs)
