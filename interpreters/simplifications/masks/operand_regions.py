"""Regions of operands: where an operand is read, given where the results are read, by the index row of the primitive.

Search terms: backward data flow, preimage of an access, demand analysis. An index row says which elements of an operand
each element of a result depends on, whatever the function: swapping the accesses of result and operand gives a term
through which a mask of the result becomes one of the operand. Each case of a select adds a mask of its own. Positions
that data determine have rules in `undone`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from math import prod

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import Combination, index_row
from tapeless.interpreters.simplifications.masks import regions
from tapeless.interpreters.simplifications.masks.mask import Mask, larger
from tapeless.interpreters.simplifications.masks.mask_arrays import MaskWriter
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Alternative, Region
from tapeless.interpreters.writer import fill_array
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.dimension_numbers import reading_again
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Access
from tapeless.tracer.terms.map import Map, Shape
from tapeless.tracer.terms.term import Lookup, Read, Sum, Term, indices_of, is_case, term, variables_in

# Limit on the accesses of one operand: with more, as the padding number of a pad has, it counts as read everywhere.

undone: Table[Callable[[MaskWriter, Equation, int, Atom], Atom]] = Table(
    "masks undone",
    "rule(writer, eqn, k, mask of its result) -> the mask of operand k, where data say what is read or written",
    absent="its index row says it; what only data say is left out, and its operands matter everywhere along such axes",
)


def region_of_operand(w: MaskWriter, eqn: Equation, out: Sequence[Region | None], k: int) -> Region | None:
    """Compute the region where operand k of an equation is read, given the regions of its results; None: everywhere."""
    if None in out and not any(out) and eqn.primitive is not select_n_p:  # the usual case; only a select adds masks
        return None
    row = index_row(eqn)
    if row is None:
        return None
    is_core = row.combination is Combination.CORE
    shape = eqn.invars[k].aval.shape
    found = [_of_result(w, eqn, region, k, _readings(terms, k, is_core, v.aval.shape, shape))
             for v, region, terms in zip(eqn.outvars, out, row.results, strict=True)]  # fmt: skip
    if len(found) > 1:
        wide = {regions.move_masks(region, lambda mask: w.origin(mask).along_whole_axes()) for region in found} - {
            NOWHERE
        }
        if len(wide) == 1:
            return wide.pop()
    return reduce(regions.either, found)


def _of_result(
    w: MaskWriter, eqn: Equation, region: Region | None, k: int, readings: Sequence[Map | None]
) -> Region | None:
    """Compute the region where operand k is read for a result, by all maps to it."""
    total: Region | None = NOWHERE
    if region == NOWHERE:
        return total
    for reading in (None,) if limits.READINGS.is_passed(len(readings)) else readings:
        total = regions.either(total, reading and _through(w, eqn, region, k, reading))
    return total


@lru_cache(maxsize=4096)
def _readings(terms: Sum, k: int, is_core: bool, of: Shape, shape: Shape) -> tuple[Map | None, ...]:
    """List the distinct maps from a result of shape `of` to what it reads of an operand; None if it reads whole axes.

    Brackets are those of the row: they look up operands of the equation, as symbols do.
    """

    def reading(t: Term, access: Access) -> Map | None:
        is_whole = is_core and variables_in(t.out).isdisjoint(variables_in(access))
        return None if is_whole else Map(term(access, t.sizes, [Read(0, t.out)], t.brackets), of, shape)

    found = [reading(t, f.access) for t in terms if 0 not in t.sizes for f in t.factors if f.operand == k]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def _cases(t: Term) -> tuple[tuple[Lookup, int], ...]:
    """List the brackets that are cases of a select, and how many cases this has."""
    return tuple([(b, b.limits[1] + 1) for b in t.brackets if is_case(b) and b.limits is not None])


@lru_cache(maxsize=4096)
def _is_by_data(t: Term) -> bool:
    """Tell whether symbols or lookups determine positions."""
    lookups = [b for b in t.brackets if isinstance(b, Lookup)]
    return len(lookups) > len(_cases(t)) or any(a.symbols for a in (*t.out, *t.factors[0].access))


@lru_cache(maxsize=4096)
def _without_data(m: Map, access: Access, of: Shape) -> Map:
    """Read an array of shape `of` at an access instead, without the brackets that data decide."""
    t = m.term
    known = [b for b in t.brackets if not isinstance(b, Lookup) and not any(a.symbols for a in indices_of(b))]
    return Map(term(t.out, t.sizes, [Read(0, access)], known), of, m.shape)


def _through(w: MaskWriter, eqn: Equation, region: Region | None, k: int, reading: Map) -> Region | None:
    """Move a region of a result to operand k by one map, and intersect it with the masks of selected cases.

    Masks of the result's shape are moved with its region, so that they are reduced together."""
    reader, others = _without_data(reading, reading.access, reading.of), list[tuple[Mask, Map]]()
    for b, n in _cases(reading.term):
        which = eqn.invars[b.operand]
        chosen, of_which = Mask(which, b.index.constant, n), _without_data(reading, b.access, which.aval.shape)
        if of_which.term is reader.term:
            region = regions.both(region, regions.of(chosen))
        else:
            others.append((chosen, of_which))
    is_at_place = reader.of == reader.shape and reader.term.out == reader.access and not reader.term.brackets
    if region is not None and (not is_at_place or _is_by_data(reading.term)):
        move = partial(_moved, w, eqn, k, reading)
        region = regions.move_masks(_jointly(w, region, move), move)
    for mask, of_which in others:
        found = mask.read(of_which)
        region = region if found is None else regions.both(region, regions.of(found))
    return region


def _jointly(w: MaskWriter, region: Region, move: Callable[[Mask], Mask | None]) -> Region:
    """Write masks of an alternative that a move reduces as one: where both hold somewhere, they need not hold together.

    Only where that takes no larger array than they are made of: if these have one shape and are moved in the same way,
    or one is as large as the result.
    """

    def is_reduced(mask: Mask) -> bool:
        moved = move(mask)
        return moved is not None and moved.is_reduced

    def joint(alternative: Alternative) -> Alternative:
        reduced = [m for m in alternative if is_reduced(m)] if len(alternative) > 1 else []
        if len(reduced) < 2:
            return alternative
        origins = {m: w.origin(m) for m in reduced}
        is_large = any(prod(o.which.aval.shape) == prod(o.shape) for o in origins.values())
        groups: dict[object, list[Mask]] = {}
        for o in origins.values():
            groups.setdefault(is_large or (o.which.aval.shape, o.views), []).append(o)
        others = [m for m in alternative if m not in reduced]
        return (*others, *[w.conjunction(masks) for masks in groups.values()])

    return tuple(map(joint, region))


def _moved(w: MaskWriter, eqn: Equation, k: int, reading: Map, mask: Mask) -> Mask | None:
    """Move a mask of a result to an operand; None if it may hold everywhere, as a random mask that is reduced."""
    if eqn.primitive in undone and _is_by_data(reading.term):
        return Mask(undone[eqn.primitive](w, eqn, k, w.truth(mask)), 1, 2)
    reader = _without_data(reading, reading.access, reading.of)
    found = mask.read(reader)
    if found is not None:
        return None if found.is_reduced and mask.which in w.random else found
    # A larger mask is used if it takes no reduction, such as a mask of the examples of a batch.
    wide = larger(reader)
    found = wide and w.origin(mask).read(wide)
    return None if found is None or found.is_reduced else found


# ---- positions that data determine -----------------------------------------------------------------------------
# The term of a window at computed positions has a symbol or a lookup, which a mask cannot be read through. These rules
# move masks by the opposite operation at the same positions: reads where the primitive writes, writes where it reads.


def _dynamic_slice(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    x, *starts = eqn.invars
    return w.write(i.dynamic_update_slice_p, fill_array(w, False, mask.aval.update(shape=x.aval.shape)), mask, *starts)


def _dynamic_update_slice(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    _, update, *starts = eqn.invars
    return w.write(i.dynamic_slice_p, mask, *starts, slice_sizes=update.aval.shape)


def _gather(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    """Scatter-add the mask as counts: an element is read if any window that has it is."""
    how = {name: value for name, value in eqn.params.items() if name not in ("slice_sizes", "fill_value")}
    how["dimension_numbers"] = i.ScatterDimensionNumbers(*how["dimension_numbers"])
    ones = w.counts(mask)
    none = fill_array(w, 0, ones.aval.update(shape=eqn.invars[0].aval.shape))
    return w.are_counted(w.write(i.scatter_add_p, none, eqn.invars[1], ones, **how))


def _scatter(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    operand, indices, updates = eqn.invars
    return w.write(i.gather_p, mask, indices, **reading_again(eqn.params, operand.aval, updates.aval, False))


undone[i.dynamic_slice_p], undone[i.dynamic_update_slice_p] = _dynamic_slice, _dynamic_update_slice
undone[i.gather_p] = _gather
undone[i.scatter_p] = undone[i.scatter_add_p] = _scatter
