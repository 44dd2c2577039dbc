"""Inlining: a function that a program calls once is written in the place of its call.

What reads a part of its result, or is given an array of which it reads a part, is then in one program with what makes
the array; and residuals are those of one program, not lists that every call passes on from the calls inside of it. A
function that is called twice stays one, also if one of the calls is inside of another function: so no equation is
copied. This is for whole programs: those that are about to be compiled, or unzipped. Of programs that a function in
Python calls in turn, as it is linearized, only those before are known (`InliningInTurn`): of what they have in common
there are at most two copies. XLA inlines all calls, so what is compiled does not change; linear jaxprs show fewer calls
(docs/decisions/0013). Left out: functions with effects, and those whose inputs are not of the types of the operands.
"""

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tapeless.tracer import core
from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_carried, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.call import jit_p


def inlined(jaxpr: Jaxpr) -> Jaxpr:
    """Write functions that are called once in the places of their calls. Remembered for as long as `jaxpr` lives."""
    if not jaxpr.carrying:
        return jaxpr
    return InliningInTurn().params({"jaxpr": jaxpr})["jaxpr"]


def fully_inlined(jaxpr: Jaxpr) -> Jaxpr:
    """Write functions in the places of all of their calls, in programs inside, too."""
    return _Inlining(frozenset(_calls((jaxpr,))), {}).rewritten(jaxpr) if jaxpr.carrying else jaxpr


def is_inlined(jaxpr: Jaxpr) -> bool:
    """Tell whether no call could be replaced by the function that it calls."""
    inlining, whole = _Inlining(frozenset(jaxpr.programs), {}), _Frame(None, iter(()), {}, True)
    return all(inlining.entered(whole, eqn) is None for eqn in jaxpr.carrying)


class InliningInTurn:
    """Write functions that are called once in the places of their calls, in programs that are met one by one."""

    __slots__ = ("_done", "_met")

    def __init__(self) -> None:
        self._met: set[Jaxpr] = set()
        self._done: dict[Jaxpr, Jaxpr] = {}

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Rewrite the programs that an equation carries; the same objects if these programs were met before."""
        new = tuple([program for program in subjaxprs(params) if program not in self._done])
        if new:
            calls = _calls(new)
            met = frozenset(calls.keys() & self._met) if self._met else _NONE
            done = frozenset([(p, self._done[p]) for p in met if p in self._done]) if met else _NONE
            self._done |= _rewritten(new, met, done)
            self._met |= calls.keys()
        return map_subjaxprs(self._done.__getitem__, params)


def _calls(jaxprs: tuple[Jaxpr, ...]) -> Mapping[Jaxpr, int]:
    """Count the equations that carry each program, of which one carries these. Remembered while the first lives."""
    cache = _counts.setdefault(jaxprs[0], {})
    if jaxprs not in cache:
        found, todo = Counter(jaxprs), list(dict.fromkeys(jaxprs))
        while todo:
            inside = todo.pop().programs
            todo += [inner for inner in dict.fromkeys(inside) if inner not in found]
            found.update(inside)
        cache[jaxprs] = found
    return cache[jaxprs]


def _rewritten(
    jaxprs: tuple[Jaxpr, ...], met: frozenset[Jaxpr], done: frozenset[tuple[Jaxpr, Jaxpr]]
) -> dict[Jaxpr, Jaxpr]:
    """Rewrite programs, and those inside that stay; of those that were `met` some are `done`. Remembered, too."""
    cache = _remembered.setdefault(jaxprs[0], {})
    key = (jaxprs, met, done)
    if key not in cache:
        once = frozenset([p for p, n in _calls(jaxprs).items() if n == 1 and p not in met])
        writing = _Inlining(once, dict(done))
        for jaxpr in jaxprs:
            writing.rewritten(jaxpr)
        cache[key] = writing.done
    return cache[key]


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
    """Programs without calls of those that occur `once`; `done` are those that were rewritten."""

    def __init__(self, once: frozenset[Jaxpr], done: dict[Jaxpr, Jaxpr]) -> None:
        self._once = once
        self.done = done

    def rewritten(self, jaxpr: Jaxpr) -> Jaxpr:
        """A program with functions in the places of their calls, in programs inside too; the same if there are none."""
        if jaxpr not in self.done:
            whole = _Frame(None, iter(jaxpr.eqns), {}, True)
            eqns = list(self._flat(whole))
            same = len(eqns) == len(jaxpr.eqns) and all(new is old for new, old in zip(eqns, jaxpr.eqns))
            self.done[jaxpr] = jaxpr if same else jaxpr.replace(eqns=eqns, outvars=whole.now(jaxpr.outvars))
        return self.done[jaxpr]

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
            elif (inner := self.entered(frame, eqn)) is not None:
                frames.append(inner)
            else:
                yield self._written(frame, eqn)

    def entered(self, frame: _Frame, eqn: Equation) -> _Frame | None:
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
        params = map_carried(self.rewritten, eqn)
        outs = eqn.outvars
        if frame.call is not None:
            outs = tuple([Var(v.aval, v.linear and frame.linear) for v in eqn.outvars])
        if outs is not eqn.outvars:
            frame.env.update(zip(eqn.outvars, outs))
        now = frame.now(eqn.invars)
        same = outs is eqn.outvars and params is eqn.params and all(map(operator.is_, now, eqn.invars))
        return eqn if same else eqn.replace(invars=now, params=params, outvars=outs)


_NONE = frozenset[Any]()
_counts = core.program_cache()
_remembered = core.program_cache()
