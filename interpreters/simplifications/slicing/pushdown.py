"""Slice pushdown: a value of which only parts are read is computed in these parts only (dead code in elements).

Equations are visited backwards, so that all readers of a value are known when the equation that computes it is
reached. Its views then become views of its operands, if together they have at most half of its elements, or if the
equation only moves elements. Otherwise the smallest box that has all views is computed, if the equation is fused with
its readers. A view that cannot be pushed further is read from the whole value. Each equation is visited once, and
replaced by at most `PARTS`.

Elements that are not read are not differentiated either: a box protects gradients from 0 times infinity, however few
elements it saves.

If the bodies of an equation (a call, branches, a loop) read only views of an operand that nothing else reads, these
views become the operands. So the equation that computes the operand is reached, too. And if only views of a result are
read, the bodies give these views instead.
"""

from collections.abc import Callable, Mapping, Sequence

from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.slicing.parts import (
    FREE,
    VIEWS,
    ResultPart,
    Starts,
    from_boxes,
    is_fused,
    is_readable,
    read_in_boxes,
    read_part,
    restrict,
    spread,
)
from tapeless.interpreters.writer import Writer, convert_type, in_order, reinfer_linearity, uses
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.bodies import CARRY, EACH, VALUE, Bodies, Body, bodies_of, rebuild_equation
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, effects
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.primitives.shape import slice_p
from tapeless.tracer.terms.map import Map, find_box, find_view_in_box, identity_map

_CUTS = frozenset((slice_p, dynamic_slice_p))
_NARROWING = _CUTS | {ein_p}  # they may read parts of operands even if all of their results is read
Views = tuple[Map, ...]


def narrow_program(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a program to compute only the elements that are read; the same object if nothing can be saved."""
    entered = [bodies for eqn in jaxpr.carrying if (bodies := _entered(eqn)) is not None]
    if not entered and jaxpr.primitives.isdisjoint(_NARROWING):
        return jaxpr
    inputs = set(jaxpr.invars)
    cut = [eqn.invars[0] for eqn in jaxpr.eqns if eqn.primitive in _CUTS and eqn.invars[0] not in inputs]
    whole = _read_whole(jaxpr) if cut else None
    is_promising = (whole is not None and not whole.issuperset(cut)) or _promising(jaxpr, inputs, entered)
    return _Narrowing(jaxpr, whole).run() if is_promising else jaxpr


def _promising(jaxpr: Jaxpr, inputs: set[Var], entered: Sequence[Bodies]) -> bool:
    """Tell whether a sum of terms, or a body, may read only parts of computed values: a quick test before the pass."""
    sums = [eqn for eqn in jaxpr.eqns if eqn.primitive is ein_p]
    if any(not inputs.issuperset([eqn.invars[k] for k in read_in_boxes(eqn)]) for eqn in sums):
        return True
    return any(any(_inputs_in_parts(body.jaxpr)) for bodies in entered for body in bodies.each)


def _entered(eqn: Equation) -> Bodies | None:
    """Describe the bodies that may take and give parts; None if there are none, or a user's rule takes the values."""
    bodies = bodies_of(eqn)
    return None if bodies is None or bodies.fixed else bodies


def _reads_all(eqn: Equation) -> bool:
    """Tell whether an equation reads all of its operands if all of its results is read."""
    return eqn.primitive not in _NARROWING and not eqn.primitive.carries_programs


def _read_whole(jaxpr: Jaxpr) -> set[Atom]:
    """Return the values that are computed whole: a reader needs all elements."""
    found, read = set[Atom](jaxpr.outvars), dict[Atom, int]()
    for eqn in reversed(jaxpr.eqns):
        if eqn.primitive in VIEWS:
            out, x = eqn.outvars[0], eqn.invars[0]
            if x not in found:
                read[x] = max(read.get(x, 0), out.aval.size if out in found else read.get(out, 0))
                if read[x] == x.aval.size:
                    found.add(x)
            found.update(eqn.invars[1:])
        elif (len(eqn.outvars) != 1 or eqn.outvars[0] in found) and _entered(eqn) is None:
            found.update(eqn.invars)
    return found


class _Narrowing:
    """One backward visit of a program, replacing values by the views of them that are read."""

    def __init__(self, jaxpr: Jaxpr, read_whole: set[Atom] | None = None) -> None:
        self._jaxpr = jaxpr
        self._w = Writer(jaxpr)
        self._visited = set[int]()  # positions of equations; others are kept as they are
        self._whole = _read_whole(jaxpr) if read_whole is None else read_whole
        self._readings: dict[Var, dict[Var, Map]] = {}  # for each value, the variables that stand for its views
        self._variable_of: dict[tuple[Var, Map], Var] = {}
        self._kept: dict[Equation, int] = {}
        self._same: dict[Atom, Atom] = {}
        self._made: dict[Atom, Equation] = {}  # filled by `_maker`, as is `_uses`, the number of reads
        self._uses: dict[Var, int] = {}
        self._in_parts: set[Atom] = set()  # inputs that views of them can replace
        self._starts = Starts()
        self._changed = False

    def run(self) -> Jaxpr:
        """Return the program computing only the elements that are read; the same object if nothing changed."""
        self._whole.update(self._jaxpr.invars)
        self._visit_all()
        for v in self._jaxpr.invars:
            self._read(v, -1)
        return self._written(self._jaxpr) if self._changed else self._jaxpr

    def read_of_inputs(self) -> tuple[Views | None, ...]:
        """Return the views of each input that the program reads; None if they are unknown, or as good as all of it."""
        self._in_parts.update(self._jaxpr.invars)
        self._visit_all()
        return tuple([self._parts_of(v) for v in self._jaxpr.invars])

    def given(self, parts: Sequence[Views | None]) -> Jaxpr | None:
        """Return the program that takes views of inputs as inputs; None if a linear result would lose its mark.

        Args:
          parts: the views that replace each input; None for an input that stays.
        """
        self._in_parts.update([v for v, wanted in zip(self._jaxpr.invars, parts) if wanted is not None])
        self._visit_all()
        invars: list[Var] = []
        for v, wanted in zip(self._jaxpr.invars, parts, strict=True):
            if wanted is None:
                self._read(v, -1)
                invars.append(v)
            else:
                invars += self._given_as(v, wanted, -1)
        before = self._jaxpr.replace(invars=invars)
        after = self._written(before)
        return after if after is not before else None

    def _visit_all(self) -> None:
        views, kept_whole, read_all = self._readings.keys(), self._whole.issuperset, self._whole.update
        place = len(self._jaxpr.eqns)
        for eqn in reversed(self._jaxpr.eqns):
            place -= 1
            if _reads_all(eqn) and kept_whole(eqn.outvars) and views.isdisjoint(eqn.outvars):
                read_all(eqn.invars)  # as `_keep` does
            else:
                self._visited.add(place)
                self._w.source = eqn.source
                self._visit(eqn, place)
        self._w.source = None

    def _written(self, jaxpr: Jaxpr) -> Jaxpr:
        kept = {eqn: i for i, eqn in enumerate(self._jaxpr.eqns) if i not in self._visited} | self._kept
        is_same, renamed = self._same.keys().isdisjoint, self._renamed
        eqns = [eqn if is_same(eqn.invars) else renamed(eqn) for eqn in sorted(kept, key=kept.__getitem__)]
        after = in_order(jaxpr, eqns, [self._now(v) for v in jaxpr.outvars])
        return reinfer_linearity(jaxpr, after) if self._w.sparser else after

    def _visit(self, eqn: Equation, place: int) -> None:
        if len(eqn.outvars) != 1 or effects(eqn):
            self._keep(eqn, place)
            return
        (v,) = eqn.outvars
        if v in self._whole and eqn.primitive in _CUTS and eqn.invars[0] not in self._whole:
            self._read(v, place)
            self._readings[v] = {v: identity_map(v.aval.shape)}
        elif v in self._whole:
            if eqn.primitive is not ein_p or not self._summed_from_boxes(eqn, place):
                self._keep(eqn, place)
            return
        if v in self._readings and not self._pushed(eqn, place):
            self._keep(eqn, place)

    def _keep(self, eqn: Equation, place: int) -> None:
        """Keep an equation: its results are computed whole and views of them read, unless its bodies give these."""
        bodies, now = _entered(eqn), eqn
        if bodies is not None:
            now = self._giving_parts(now, bodies, place)
            now = self._given_parts(now, _entered(now) or bodies)
        for v in now.outvars:
            self._read(v, place)
        self._kept[now] = place
        self._whole.update(now.invars)

    def _pushed(self, eqn: Equation, place: int) -> bool:
        """Compute the views of a result from views of its operands, if that saves enough; tell whether it does."""
        v = eqn.outvars[0]
        readings, size = self._readings[v], v.aval.size
        limit = size - limits.SAVED if eqn.primitive in FREE else min(size // 2, size - limits.SAVED)
        if self._computed_from_parts(eqn, place, readings, limit):
            del self._readings[v]
            return True
        return _may_be_a_box(eqn) and self._pushed_in_a_box(eqn, place)

    def _pushed_in_a_box(self, eqn: Equation, place: int) -> bool:
        """Compute the smallest box that has all views of a result, and read these from it, if it is not all of it."""
        v = eqn.outvars[0]
        readings = self._readings[v]
        views = [view for view in readings.values() if view.size]
        if not views or any(view.has_symbols for view in views):
            return False
        box = find_box([(view.access, view.shape) for view in views], v.aval.shape)
        if box.is_identity or not all(is_readable(find_view_in_box(view, box)) for view in readings.values()):
            return False
        into = Var(v.aval.update(shape=box.shape), v.linear)
        if not self._computed_from_parts(eqn, place, {into: box}, v.aval.size - 1):
            return False
        self._readings[v] = {own: find_view_in_box(view, box) for own, view in readings.items()}
        self._read(v, place, into)
        return True

    def _summed_from_boxes(self, eqn: Equation, place: int) -> bool:
        """Compute only the boxes read by an `ein`, of operands that nothing else reads; tell if there are any."""
        boxed = [k for k in read_in_boxes(eqn) if self._is_made_alone(eqn.invars[k])]
        if not boxed:
            return False
        part, (v,) = from_boxes(eqn, boxed), eqn.outvars
        self._read(v, place)
        operands = [self._part(eqn.invars[k], view) for k, view in part.views.items()]
        self._write(place, lambda: part.written(self._w, operands), v)
        self._changed = True
        return True

    def _is_made_alone(self, x: Atom) -> bool:
        """Tell whether a value is computed for one reader, in its kernel, and by more than moving elements."""
        eqn = self._maker(x)
        return eqn is not None and eqn.primitive not in FREE and _may_be_a_box(eqn)

    def _computed_from_parts(self, eqn: Equation, place: int, readings: Mapping[Var, Map], limit: int) -> bool:
        """Write views of a result, computed from views of operands, if at most `limit` elements are; tell whether."""
        is_view = eqn.primitive in VIEWS
        fits = sum(view.size for view in readings.values()) <= limit
        fits = fits and not limits.PARTS.is_passed(len(readings), eqn.source)
        if not fits and not is_view:
            return False
        found = [self._part_of(eqn, view) for view in readings.values()]
        parts = [part for part in found if part is not None]
        does_nothing = is_view and all(part.write is None for part in parts)
        if len(parts) < len(found) or not (does_nothing or (fits and sum(part.computed for part in parts) <= limit)):
            return False
        for into, part in zip(readings, parts):
            operands = [self._part(eqn.invars[k], view) for k, view in part.views.items()]
            self._write(place, lambda part=part, own=operands: part.written(self._w, own), into)
        self._whole.update(eqn.invars[1:] if is_view else [])
        self._changed |= not does_nothing
        return True

    def _part_of(self, eqn: Equation, view: Map) -> ResultPart | None:
        """Find how to compute a view of a result from views of operands that can be written; None if it fails."""
        part = restrict(eqn, view, self._starts)
        views = [] if part is None else part.views.items()
        return part if all(_is_written(eqn.invars[k], own, own is view) for k, own in views) else None

    # parts of operands

    def _parts_of(self, v: Var) -> Views | None:
        """Return the views of a value that are read, in order; None if it is read whole, or nearly, or in windows."""
        if v in self._whole:
            return None
        found = tuple(dict.fromkeys([view.in_order()[0] for view in self._readings.get(v, {}).values()]))
        known = all(view.size and not view.has_symbols for view in found)
        return found if known and _is_worth(v, found) else None

    def _given_as(self, v: Var, views: Views, place: int) -> list[Var]:
        """Read views of a value from new variables, one for each of `views`, at a place; return these."""
        new = {view: Var(v.aval.update(shape=view.shape), v.linear) for view in views}
        for into, view in self._readings.pop(v, {}).items():
            part, order = view.in_order()
            self._write(place, lambda x=new[part], view=view, order=order: spread(self._w, x, order, view.shape), into)
        return [*new.values()]

    def _given_parts(self, eqn: Equation, bodies: Bodies) -> Equation:
        """Pass to bodies only the views of operands that they read, where these can be computed."""
        if not any(any(_inputs_in_parts(body.jaxpr)) for body in bodies.each):
            return eqn
        read: dict[int, list[Views | None]] = {}
        for body in bodies.each:
            for role, at, views in zip(body.ins, body.operands, _inputs_in_parts(body.jaxpr), strict=True):
                read.setdefault(at, []).append(None if role is CARRY else views)
        each = bodies.operands(EACH)
        wanted = {at: self._wanted(eqn.invars[at], found, bodies, at in each) for at, found in read.items()}
        parts = {at: views for at, views in wanted.items() if views is not None}
        if not parts:
            return eqn
        programs = [_given(body.jaxpr, tuple(map(parts.get, body.operands))) for body in bodies.each]
        if None in programs:
            return eqn
        self._changed = True
        operands, positions = list(eqn.invars), dict[int, list[int]]()
        for at, views in parts.items():
            positions[at] = [*range(len(operands), len(operands) + len(views))]
            operands += [self._part(eqn.invars[at], _of_operand(view, bodies, at in each)) for view in views]
        pairs = zip(bodies.each, programs)
        return rebuild_equation(
            eqn, [_taking(body, jaxpr, positions) for body, jaxpr in pairs if jaxpr is not None], operands
        )

    def _giving_parts(self, eqn: Equation, bodies: Bodies, place: int) -> Equation:
        """Let bodies give only the views of their results that are read, if these are at most half of a result."""
        parts = {k: views for k, v in enumerate(eqn.outvars) if (views := self._parts_of_result(v)) is not None}
        if not parts:
            return eqn
        each = {at: k for body in bodies.each for k, at in enumerate(body.results) if body.outs[k] in (VALUE, EACH)}
        stacked = {at for body in bodies.each for at in body.stacked()}
        inside = {at: _of_result(views, at in stacked) for at, views in parts.items() if at in each}
        given = {at: views for at, views in inside.items() if views is not None}
        if not given:
            return eqn
        self._changed = True
        outvars, positions = list(eqn.outvars), dict[int, list[int]]()
        for at in given:
            v, views = eqn.outvars[at], parts[at]
            positions[at] = [*range(len(outvars), len(outvars) + len(views))]
            outvars += self._given_as(v, views, place)
        after = [_giving(body, given, positions) for body in bodies.each]
        return rebuild_equation(eqn, after, eqn.invars, outvars)

    def _parts_of_result(self, v: Var) -> Views | None:
        """Return the views of a result that bodies can give; None if they give it whole."""
        found = self._parts_of(v)
        return found if found and all(map(is_readable, found)) else None

    def _wanted(self, x: Atom, of_each: Sequence[Views | None], bodies: Bodies, scanned: bool) -> Views | None:
        """Return all views of an operand, or of each element, that some body reads; None if it is passed whole."""
        found = tuple(dict.fromkeys([view for views in of_each for view in views or ()]))
        outside = tuple([_of_operand(view, bodies, scanned) for view in found])
        taken = found and None not in of_each and _is_worth(x, outside) and self._is_made_in(x, outside)
        return found if taken else None

    def _is_made_in(self, x: Atom, parts: Sequence[Map]) -> bool:
        """Tell whether a value has one reader, and can be computed in these parts only."""
        eqn = self._maker(x)
        if eqn is None:
            return type(x) is Var and x in self._in_parts and self._uses.get(x) == 1
        found = [self._part_of(eqn, view) for view in parts]
        if eqn.primitive not in VIEWS or None in found:
            return None not in found
        views = [part.views[0] for part in found if part is not None and part.write is None]
        return len(views) == len(found) and self._is_made_in(eqn.invars[0], views)

    def _maker(self, x: Atom) -> Equation | None:
        """Return the equation that computes a value for one reader alone, and nothing else; None if there is none."""
        if not self._uses:
            self._uses = uses(self._jaxpr)
            self._made = {v: eqn for eqn in self._jaxpr.eqns for v in eqn.outvars}
        eqn = self._made.get(x) if type(x) is Var and self._uses.get(x) == 1 else None
        return eqn if eqn is not None and len(eqn.outvars) == 1 and not effects(eqn) else None

    def _part(self, x: Atom, view: Map) -> Atom:
        """Return the variable that stands for a view of a value, or the value itself for the whole view."""
        if not isinstance(x, Var) or view.is_identity:
            self._whole.add(x)
            return x
        readings = self._readings.setdefault(x, {})
        found = self._variable_of.get((x, view))
        if found is None or readings.get(found) != view:
            found = self._variable_of[x, view] = Var(x.aval.update(shape=view.shape), x.linear)
            readings[found] = view
        return found

    def _read(self, v: Var, place: int, box: Var | None = None) -> None:
        """Write, at position `place` of the program, the reads of all views of a value, computed whole or as a box."""
        for into, view in self._readings.pop(v, {}).items():
            if into is not v or box is not None:
                self._write(place, lambda view=view: read_part(self._w, box or v, view, self._starts.atoms), into)

    def _write(self, place: int, write: Callable[[], Atom], into: Var) -> None:
        n, made = len(self._w.eqns), write()
        made = convert_type(
            self._w, made, into.aval
        )  # the operand that is read may have another weak type than the result
        self._same[into] = made
        self._w.sparser |= into.linear and not made.linear
        self._kept.update(dict.fromkeys(self._w.eqns[n:], place))

    def _now(self, v: Atom) -> Atom:
        chain = []
        while v in self._same:
            chain.append(v)
            v = self._same[v]
        self._same.update(dict.fromkeys(chain, v))  # path compression
        return v

    def _renamed(self, eqn: Equation) -> Equation:
        return eqn.replace(invars=[self._now(v) for v in eqn.invars])


def _may_be_a_box(eqn: Equation) -> bool:
    """Tell whether a box that is nearly all of a result is worth computing: it has derivatives, and is no copy."""
    return dtypes.is_inexact(eqn.outvars[0].aval.dtype) and is_fused(eqn)


def _is_written(x: Atom, view: Map, is_known: bool) -> bool:
    """Tell whether a view of an operand can be written: `is_known` if so is that of the result. Literals stay whole."""
    if type(x) is Literal:
        return view.is_identity
    return is_known or is_readable(view)


def _is_worth(x: Atom, parts: Views) -> bool:
    size = x.aval.size
    fits = sum(view.size for view in parts) <= min(size // 2, size - limits.SAVED)
    return fits and not limits.PARTS.is_passed(len(parts))


def _of_operand(view: Map, bodies: Bodies, scanned: bool) -> Map:
    """Return the view of an operand that has a view of each input it is, or of each element if it is a sequence."""
    return view.stacked(len(bodies.steps or ())) if scanned else view


def _of_result(views: Views, stacked: bool) -> Views | None:
    """Return the views of the result of a body that make up views of the equation's; None if they are of some steps."""
    found = [view.of_each() for view in views] if stacked else views
    return None if None in found else tuple([view for view in found if view is not None])


def _taking(body: Body, jaxpr: Jaxpr, positions: Mapping[int, Sequence[int]]) -> Body:
    """Describe a body whose inputs became several ones, of the operands at `positions`."""
    listed = [(role, new) for role, at in zip(body.ins, body.operands) for new in positions.get(at, (at,))]
    return body._replace(jaxpr=jaxpr, ins=tuple([role for role, _ in listed]), operands=tuple([at for _, at in listed]))


def _giving(body: Body, given: Mapping[int, Views], positions: Mapping[int, Sequence[int]]) -> Body:
    """Describe a body that gives views of some of its results instead of these, as results at `positions`."""
    views = tuple([given.get(at) for at in body.results])
    listed = [(role, new) for role, at in zip(body.outs, body.results) for new in positions.get(at, (at,))]
    outs, results = tuple([role for role, _ in listed]), tuple([at for _, at in listed])
    return body._replace(jaxpr=_cut(body.jaxpr, views), outs=outs, results=results)


@core.memoize_by_program
def _cut(jaxpr: Jaxpr, parts: tuple[Views | None, ...]) -> Jaxpr:
    """Rewrite a body to give views of its results, as `parts` has them. Remembered for as long as it lives."""
    w = Writer(jaxpr)
    w.visit_all()
    outvars = [
        x
        for v, wanted in zip(jaxpr.outvars, parts, strict=True)
        for x in ([w.now(v)] if wanted is None else [read_part(w, w.now(v), view, ()) for view in wanted])
    ]
    return narrow_program(passes.dead_code(jaxpr.replace(eqns=w.eqns, outvars=outvars)))


@core.memoize_by_program
def _inputs_in_parts(jaxpr: Jaxpr) -> tuple[Views | None, ...]:
    """Return the views of each input that a body reads, as `read_of_inputs`. Remembered for as long as it lives."""
    if jaxpr.primitives.isdisjoint(_NARROWING) and not any(map(_entered, jaxpr.carrying)):
        used = passes.used_variables(jaxpr)
        return tuple([None if v in used else () for v in jaxpr.invars])
    return _Narrowing(jaxpr).read_of_inputs()


@core.memoize_by_program
def _given(jaxpr: Jaxpr, parts: tuple[Views | None, ...]) -> Jaxpr | None:
    """Return a body that takes views of inputs, as `given`. Remembered for as long as `jaxpr` lives."""
    return _Narrowing(jaxpr).given(parts)
