"""Mask sinking: the pass, and its way into the bodies of calls, branches and loops: masks of results become operands.

A mask that is an operand already is not passed again. Nor is one that holds wherever an operand masking the inside
does. What a program says of where its own inputs matter counts only as far as it goes back to these masks, or to
operands that it chooses by, or to what it compares of these: such comparisons are written outside again.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tapeless.interpreters.index_rows import Combination, index_row
from tapeless.interpreters.simplifications.masks import mask_analysis, regions
from tapeless.interpreters.simplifications.masks.mask import Mask
from tapeless.interpreters.simplifications.masks.mask_analysis import Found, Out, Sinking
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Region
from tapeless.interpreters.simplifications.repeatable_equations import may_be_repeated
from tapeless.interpreters.writer import Writer
from tapeless.tracer import core, passes
from tapeless.tracer.bodies import CARRY, CONST, EACH, Bodies, Body, Role, rebuild_equation, taking_first
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.types import ShapedArray

BOOL = np.dtype(bool)


def sink_masks(jaxpr: Jaxpr) -> Jaxpr:
    """Sink the masks of a whole program, whose linear inputs are finite."""
    return _sunk(jaxpr, jaxpr.invars)


def sink_masks_in_body(jaxpr: Jaxpr) -> Jaxpr:
    """Sink the masks of the body of an equation, whose linear inputs may be infinite."""
    return _sunk(jaxpr, ())


def _sunk(jaxpr: Jaxpr, finite: Collection[Var]) -> Jaxpr:
    if not mask_analysis.chooses(jaxpr) or mask_analysis.computes_masks(jaxpr):
        return jaxpr
    return Sinking(jaxpr, [None] * len(jaxpr.outvars), finite, sink_into_bodies).run()


class Within(NamedTuple):
    """The result of sinking masks into a body.

    program: new masks, inputs -> results; the old program if nothing changed. truths: the mask of each result, if it
    has one. where: where each input matters. parts: for each mask of these, without its views, what it is in masks of
    inputs. made: the equations that compute masks of either; they are cheap enough to be written outside again.
    """

    program: Jaxpr
    truths: tuple[Var | None, ...]
    where: tuple[Region | None, ...]
    changed: bool
    parts: Mapping[Mask, Region | None]
    made: Mapping[Atom, Equation]

    def in_inputs(self, mask: Mask) -> Region | None:
        """Write a mask in masks of inputs, as far as it is made of these."""
        return regions.view_masks(self.parts[mask._replace(views=())], mask.views)


class Place(NamedTuple):
    """The input of a body that is the mask of a result.

    at: its number, `NEW` if there is none yet; the place is `UNREAD` if nothing reads the result. inside: masks among
    the inputs that imply this one. around: masks among the inputs that this one implies.
    """

    at: int
    inside: tuple[int, ...] = ()
    around: tuple[int, ...] = ()


NEW = -1
UNREAD = Place(-2)
Places = Sequence[Place | None]  # one for each result; None if it is read everywhere


@core.memoize_by_program
def _within(jaxpr: Jaxpr, places: tuple[Place | None, ...], finite: tuple[bool, ...]) -> Within:
    """Sink the masks of its results into a body. Remembered for as long as it lives.

    Args:
      places: where the mask of each result is.
      finite: for each input, whether it is known to be finite.
    """
    truths = tuple([_truth(jaxpr, i, place) for i, place in enumerate(places)])
    if mask_analysis.computes_masks(jaxpr):
        return Within(jaxpr, truths, (None,) * len(jaxpr.invars), False, {}, {})
    new = [t for t, is_new in zip(truths, _are_new(places)) if is_new and t is not None]
    read = [None if t is None else regions.of(Mask(t, 1, 2)) for t in truths]
    out = [NOWHERE if place == UNREAD else region for place, region in zip(places, read)]
    given = [v for v, known in zip(jaxpr.invars, finite, strict=True) if known]
    sinking = Sinking(jaxpr.replace(invars=[*new, *jaxpr.invars]), out, given, sink_into_bodies)
    sinking.coefficients.implied = _implied(jaxpr, truths, places)
    program = sinking.run()
    changed = program is not sinking.jaxpr
    where = tuple([sinking.where.get(v, NOWHERE) for v in jaxpr.invars])
    masks = dict.fromkeys([m._replace(views=()) for region in where for a in region or () for m in a])
    parts = {mask: sinking.coefficients.of_inputs(mask) for mask in masks}
    made = _made(sinking.w, [*masks, *[m for region in parts.values() for a in region or () for m in a]])
    return Within(check_if_configured(program) if changed else jaxpr, truths, where, changed, parts, made)


def _made(w: Writer, masks: Sequence[Mask]) -> dict[Atom, Equation]:
    """Collect the equations that compute masks, as far back as they may be repeated."""
    found: dict[Atom, Equation] = {}
    todo = [mask.which for mask in masks]
    while todo:
        x = todo.pop()
        eqn = None if x in found else w.definition(x)
        if eqn is not None and not eqn.linear and (may_be_repeated(eqn) or eqn.primitive is reduce_or_p):
            found[x] = eqn
            todo += eqn.invars
    return found


def _truth(jaxpr: Jaxpr, i: int, place: Place | None) -> Var | None:
    if place is None or place == UNREAD:
        return None
    return Var(ShapedArray(jaxpr.outvars[i].aval.shape, BOOL)) if place.at == NEW else jaxpr.invars[place.at]


def _implied(jaxpr: Jaxpr, truths: Sequence[Var | None], places: Places) -> Mapping[Atom, Sequence[Atom]]:
    """Map masks, among inputs or of results, to other ones that hold wherever they do."""
    found: dict[Atom, list[Atom]] = {}
    for truth, place in zip(truths, places):
        if truth is not None and place is not None:
            for k in place.inside:
                found.setdefault(jaxpr.invars[k], []).append(truth)
            found.setdefault(truth, []).extend(jaxpr.invars[k] for k in place.around)
    return found


def _are_new(places: Places) -> list[bool]:
    return [place is not None and place.at == NEW for place in places]


def _place(
    sinking: Sinking, operands: Mapping[int, Atom], region: Region | None, shape: tuple[int, ...]
) -> Place | None:
    """Find the mask of a result of this shape among operands, by input number; None if it is read everywhere."""
    if not region:
        return None if region is None else UNREAD
    array = sinking.coefficients.array(region)
    if array is None:
        return None
    same = [k for k, x in operands.items() if x is array]
    if same:
        return Place(same[0])
    given = {k: regions.of(Mask(x, 1, 2)) for k, x in operands.items() if _is_mask(x, shape)}
    covers = sinking.coefficients.covers
    inside = tuple([k for k, mask in given.items() if covers(region, mask)])
    return Place(NEW, inside, tuple([k for k, mask in given.items() if covers(mask, region)]))


def _is_mask(x: Atom, shape: tuple[int, ...]) -> bool:
    return type(x) is Var and x.aval.dtype == BOOL and x.aval.shape == shape


def _translated(within: Within, region: Region | None, meaning: Callable[[Mask], Region | None]) -> Region | None:
    """Translate a region of a body to the caller: what its masks mean there, None for everywhere.

    A mask is translated as a whole if it can be: if parts of it are reduced one by one, they hold at more places.
    """

    def translated(mask: Mask) -> Region | None:
        whole = meaning(mask)
        return regions.translate_masks(within.in_inputs(mask), meaning) if whole is None else whole

    return regions.translate_masks(region, translated)


def _meaning(
    truths: Sequence[Var | None], out: Out, outside: Callable[[Atom], Atom | None]
) -> Callable[[Mask], Region | None]:
    """Translate masks of a body, without their views, to the caller: of results, and of what is known outside."""
    table = {t: region for t, region in zip(truths, out) if t is not None}

    def meaning(mask: Mask) -> Region | None:
        if mask.which in table:
            return table[mask.which]
        x = outside(mask.which)
        return regions.of(Mask(x, mask.case, mask.cases)) if type(x) is Var else None

    return meaning


class _Outside:
    """A map from values of a body to the same ones in the caller, written there again; to None where it cannot be.

    given: what inputs are. is_alike: whether an equation computes of what is given what it does in the body.
    """

    def __init__(
        self, w: Writer, within: Within, given: Mapping[Atom, Atom], is_alike: Callable[[Equation], bool] | None = None
    ) -> None:
        self._w, self._made, self._given, self._is_alike = w, within.made, given, is_alike

    def __call__(self, x: Atom) -> Atom | None:
        if type(x) is Literal or x in self._given:
            return self._given.get(x, x)
        eqn = self._made.get(x)
        if eqn is None or not (self._is_alike is None or self._is_alike(eqn)):
            return None
        operands = [found for v in eqn.invars if (found := self(v)) is not None and not found.linear]
        return self._w.write(eqn.primitive, *operands, **eqn.params) if len(operands) == len(eqn.invars) else None


def _new(sinking: Sinking, places: Places, out: Out) -> list[Atom]:
    """Write the masks that bodies take as new operands."""
    masks = [sinking.coefficients.array(region or NOWHERE) for is_new, region in zip(_are_new(places), out) if is_new]
    return [x for x in masks if x is not None]


def sink_into_bodies(sinking: Sinking, eqn: Equation, bodies: Bodies, out: Out) -> Found:
    """Sink the masks of its results into the bodies of an equation.

    Args:
      out: the region where each result is read.
    Returns: the equation, the same one if nothing changed, and the region where each operand is read.
    """
    return _loop(sinking, eqn, bodies, out) if bodies.loops else _call(sinking, eqn, bodies, out)


# ---- calls and branches --------------------------------------------------------------------------------------


def _call(sinking: Sinking, eqn: Equation, bodies: Bodies, out: Out) -> Found:
    """Sink masks into the body of a call, or into branches: an operand is read where one that reads it is taken."""
    positions = bodies.each[0].operands  # which all bodies take
    operands = [eqn.invars[at] for at in positions]
    places = _places(sinking, eqn, [dict(enumerate(operands))] * len(out), out)
    finite = tuple(map(sinking.is_finite, operands))
    found = [_within(body.jaxpr, places, finite) for body in bodies.each]
    given: list[dict[Atom, Atom]] = [dict(zip(body.jaxpr.invars, operands)) for body in bodies.each]
    each = [_where_of_call(sinking, within, out, known) for within, known in zip(found, given)]
    where: list[Region | None] = [None] * len(eqn.invars)
    for at, x, of_bodies in zip(positions, operands, zip(*each)):
        where[at] = of_bodies[0] if bodies.selector is None else _by_branch(eqn.invars[bodies.selector], of_bodies, x)
    if not any(within.changed for within in found):
        return eqn, where
    new, n = _new(sinking, places, out), len(eqn.invars)
    first = [(n + k, CONST) for k in range(len(new))]
    after = [taking_first(body, _taking(within, len(new)), first) for body, within in zip(bodies.each, found)]
    return rebuild_equation(eqn, after, [*eqn.invars, *new]), where


def _places(sinking: Sinking, eqn: Equation, among: Sequence[Mapping[int, Atom]], out: Out) -> tuple[Place | None, ...]:
    """Find the mask of each result among operands, which `among` has by input number."""
    return tuple([_place(sinking, xs, region, v.aval.shape) for xs, region, v in zip(among, out, eqn.outvars)])


def _by_branch(index: Atom, found: Sequence[Region | None], x: Atom) -> Region | None:
    """Join the regions where branches read the operand x, each where that branch is taken."""
    if all(region is None for region in found):
        return None
    total: Region | None = NOWHERE
    shape = x.aval.shape
    for k, region in enumerate(found):
        mask = Mask(index, k, len(found))
        here = mask.repeated(shape, ()) if shape else mask
        total = regions.either(total, regions.both(regions.of(here), region))
    return total


def _where_of_call(sinking: Sinking, within: Within, out: Out, given: Mapping[Atom, Atom]) -> list[Region | None]:
    known = {**given, **_arrays(sinking, within.truths, out)}
    meaning = _meaning(within.truths, out, _Outside(sinking.w, within, known))
    of_views = lambda mask: regions.view_masks(meaning(mask), mask.views)  # noqa: E731
    return [_translated(within, region, of_views) for region in within.where]


def _arrays(sinking: Sinking, truths: Sequence[Var | None], out: Out) -> dict[Atom, Atom]:
    """Write the regions of masks of results as arrays, where they are neither everywhere nor nowhere."""
    arrays = {t: sinking.coefficients.array(region) for t, region in zip(truths, out) if t is not None and region}
    return {t: x for t, x in arrays.items() if x is not None}


def _taking(within: Within, n: int) -> Jaxpr:
    """Return the body with the `n` new mask inputs, unused ones if it did not change."""
    if within.changed:
        return within.program
    unused = [t.aval for t in within.truths if t is not None and t not in within.program.invars]
    jaxpr = within.program
    return passes.rearrange_program(jaxpr, [*unused, *range(len(jaxpr.invars))], range(len(jaxpr.outvars)))


# ---- loops ---------------------------------------------------------------------------------------------------


def _loop(sinking: Sinking, eqn: Equation, bodies: Bodies, out: Out) -> Found:
    """Sink masks into a loop. The mask of a carry holds in every step if it is a loop invariant (`_stays`).

    The mask of the carry itself is tried first, then the union of those of all results of its shape, as carries may
    feed each other.
    """
    (body,) = bodies.each
    carry = body.inputs(CARRY)
    finite = tuple([k not in carry and sinking.is_finite(eqn.invars[at]) for k, at in enumerate(body.operands)])
    joint: set[int] = set()
    while True:
        places = _places_of_loop(sinking, eqn, body, out)
        within = _within(body.jaxpr, places, finite)
        beyond = [i for i, k in enumerate(carry) if out[i] is not None and not _stays(within, body.jaxpr, k, i, joint)]
        if not beyond:
            break
        before, out = out, list(out)
        for i in beyond:
            out[i] = None if i in joint else _joint(body.jaxpr, len(carry), i, before)
        joint.update(beyond)
    where = _where_of_loop(sinking.w, eqn, bodies, within, out)
    return _loop_with(sinking, eqn, body, within, places, out) if within.changed else eqn, where


def _places_of_loop(sinking: Sinking, eqn: Equation, body: Body, out: Out) -> tuple[Place | None, ...]:
    """Find the masks of carries among the constants, and those of stacked results among the scanned inputs."""
    constant, stacked = [{k: eqn.invars[body.operands[k]] for k in body.inputs(role)} for role in (CONST, EACH)]
    return _places(sinking, eqn, [constant if role is CARRY else stacked for role in body.outs], out)


def _stays(within: Within, jaxpr: Jaxpr, k: int, i: int, joint: Container[int]) -> bool:
    """Check the loop invariant: where carry i, input k, is read at entry is within the mask assumed at exit."""
    region = regions.translate_masks(within.where[k], within.in_inputs)
    truths = [within.truths[j] for j in (_alike_in_shape(jaxpr, i) if i in joint else [i])]
    return region is not None and all(any(m.which in truths and not m.views for m in a) for a in region)


def _alike_in_shape(jaxpr: Jaxpr, i: int) -> list[int]:
    """Return the results that have the shape of result i."""
    return [j for j, v in enumerate(jaxpr.outvars) if v.aval.shape == jaxpr.outvars[i].aval.shape]


def _joint(jaxpr: Jaxpr, n_carry: int, i: int, out: Out) -> Region | None:
    """Join the regions where carry i, or another result of its shape, is read in any step."""
    total: Region | None = NOWHERE
    for j in _alike_in_shape(jaxpr, i):
        every = out[j] if j < n_carry else regions.move_masks(out[j], Mask.anywhere_along_first_axis)
        total = regions.either(total, every)
    return total


def _where_of_loop(w: Writer, eqn: Equation, bodies: Bodies, within: Within, out: Out) -> list[Region | None]:
    (body,), steps = bodies.each, bodies.steps
    length, n_carry = len(steps or ()), len(body.inputs(CARRY))
    # A mask that is the same in every step, and one of which every step has its own, all of them.
    constants, stacked = _by_input(eqn, body, CONST), _by_input(eqn, body, EACH)
    of_all = _meaning(within.truths[:n_carry], out[:n_carry], _Outside(w, within, constants))
    of_each = _meaning(within.truths[n_carry:], out[n_carry:], _Outside(w, within, stacked, _is_the_same_stacked))

    def once(mask: Mask) -> Region | None:
        any_step = regions.move_masks(of_each(mask), Mask.anywhere_along_first_axis)
        return regions.view_masks(of_all(mask) or any_step, mask.views)

    def repeated(shape: tuple[int, ...]) -> Callable[[Mask], Region | None]:
        def of_step(mask: Mask) -> Region | None:
            if (each := of_each(mask)) is not None:
                return regions.view_masks(each, [view.stacked(length) for view in mask.views])
            every = (length, *shape), range(1, len(shape) + 1)
            return regions.move_masks(regions.view_masks(of_all(mask), mask.views), lambda m: m.repeated(*every))

        return of_step

    where: list[Region | None] = [None] * len(eqn.invars)
    for role, at, region in zip(body.ins, body.operands, within.where):
        if role is EACH:
            where[at] = _translated(within, region, repeated(eqn.invars[at].aval.shape[1:]))
        elif length:  # what a loop without steps returns is the carry that it was given
            where[at] = _translated(within, region, once)
    return where


def _by_input(eqn: Equation, body: Body, role: Role) -> dict[Atom, Atom]:
    """Map the inputs of a role to the operands that they are, or are elements of."""
    return {body.jaxpr.invars[k]: eqn.invars[body.operands[k]] for k in body.inputs(role)}


def _is_the_same_stacked(eqn: Equation) -> bool:
    """Tell whether an equation of a step computes, of stacked operands and numbers, all of its results, stacked."""
    row = index_row(eqn)
    shape = eqn.outvars[0].aval.shape
    alike = all((type(x) is Literal and not x.aval.shape) or x.aval.shape == shape for x in eqn.invars)
    is_stacked = any(type(x) is not Literal for x in eqn.invars)  # a result of numbers alone has no axis of steps
    return row is not None and row.combination is Combination.POINTWISE and alike and is_stacked


def _loop_with(sinking: Sinking, eqn: Equation, body: Body, within: Within, places: Places, out: Out) -> Equation:
    """Build the loop with new operands: masks of carries are constants, those of stacked results scanned inputs."""
    new, n = _new(sinking, places, out), len(eqn.invars)
    roles = [CONST if role is CARRY else EACH for role, is_new in zip(body.outs, _are_new(places)) if is_new]
    after = taking_first(body, within.program, [(n + k, role) for k, role in enumerate(roles)])
    return rebuild_equation(eqn, [after], [*eqn.invars, *new])
