"""Mask sinking into the programs of jit, checkpoint, cond and scan: the masks of their results become operands.

Each program is given a mask once, whichever equation carries it. What it says of where its own inputs matter counts
only as far as it goes back to these masks, or to operands that it chooses by: what it computes is not known outside.
"""

import weakref
from collections.abc import Callable, Container, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.masks import analysis, regions
from tapeless.interpreters.simplifications.masks.analysis import Sinking
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Mask, Region
from tapeless.tracer import core, passes
from tapeless.tracer.check import checked
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import cond_p, scan_p
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray

Out = Sequence[Region | None]
Found = tuple[Equation, list[Region | None]]
NEW = -1  # the place of a mask that a program does not have yet
UNREAD = -2  # that of the mask of a result which nothing reads
BOOL = np.dtype(bool)


class Within(NamedTuple):
    """The result of sinking masks into a program.

    program: new masks, inputs -> results; the old program if nothing changed. truths: the mask of each result, if it
    has one. where: where each input matters.
    """

    program: Jaxpr
    truths: tuple[Var | None, ...]
    where: tuple[Region | None, ...]
    changed: bool


def _within(jaxpr: Jaxpr, places: tuple[int | None, ...], finite: tuple[bool, ...]) -> Within:
    """A program, given masks of its results. Remembered for as long as it lives.

    Args:
      places: for each result, which input its mask is, or `NEW` or `UNREAD`; None if it has none.
      finite: for each input, whether it is known to be finite.
    """
    cache = _programs.setdefault(jaxpr, {})
    key = places, finite
    if key not in cache:
        truths = tuple([_truth(jaxpr, i, place) for i, place in enumerate(places)])
        new = [t for t, place in zip(truths, places) if place == NEW and t is not None]
        read = [None if t is None else regions.of(Mask(t, 1, 2)) for t in truths]
        out = [NOWHERE if place == UNREAD else region for place, region in zip(places, read)]
        given = [v for v, known in zip(jaxpr.invars, finite, strict=True) if known]
        sinking = Sinking(jaxpr.replace(invars=[*new, *jaxpr.invars]), out, given)
        program = sinking.run()
        changed = program is not sinking.jaxpr
        where = tuple([sinking.where.get(v, NOWHERE) for v in jaxpr.invars])
        cache[key] = Within(checked(program) if changed else jaxpr, truths, where, changed)
    return cache[key]


def _truth(jaxpr: Jaxpr, i: int, place: int | None) -> Var | None:
    if place is None or place == UNREAD:
        return None
    if place != NEW:
        return jaxpr.invars[place]
    truth = Var(ShapedArray(jaxpr.outvars[i].aval.shape, BOOL))
    _truth_of[truth] = i
    return truth


def _place(programs: Sequence[Jaxpr], i: int, operands: Sequence[Atom], region: Region | None) -> int | None:
    """Find the input that holds the mask of result `i`; None if the result is read everywhere."""
    if not region:
        return None if region is None else UNREAD
    inputs = zip(*[jaxpr.invars for jaxpr in programs], strict=True)
    given = [k for k, vs in enumerate(inputs) if any(_truth_of.get(v) == i for v in vs) and type(operands[k]) is Var]
    return given[0] if given else NEW


def _narrowed(sinking: Sinking, places: Sequence[int | None], operands: Sequence[Atom], out: Out) -> Out:
    """Intersect the regions of results with the masks that the programs were given before."""
    return [
        regions.both(_meaning(sinking, Mask(operands[place], 1, 2)), region)
        if place is not None and place >= 0
        else region
        for place, region in zip(places, out)
    ]


def _given(sinking: Sinking, places: Sequence[int | None], operands: Sequence[Atom], out: Out) -> list[Atom]:
    """The operands, with masks that were given before made narrower."""
    given = list(operands)
    for place, region in zip(places, out):
        if place is not None and place >= 0 and region:
            before = _meaning(sinking, Mask(given[place], 1, 2))
            given[place] = given[place] if regions.covers(region, before) else sinking.coefficients.array(region)
    return given


def _outside(region: Region | None, meaning: Callable[[Mask], Region | None]) -> Region | None:
    """Translate a region from body variables to caller variables; `meaning(mask)` is None for a mask without one."""
    if not region:
        return region
    total: Region | None = NOWHERE
    for alternative in region:
        each: Region | None = None
        for mask in alternative:
            each = regions.both(each, meaning(mask))
        total = regions.either(total, each)
    return total


def _after(region: Region | None, mask: Mask) -> Region | None:
    """A region, moved as a mask was inside; everywhere, if that takes values of the inside, as indices are."""
    if any(type(x) is Var for move in mask.moves for x in move.others):
        return None
    return regions.moved(region, lambda outer: outer._replace(moves=(*outer.moves, *mask.moves)))


def _operand(sinking: Sinking, given: Mapping[Atom, Atom], mask: Mask) -> Region | None:
    """Translate a mask of a body to the caller, if it is an input of the body: one of the operands `given`."""
    x = given.get(mask.which)
    return _meaning(sinking, Mask(x, mask.case, mask.cases)) if type(x) is Var else None


def _meaning(sinking: Sinking, mask: Mask) -> Region:
    """Translate a mask whose predicate is an operand: its case, or the region the operand was materialised from."""
    region = sinking.coefficients.region_of(mask.which) if mask.case else None
    return region or regions.of(mask)


def _new(sinking: Sinking, places: Sequence[int | None], out: Out) -> list[Atom]:
    return [sinking.coefficients.array(region) for place, region in zip(places, out) if place == NEW and region]


# ---- calls and branches --------------------------------------------------------------------------------------


def _call(sinking: Sinking, eqn: Equation, out: Out) -> Found:
    programs, (where,) = _alike(sinking, [eqn.params["jaxpr"]], eqn.invars, out)
    if programs is None:
        return eqn, where
    (jaxpr,), operands = programs
    return eqn.replace(params={**eqn.params, "jaxpr": jaxpr}, invars=operands), where


def _cond(sinking: Sinking, eqn: Equation, out: Out) -> Found:
    """Sink masks into branches: an operand is read where a branch reads it and the branch is taken."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    programs, of_branches = _alike(sinking, branches, operands, out)
    taken = [Mask(index, k, len(branches)) for k in range(len(branches))]
    where = [_by_branch(taken, regions_, x.aval.shape) for x, regions_ in zip(operands, zip(*of_branches))]
    if programs is None:
        return eqn, [None, *where]
    jaxprs, operands = programs
    return eqn.replace(params={"branches": tuple(jaxprs)}, invars=[index, *operands]), [None, *where]


def _reads_apart(eqn: Equation) -> bool:
    """Tell whether some branch reads a linear operand, and another does not."""
    used = [(branch.invars, passes.used_variables(branch)) for branch in eqn.params["branches"]]
    return len({tuple([v in read for v in invars if v.linear]) for invars, read in used}) > 1


def _by_branch(taken: Sequence[Mask], found: Sequence[Region | None], shape: tuple[int, ...]) -> Region | None:
    if all(region is None for region in found):
        return None
    total: Region | None = NOWHERE
    for mask, region in zip(taken, found):
        here = mask.moved(broadcast_in_dim_p, shape=shape, dims=()) if shape else mask
        total = regions.either(total, regions.both(regions.of(here), region))
    return total


def _alike(sinking: Sinking, programs: Sequence[Jaxpr], operands: Sequence[Atom], out: Out) -> tuple[Any, Any]:
    """Programs of the same operands with masks inside, and all operands; where the old operands matter to each."""
    places = tuple([_place(programs, i, operands, region) for i, region in enumerate(out)])
    out = _narrowed(sinking, places, operands, out)
    finite = tuple(map(sinking.is_finite, operands))
    found = [_within(jaxpr, places, finite) for jaxpr in programs]
    where = [_where_of_call(sinking, w, out, dict(zip(jaxpr.invars, operands))) for jaxpr, w in zip(programs, found)]
    given = _given(sinking, places, operands, out)
    if not any(within.changed for within in found):
        return (None if given == list(operands) else (programs, given)), where
    n = places.count(NEW)
    return ([_taking(within, n) for within in found], [*_new(sinking, places, out), *given]), where


def _where_of_call(sinking: Sinking, within: Within, out: Out, given: Mapping[Atom, Atom]) -> list[Region | None]:
    table: dict[Atom, Region | None] = {t: region for t, region in zip(within.truths, out) if t is not None}

    def meaning(mask: Mask) -> Region | None:
        if mask.which in table:
            return _after(table[mask.which], mask)
        return _after(_operand(sinking, given, mask), mask)

    return [_outside(region, meaning) for region in within.where]


def _taking(within: Within, n: int) -> Jaxpr:
    """A program that takes the masks, even if it does nothing with them."""
    if within.changed:
        return within.program
    unused = [t.aval for t in within.truths if t is not None and t not in within.program.invars]
    jaxpr = within.program
    return passes.rearranged(jaxpr, [*unused, *range(len(jaxpr.invars))], range(len(jaxpr.outvars)))


# ---- loops ---------------------------------------------------------------------------------------------------


def _scan(sinking: Sinking, eqn: Equation, out: Out) -> Found:
    """The mask of a carry is one of every step, if the step before matters nowhere else.

    That is tried with its own mask first, then with one of all results of its shape, as carries may feed each other.
    """
    jaxpr, n_consts, n_carry = [eqn.params[name] for name in ("jaxpr", "n_consts", "n_carry")]
    carry = range(n_consts, n_consts + n_carry)
    finite = tuple([i not in carry and sinking.is_finite(x) for i, x in enumerate(eqn.invars)])
    joint: set[int] = set()
    while True:
        places = [_place([jaxpr], i, eqn.invars, region) for i, region in enumerate(out)]
        within = _within(jaxpr, tuple(places), finite)
        beyond = [i for i in range(n_carry) if out[i] is not None and not _stays(within, jaxpr, n_consts, i, joint)]
        if not beyond:
            break
        before, out = out, list(out)
        for i in beyond:
            out[i] = None if i in joint else _joint(jaxpr, n_carry, i, before)
        joint.update(beyond)
    out = _narrowed(sinking, places, eqn.invars, out)
    where = _where_of_scan(sinking, eqn, within, out)
    given = eqn.replace(invars=_given(sinking, places, eqn.invars, out))
    if not within.changed:
        return eqn if given.invars == eqn.invars else given, where
    return _scan_with(sinking, given, within, places, out), where


def _stays(within: Within, jaxpr: Jaxpr, n_consts: int, i: int, joint: Container[int]) -> bool:
    """Check the loop invariant: the region demanded of carry i at entry is within the mask assumed at exit."""
    region = within.where[n_consts + i]
    truths = [within.truths[j] for j in (_alike_in_shape(jaxpr, i) if i in joint else [i])]
    return region is not None and all(any(m.which in truths and not m.moves for m in a) for a in region)


def _alike_in_shape(jaxpr: Jaxpr, i: int) -> list[int]:
    """The results of the shape of result i."""
    return [j for j, v in enumerate(jaxpr.outvars) if v.aval.shape == jaxpr.outvars[i].aval.shape]


def _joint(jaxpr: Jaxpr, n_carry: int, i: int, out: Out) -> Region | None:
    """Join the regions where carry i, or another result of its shape, is read in any step."""
    total: Region | None = NOWHERE
    for j in _alike_in_shape(jaxpr, i):
        every = out[j] if j < n_carry else regions.moved(out[j], lambda m: m.moved(reduce_or_p, axes=(0,)))
        total = regions.either(total, every)
    return total


def _where_of_scan(sinking: Sinking, eqn: Equation, within: Within, out: Out) -> list[Region | None]:
    n_consts, n_carry, length = [eqn.params[name] for name in ("n_consts", "n_carry", "length")]
    n, inputs = n_consts + n_carry, eqn.params["jaxpr"].invars
    constant: dict[Atom, Region | None] = {t: r for t, r in zip(within.truths[:n_carry], out) if t is not None}
    stacked: dict[Atom, Region | None] = {t: r for t, r in zip(within.truths[n_carry:], out[n_carry:]) if t is not None}
    shared, elements = dict(zip(inputs[:n_consts], eqn.invars)), dict(zip(inputs[n:], eqn.invars[n:]))

    def of_all(mask: Mask) -> Region | None:
        """A mask that is the same in every step."""
        if mask.which in constant:
            return constant[mask.which]
        return _operand(sinking, shared, mask)

    def of_each(mask: Mask) -> Region | None:
        """A mask of which every step has its own, all of them."""
        if mask.which in stacked:
            return stacked[mask.which]
        return _operand(sinking, elements, mask)

    def once(mask: Mask) -> Region | None:
        any_step = regions.moved(of_each(mask), lambda m: m.moved(reduce_or_p, axes=(0,)))
        return _after(of_all(mask) or any_step, mask)

    def repeated(shape: tuple[int, ...]) -> Callable[[Mask], Region | None]:
        def of_step(mask: Mask) -> Region | None:
            if (each := of_each(mask)) is not None:
                return None if mask.moves else each
            repeat = {"shape": (length, *shape), "dims": tuple(range(1, len(shape) + 1))}
            return regions.moved(_after(of_all(mask), mask), lambda m: m.moved(broadcast_in_dim_p, **repeat))

        return of_step

    # What a loop without steps returns is the carry that it was given, wherever a step would have read it.
    first = [_outside(r, once) for r in within.where[:n]] if length else [None] * n
    return [*first, *[_outside(r, repeated(v.aval.shape[1:])) for r, v in zip(within.where[n:], eqn.invars[n:])]]


def _scan_with(sinking: Sinking, eqn: Equation, within: Within, places: Sequence[int | None], out: Out) -> Equation:
    """The loop with new operands: masks of the carry, which are constant, and of the stacked results."""
    n_carry = eqn.params["n_carry"]
    new = _new(sinking, places, out)
    k, n = sum(place == NEW for place in places[:n_carry]), len(new)
    ins = [*range(k), *range(n, n + len(eqn.invars)), *range(k, n)]
    jaxpr = passes.rearranged(within.program, ins, range(len(within.program.outvars)))
    params = {**eqn.params, "jaxpr": jaxpr, "n_consts": eqn.params["n_consts"] + k}
    return eqn.replace(params=params, invars=[*new[:k], *eqn.invars, *new[k:]])


analysis.inside[jit_p] = analysis.inside[checkpoint_p] = _call
analysis.inside[cond_p] = _cond
analysis.choosing[cond_p] = _reads_apart
analysis.inside[scan_p] = _scan

_programs = core.program_cache()
_truth_of: MutableMapping[Var, int] = weakref.WeakKeyDictionary()
