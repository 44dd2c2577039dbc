"""Dead code at element granularity: of a value that is read in parts only, only the parts are computed.

Equations are visited backwards, so that all readers of a value are known when the equation that computes it is
reached. A view of its result then becomes views of its operands, if the views together are at most half of the result,
or nothing is computed in the first place. Where a view goes no further it is read, by the equations that read it before
if they are still there. Each equation is visited once, and `MOST` are written for it at most.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from tapeless.interpreters.simplifications.slicing.views import View, read
from tapeless.interpreters.simplify import Writer, in_order, reinfer_linearity
from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.rules import Rules, Table

MOST = 4  # parts of one value
LEAST = 8  # elements that must be saved


class Reads(Enum):
    """Operand that is read whole, or not at all, for a part of a result."""

    ALL = "all"
    NOTHING = "nothing"


class Parts(NamedTuple):
    """A part of a result: the parts of the operands that it takes, and how it is made of them."""

    operands: Sequence[View | Reads]
    write: Callable[..., Atom]  # write(writer, *parts)


class _Reading(NamedTuple):
    """A view of a value that is wanted as the variable `into`, and the equations that computed that before."""

    view: View
    into: Var
    before: tuple[Equation, ...]


rules = Rules(
    "slice pushdown",
    "rule(eqn, view of its result) -> Parts, or None if it cannot be computed in parts",
    absent="its result is computed whole, whatever is read of it",
)
views = Rules(
    "views",
    "rule(eqn, view of its result) -> the view of its first operand, or None: for what does nothing but read",
    absent="it is no view of an operand",
)
free: Table[None] = Table("free", "it computes nothing", absent="reading a part of its result may save work")


def narrowed(jaxpr: Jaxpr) -> Jaxpr:
    """The pass: a program that computes no elements that nobody reads."""
    return _Narrowing(jaxpr).run() if _promising(jaxpr) else jaxpr


def _promising(jaxpr: Jaxpr) -> bool:
    """Tell whether a part is read of a computed value: the quick test before the pass."""
    inputs = set(jaxpr.invars)
    for eqn in jaxpr.eqns:
        if eqn.primitive in views:
            x = eqn.invars[0]
            if x.aval.size > eqn.outvars[0].aval.size and x not in inputs:
                return True
    return False


class _Narrowing:
    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = jaxpr
        self._w = Writer(jaxpr)
        self._place = {eqn: i for i, eqn in enumerate(jaxpr.eqns)}
        self._whole: set[Atom] = set(jaxpr.outvars)
        self._readings: dict[Var, list[_Reading]] = {}
        self._kept: dict[Equation, int] = {}
        self._same: dict[Atom, Atom] = {}
        self._changed = False

    def run(self) -> Jaxpr:
        for eqn in reversed(self._jaxpr.eqns):
            self._w.place = eqn.source
            self._visit(eqn)
        self._w.place = None
        for v in self._jaxpr.invars:
            self._read(v, -1)
        if not self._changed:
            return self._jaxpr
        eqns = [self._renamed(eqn) for eqn in sorted(self._kept, key=self._kept.__getitem__)]
        after = in_order(self._jaxpr, eqns, [self._now(v) for v in self._jaxpr.outvars])
        return reinfer_linearity(self._jaxpr, after) if self._w.sparser else after

    def _visit(self, eqn: Equation) -> None:
        if len(eqn.outvars) != 1 or effects(eqn):
            self._keep(eqn)
            return
        (v,) = eqn.outvars
        if v in self._whole or (v in self._readings and not (self._seen_through(eqn) or self._narrowed(eqn))):
            self._read_by(eqn) if eqn.primitive in views else self._keep(eqn)

    def _keep(self, eqn: Equation) -> None:
        """Compute all of a result, or of several."""
        for v in eqn.outvars:
            self._read(v, self._place[eqn])
        self._kept[eqn] = self._place[eqn]
        self._whole.update(eqn.invars)

    def _read_by(self, eqn: Equation) -> None:
        """An equation that does nothing but read a view, of which all is wanted."""
        (v,) = eqn.outvars
        view = views[eqn.primitive](eqn, None)
        if view is None or type(eqn.invars[0]) is not Var:
            self._keep(eqn)
            return
        self._read(v, self._place[eqn])
        self._want(eqn.invars[0], _Reading(view, v, (eqn,)))
        self._whole.update(eqn.invars[1:])

    def _seen_through(self, eqn: Equation) -> bool:
        """Read what is read of a view from what it is a view of."""
        if eqn.primitive not in views or type(eqn.invars[0]) is not Var:
            return False
        readings = self._readings[eqn.outvars[0]]
        found = [views[eqn.primitive](eqn, r.view) for r in readings]
        if any(view is None for view in found):
            return False
        for view, r in zip(found, self._readings.pop(eqn.outvars[0])):
            self._want(eqn.invars[0], _Reading(view, r.into, (eqn, *r.before) if r.before else ()))
        self._whole.update(eqn.invars[1:])
        return True

    def _narrowed(self, eqn: Equation) -> bool:
        """Compute the parts that are read from parts of the operands."""
        readings, rule = self._readings[eqn.outvars[0]], rules.get(eqn.primitive)
        total, size = sum(r.view.size for r in readings), eqn.outvars[0].aval.size
        limit = size - LEAST if eqn.primitive in free else min(size // 2, size - LEAST)
        if rule is None or len(readings) > MOST or total > limit or not all(r.view.size for r in readings):
            return False
        parts = [rule(eqn, r.view) for r in readings]
        if any(p is None or _of_literal(eqn, p) for p in parts):
            return False
        for r, p in zip(self._readings.pop(eqn.outvars[0]), parts):
            operands = [self._part(x, view) for x, view in zip(eqn.invars, p.operands, strict=True)]
            self._write(self._place[eqn], lambda p=p, operands=operands: p.write(self._w, *operands), r.into)
        self._changed = True
        return True

    def _part(self, x: Atom, view: View | Reads) -> Atom:
        if isinstance(view, Reads) or not isinstance(x, Var):
            self._whole.update([x] if view is Reads.ALL else [])
            return x
        found = next((r.into for r in self._readings.get(x, ()) if r.view == view and not r.before), None)
        if found is None:
            found = Var(x.aval.update(shape=view.shape), x.linear)
            self._want(x, _Reading(view, found, ()))
        return found

    def _want(self, x: Var, reading: _Reading) -> None:
        self._readings.setdefault(x, []).append(reading)

    def _read(self, v: Var, place: int) -> None:
        """Read the views of a value that is computed whole."""
        for r in self._readings.pop(v, ()):
            for eqn in r.before:
                self._kept[eqn] = self._place[eqn]
            if not r.before:
                self._write(place, lambda r=r: read(self._w, v, r.view), r.into)

    def _write(self, place: int, write: Callable[[], Atom], into: Var) -> None:
        n = len(self._w.eqns)
        self._same[into] = made = write()
        self._w.sparser |= into.linear and not made.linear
        self._kept.update(dict.fromkeys(self._w.eqns[n:], place))

    def _now(self, v: Atom) -> Atom:
        chain = []
        while v in self._same:
            chain.append(v)
            v = self._same[v]
        self._same.update(dict.fromkeys(chain, v))  # the next to ask has one step to go
        return v

    def _renamed(self, eqn: Equation) -> Equation:
        return eqn.replace(invars=[self._now(v) for v in eqn.invars])


def _of_literal(eqn: Equation, p: Parts) -> bool:
    """Tell whether these parts read a part of a literal array."""
    return any(not isinstance(x, Var) and isinstance(view, View) for x, view in zip(eqn.invars, p.operands))
