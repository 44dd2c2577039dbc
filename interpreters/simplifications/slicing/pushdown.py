"""Dead code at element granularity: of a value that is read in parts only, only the parts are computed.

Equations are visited backwards, so that all readers of a value are known when the equation that computes it is
reached. A view of its result then becomes views of its operands, if the views together are at most half of the result,
or nothing is computed in the first place. Where a view goes no further it is read. Each equation is visited once, and
`MOST` are written for it at most.

Branches of a conditional, and the program of a checkpoint, are given views of an operand in its place, if they read
nothing else of it, and it is computed for them alone: so what computes it is reached.
"""

from collections.abc import Callable, Sequence

from tapeless.interpreters.simplifications.slicing.parts import FREE, VIEWS, ResultPart, part_of
from tapeless.interpreters.simplifications.slicing.views import Starts, View, is_readable, read, spread, whole
from tapeless.interpreters.simplify import Writer, in_order, reinfer_linearity, typed, uses
from tapeless.tracer import core
from tapeless.tracer.effects import effects
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_subjaxprs, subjaxprs
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import cond_p
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.primitives.shape import slice_p

MOST = 4  # parts of one value
LEAST = 8  # elements that must be saved


_CUTS = frozenset((slice_p, dynamic_slice_p))
_IN_PARTS = frozenset((cond_p, checkpoint_p))  # their programs can be given parts of operands, the last ones
Views = tuple[View, ...]


def narrowed(jaxpr: Jaxpr) -> Jaxpr:
    """The pass: a program that computes no elements that nobody reads."""
    return _Narrowing(jaxpr).run() if _promising(jaxpr) else jaxpr


def _promising(jaxpr: Jaxpr) -> bool:
    """Tell whether a part is read of a computed value: the quick test before the pass."""
    if jaxpr.primitives.isdisjoint(_CUTS | _IN_PARTS):
        return False
    inputs = set(jaxpr.invars)
    cut = [eqn.invars[0] for eqn in jaxpr.eqns if eqn.primitive in _CUTS and eqn.invars[0] not in inputs]
    if cut and not _read_whole(jaxpr).issuperset(cut):
        return True
    programs = [p for eqn in jaxpr.eqns if eqn.primitive in _IN_PARTS for p in subjaxprs(eqn.params)]
    return any(any(_inputs_in_parts(p)) for p in programs)


def _read_whole(jaxpr: Jaxpr) -> set[Atom]:
    """Find values that are computed whole: for a reader is, or what reads them in parts reads as much together."""
    found, read = set[Atom](jaxpr.outvars), dict[Atom, int]()
    for eqn in reversed(jaxpr.eqns):
        out, x = [next(iter(vs), None) for vs in (eqn.outvars, eqn.invars)]
        if eqn.primitive in VIEWS and out is not None and x is not None:
            read[x] = read.get(x, 0) + (out.aval.size if out in found else read.get(out, 0))
            found.update(eqn.invars[1:])
            if read[x] > x.aval.size - LEAST:
                found.add(x)
        elif eqn.primitive not in _IN_PARTS and (out in found or len(eqn.outvars) != 1):
            found.update(eqn.invars)
    return found


class _Narrowing:
    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = jaxpr
        self._w = Writer(jaxpr)
        self._place = {eqn: i for i, eqn in enumerate(jaxpr.eqns)}
        self._whole = _read_whole(jaxpr)
        self._readings: dict[Var, dict[Var, View]] = {}  # views that are wanted as variables
        self._kept: dict[Equation, int] = {}
        self._same: dict[Atom, Atom] = {}
        self._made: dict[Atom, Equation] = {}  # and how often each value is read: where an equation asks for them
        self._uses: dict[Var, int] = {}
        self._in_parts: set[Atom] = set()  # inputs that can be given in parts
        self._starts = Starts()
        self._changed = False

    def run(self) -> Jaxpr:
        """The program that computes no elements that nobody reads."""
        self._whole.update(self._jaxpr.invars)
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
                for into, view in self._readings.pop(v, {}).items():
                    part, order = view.in_order()
                    self._write(-1, lambda x=new[part], own=order, n=view.shape: spread(self._w, x, own, n), into)
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
        v, place = eqn.outvars[0], self._place[eqn]
        if v in self._whole and eqn.primitive in _CUTS and eqn.invars[0] not in self._whole:
            self._read(v, place)
            self._readings[v] = {v: whole(v.aval.shape)}
        elif v in self._whole:
            self._keep(eqn)
            return
        if v in self._readings and not self._pushed(eqn):
            self._keep(eqn)

    def _keep(self, eqn: Equation) -> None:
        """Compute all of a result, or of several."""
        place = self._place[eqn]
        for v in eqn.outvars:
            self._read(v, place)
        now = self._given_parts(eqn) if eqn.primitive in _IN_PARTS else eqn
        self._kept[now] = place
        self._whole.update(now.invars)

    def _pushed(self, eqn: Equation) -> bool:
        """Read views of a result from its operands, or compute them of parts of these, if that is worth it."""
        readings, size, is_view = self._readings[eqn.outvars[0]], eqn.outvars[0].aval.size, eqn.primitive in VIEWS
        limit = size - LEAST if eqn.primitive in FREE else min(size // 2, size - LEAST)
        fits = len(readings) <= MOST and sum(view.size for view in readings.values()) <= limit
        if not fits and not is_view:
            return False
        found = [self._part_of(eqn, view) for view in readings.values()]
        parts = [part for part in found if part is not None]
        does_nothing = is_view and all(part.write is None for part in parts)
        if len(parts) < len(found) or not (does_nothing or (fits and sum(part.computed for part in parts) <= limit)):
            return False
        for into, part in zip(self._readings.pop(eqn.outvars[0]), parts):
            operands = [self._part(eqn.invars[k], view) for k, view in part.views.items()]
            self._write(self._place[eqn], lambda part=part, own=operands: part.written(self._w, own), into)
        self._whole.update(eqn.invars[1:] if is_view else [])
        self._changed |= not does_nothing
        return True

    def _part_of(self, eqn: Equation, view: View) -> ResultPart | None:
        """Find the part of a result that is a view of it, if operations are known for the views of operands."""
        part = part_of(eqn, view, self._starts)
        views = [] if part is None else part.views.items()
        return part if all(own is view or is_readable(own, eqn.invars[k].aval.shape) for k, own in views) else None

    # parts of operands

    def _parts_of_input(self, v: Var) -> Views | None:
        if v in self._whole:
            return None
        found = tuple(dict.fromkeys([view.in_order()[0] for view in self._readings.get(v, {}).values()]))
        known = all(view.size and not view.has_windows for view in found)
        return found if known and _is_worth(v, found) else None

    def _given_parts(self, eqn: Equation) -> Equation:
        """An equation whose programs are given the parts of operands that they read, where these can be computed."""
        programs = dict.fromkeys(subjaxprs(eqn.params))
        first = len(eqn.invars) - len(next(iter(programs)).invars)
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
        return found if found and None not in of_each and _is_worth(x, found) and self._is_made_in(x, found) else None

    def _is_made_in(self, x: Atom, parts: Sequence[View]) -> bool:
        """Tell whether a value is read once, and is computed in these parts if they are wanted."""
        if not self._uses:
            self._uses = uses(self._jaxpr)
            self._made = {v: eqn for eqn in self._jaxpr.eqns for v in eqn.outvars}
        if type(x) is not Var or self._uses.get(x) != 1:
            return False
        if x not in self._made:
            return x in self._in_parts
        eqn = self._made[x]
        found = [self._part_of(eqn, view) if len(eqn.outvars) == 1 and not effects(eqn) else None for view in parts]
        if eqn.primitive not in VIEWS or None in found:
            return None not in found
        views = [part.views[0] for part in found if part is not None and part.write is None]
        return len(views) == len(found) and self._is_made_in(eqn.invars[0], views)

    def _part(self, x: Atom, view: View) -> Atom:
        if not isinstance(x, Var) or view == whole(x.aval.shape):
            self._whole.add(x)
            return x
        readings = self._readings.setdefault(x, {})
        found = next((into for into, other in readings.items() if other == view), None)
        if found is None:
            found = Var(x.aval.update(shape=view.shape), x.linear)
            readings[found] = view
        return found

    def _read(self, v: Var, place: int) -> None:
        """Read the views of a value that is computed whole."""
        for into, view in self._readings.pop(v, {}).items():
            if into is not v:
                self._write(place, lambda view=view: read(self._w, v, view, self._starts.atoms), into)

    def _write(self, place: int, write: Callable[[], Atom], into: Var) -> None:
        n, made = len(self._w.eqns), write()
        made = typed(self._w, made, into.aval)  # weak as one operand is, where the result is as all are
        self._same[into] = made
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


@core.remembered
def _inputs_in_parts(jaxpr: Jaxpr) -> tuple[Views | None, ...]:
    """Find the parts of its inputs that a program reads. Remembered for as long as it lives."""
    return _Narrowing(jaxpr).read_of_inputs()


@core.remembered
def _given(jaxpr: Jaxpr, parts: tuple[Views | None, ...]) -> Jaxpr | None:
    """A program with these parts of inputs as inputs, if it can be. Remembered for as long as `jaxpr` lives."""
    return _Narrowing(jaxpr).given(parts)
