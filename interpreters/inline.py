"""Inlining: the call of a function that is called once is replaced by the equations of the function.

The equations that compute an array and read a part of it are then in one program. So are all residuals; no call passes
on lists of residuals from the calls inside of it. A function that is called
twice is not inlined, also if one of the calls is inside of another function: so no equation is copied.
Calls are counted in whole programs, which are about to be compiled or unzipped. While a Python function is linearized,
its programs arrive one by one (`InliningInTurn`), and those to come are not known: a function that two of them call may
be there twice, inlined in one and called by the others. XLA inlines all calls, so compiled code does not change; linear
jaxprs show fewer calls (docs/decisions/0013). Left out: functions with effects, and calls whose operands or results
differ in type or linearity from the inputs or results of the function.
"""

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects, map_carried, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.source import Source


def inline_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Inline functions that are called once, in bodies, too. Remembered for as long as `jaxpr` lives."""
    if not jaxpr.carrying:
        return jaxpr
    return InliningInTurn().params({"jaxpr": jaxpr})["jaxpr"]


def fully_inlined(jaxpr: Jaxpr) -> Jaxpr:
    """Inline all calls, in bodies, too, however often a function is called."""
    return _Inlining(frozenset(_calls((jaxpr,))), {}).rewritten(jaxpr) if jaxpr.carrying else jaxpr


def is_inlined(jaxpr: Jaxpr) -> bool:
    """Tell whether `fully_inlined` would inline no call of a program; calls in its bodies are not counted."""
    inlining, whole = _Inlining(frozenset(jaxpr.programs), {}), _Frame(None, iter(()), {}, True)
    return all(inlining.entered(whole, eqn) is None for eqn in jaxpr.carrying)


class InliningInTurn:
    """Inlining of functions called once, in programs that arrive one by one."""

    __slots__ = ("_done", "_met")

    def __init__(self) -> None:
        self._met: set[Jaxpr] = set()
        self._done: dict[Jaxpr, Jaxpr] = {}

    def params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Inline in the programs that params hold; the same objects for programs that arrived before."""
        new = tuple([program for program in subjaxprs(params) if program not in self._done])
        if new:
            calls = _calls(new)
            met = frozenset(calls.keys() & self._met) if self._met else _NONE
            done = frozenset([(p, self._done[p]) for p in met if p in self._done]) if met else _NONE
            self._done |= _rewritten(new, met, done)
            self._met |= calls.keys()
        return map_subjaxprs(self._done.__getitem__, params)


def _calls(jaxprs: tuple[Jaxpr, ...]) -> Mapping[Jaxpr, int]:
    """Count the equations that carry each program, if one carries `jaxprs`. Remembered while the first lives."""
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
    """Inline in `jaxprs` and in the bodies that remain; return the new program of each. Remembered as counts are.

    Programs that were `met` before are not inlined; `done` pairs some of them with their rewritten programs.
    """
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
    """A function that is being inlined: its call, the equations still to write, and the new atom of each old variable.

    call: None for the outermost program. source: that of the call, in the calls around it. linear: are its linear
    variables linear at the call? A transposed function is called with values that are not.
    """

    call: Equation | None
    rest: Iterator[Equation]
    env: dict[Any, Atom]
    linear: bool
    source: Source | None = None

    def now(self, atoms: Sequence[Atom]) -> list[Atom]:
        """Translate old atoms to new ones."""
        return [self.env.get(v, v) for v in atoms]

    def source_of(self, eqn: Equation) -> Source | None:
        """Return the source line of an equation, in the named scopes of the call, too."""
        return eqn.source.within(self.source) if eqn.source else self.source


class _Inlining:
    """The rewriting of programs that inlines calls of the functions in `once`; `done` has the new program of each."""

    def __init__(self, once: frozenset[Jaxpr], done: dict[Jaxpr, Jaxpr]) -> None:
        self._once = once
        self.done = done

    def rewritten(self, jaxpr: Jaxpr) -> Jaxpr:
        """Inline calls in a program and in its bodies; the same object if there are none."""
        if jaxpr not in self.done:
            whole = _Frame(None, iter(jaxpr.eqns), {}, True)
            eqns = list(self._flat(whole))
            same = len(eqns) == len(jaxpr.eqns) and all(new is old for new, old in zip(eqns, jaxpr.eqns))
            self.done[jaxpr] = jaxpr if same else jaxpr.replace(eqns=eqns, outvars=whole.now(jaxpr.outvars))
        return self.done[jaxpr]

    def _flat(self, whole: _Frame) -> Iterator[Equation]:
        """Yield the equations of a program, those of inlined functions in the place of their calls, at any depth."""
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
        """Return the frame of the function that an equation calls if it is inlined; None if the equation stays."""
        if eqn.primitive is not jit_p or eqn.params["jaxpr"] not in self._once or effects(eqn):
            return None
        body, operands = eqn.params["jaxpr"], frame.now(eqn.invars)
        results = [frame.linear and v.linear for v in eqn.outvars]
        same = body.linear_in == tuple([v.linear for v in operands]) and [v.linear for v in body.outvars] == results
        if not same and any([*results, *[v.linear for v in operands]]):
            return None
        if any(inner is not v.aval for inner, v in zip((*body.in_avals, *body.out_avals), (*operands, *eqn.outvars))):
            return None
        return _Frame(eqn, iter(body.eqns), dict(zip(body.invars, operands)), same, frame.source_of(eqn))

    def _written(self, frame: _Frame, eqn: Equation) -> Equation:
        """Rename an equation and rewrite its bodies; inlined results get new variables, as programs can share them."""
        params = map_carried(self.rewritten, eqn)
        outs, source = eqn.outvars, frame.source_of(eqn)
        if frame.call is not None:
            outs = tuple([Var(v.aval, v.linear and frame.linear) for v in eqn.outvars])
        if outs is not eqn.outvars:
            frame.env.update(zip(eqn.outvars, outs))
        now = frame.now(eqn.invars)
        same = outs is eqn.outvars and params is eqn.params and all(map(operator.is_, now, eqn.invars))
        return eqn if same else eqn.replace(invars=now, params=params, outvars=outs, source=source)


_NONE = frozenset[Any]()
_counts = core.program_cache()
_remembered = core.program_cache()
