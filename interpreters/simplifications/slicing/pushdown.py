"""Dead code at element granularity: of a value that is read in parts only, only the parts are computed.

Equations are visited backwards, so that all readers of a value are known when the equation that computes it is
reached. A view of its result then becomes views of its operands, if the views together are at most half of the result,
or nothing is computed in the first place. Where a view goes no further it is read, by the equations that read it before
if they are still there. Each equation is visited once, and `MOST` are written for it at most.

Branches of a conditional, and the program of a checkpoint, are given views of an operand in its place, if they read
nothing else of it, and it is computed for them alone: so what computes it is reached.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from tapeless.interpreters.simplifications.slicing.views import View, read
from tapeless.interpreters.simplify import Writer, in_order, reinfer_linearity, uses
from tapeless.tracer import core
from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import cond_p
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
first_operand: Table[int] = Table(
    "parts of operands",
    "position of the operand that is the first input of each of its programs",
    absent="its programs are given whole operands, whatever they read of them",
)
Views = tuple[View, ...]


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
        elif eqn.primitive in first_operand and any(any(_inputs_in_parts(p)) for p in subjaxprs(eqn.params)):
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
        self._made: dict[Var, Equation] = {}  # and how often each value is read: where an equation asks for them
        self._uses: dict[Var, int] = {}
        self._in_parts: set[Atom] = set()  # inputs that can be given in parts
        self._changed = False

    def run(self) -> Jaxpr:
        """The program that computes no elements that nobody reads."""
        self._visit_all()
        for v in self._jaxpr.invars:
            self._read(v, -1)
        return self._written(self._jaxpr) if self._changed else self._jaxpr

    def read_of_inputs(self) -> tuple[Views | None, ...]:
        """Find the parts of its inputs that the program reads; None for an input of which that is not known, or all."""
        self._in_parts.update(self._jaxpr.invars)
        self._visit_all()
        return tuple([self._parts_of_input(v) for v in self._jaxpr.invars])

    def given(self, parts: Sequence[Views | None]) -> Jaxpr | None:
        """The program with these parts of inputs as inputs; None if a linear result would not be linear any more."""
        self._in_parts.update([v for v, wanted in zip(self._jaxpr.invars, parts) if wanted is not None])
        self._visit_all()
        invars: list[Var] = []
        for v, wanted in zip(self._jaxpr.invars, parts, strict=True):
            if wanted is None:
                self._read(v, -1)
                invars.append(v)
            else:
                new = {view: Var(v.aval.update(shape=view.shape), v.linear) for view in wanted}
                self._same.update((r.into, new[r.view]) for r in self._readings.pop(v, ()))
                invars += new.values()
        before = self._jaxpr.replace(invars=invars)
        after = self._written(before)
        return after if after is not before else None

    def _visit_all(self) -> None:
        for eqn in reversed(self._jaxpr.eqns):
            self._w.place = eqn.source
            self._visit(eqn)
        self._w.place = None

    def _written(self, jaxpr: Jaxpr) -> Jaxpr:
        eqns = [self._renamed(eqn) for eqn in sorted(self._kept, key=self._kept.__getitem__)]
        after = in_order(jaxpr, eqns, [self._now(v) for v in jaxpr.outvars])
        return reinfer_linearity(jaxpr, after) if self._w.sparser else after

    def _visit(self, eqn: Equation) -> None:
        if len(eqn.outvars) != 1 or effects(eqn):
            self._keep(eqn)
            return
        (v,) = eqn.outvars
        if v in self._whole or (v in self._readings and not (self._seen_through(eqn) or self._narrowed(eqn))):
            self._read_by(eqn) if eqn.primitive in views else self._keep(eqn)

    def _keep(self, eqn: Equation) -> None:
        """Compute all of a result, or of several."""
        place = self._place[eqn]
        for v in eqn.outvars:
            self._read(v, place)
        now = self._given_parts(eqn) if eqn.primitive in first_operand else eqn
        self._kept[now] = place
        self._whole.update(now.invars)

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

    # parts of operands

    def _parts_of_input(self, v: Var) -> Views | None:
        if v in self._whole:
            return None
        found = tuple(dict.fromkeys([r.view for r in self._readings.get(v, ())]))
        known = all(view.size and all(a.base is None for a in view.axes) for view in found)
        return found if known and _is_worth(v, found) else None

    def _given_parts(self, eqn: Equation) -> Equation:
        """An equation whose programs are given the parts of operands that they read, where these can be computed."""
        first, programs = first_operand[eqn.primitive], dict.fromkeys(subjaxprs(eqn.params))
        of_each = zip(*map(_inputs_in_parts, programs), strict=True)
        parts = tuple([self._wanted(x, found) for x, found in zip(eqn.invars[first:], of_each, strict=True)])
        new = {program: _given(program, parts) for program in programs} if any(parts) else {}
        if not new or None in new.values():
            return eqn
        invars = [
            y
            for x, wanted in zip(eqn.invars[first:], parts)
            for y in ([x] if wanted is None else [self._part(x, view) for view in wanted])
        ]
        self._changed = True
        params = map_subjaxprs(lambda program: new[program] or program, eqn.params)
        return eqn.replace(invars=[*eqn.invars[:first], *invars], params=params)

    def _wanted(self, x: Atom, of_each: Sequence[Views | None]) -> Views | None:
        """All parts of an operand that some program reads; None if it is handed on whole."""
        found = tuple(dict.fromkeys([view for views in of_each for view in views or ()]))
        return found if found and None not in of_each and _is_worth(x, found) and self._is_made_for_one(x) else None

    def _is_made_for_one(self, x: Atom) -> bool:
        """Tell whether a value is computed, in parts if they are wanted, and read once."""
        if not self._uses:
            self._uses = uses(self._jaxpr)
            self._made = {v: eqn for eqn in self._jaxpr.eqns for v in eqn.outvars}
        while x in self._made and self._uses[x] == 1 and self._made[x].primitive in views:
            x = self._made[x].invars[0]
        in_parts = x in self._in_parts or (x in self._made and self._made[x].primitive in rules)
        return in_parts and self._uses[x] == 1  # type: ignore[index]  # a variable

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


def _is_worth(x: Atom, parts: Views) -> bool:
    size = x.aval.size
    return len(parts) <= MOST and sum(view.size for view in parts) <= min(size // 2, size - LEAST)


def _inputs_in_parts(jaxpr: Jaxpr) -> tuple[Views | None, ...]:
    """Find the parts of its inputs that a program reads. Remembered for as long as it lives."""
    cache = _in_parts.setdefault(jaxpr, {})
    if not cache:
        cache[None] = _Narrowing(jaxpr).read_of_inputs()
    return cache[None]


def _given(jaxpr: Jaxpr, parts: tuple[Views | None, ...]) -> Jaxpr | None:
    """A program with these parts of inputs as inputs, if it can be. Remembered for as long as `jaxpr` lives."""
    cache = _with_parts.setdefault(jaxpr, {})
    if parts not in cache:
        cache[parts] = _Narrowing(jaxpr).given(parts)
    return cache[parts]


def _of_literal(eqn: Equation, p: Parts) -> bool:
    """Tell whether these parts read a part of a literal array."""
    return any(not isinstance(x, Var) and isinstance(view, View) for x, view in zip(eqn.invars, p.operands))


first_operand[cond_p], first_operand[checkpoint_p] = 1, 0
_in_parts = core.program_cache()
_with_parts = core.program_cache()
