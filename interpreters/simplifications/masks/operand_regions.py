"""Regions of operands: where an operand is read, given where the results are read, by the index row of the primitive.

Search terms: backward data flow, preimage of an access, demand analysis. An index row says which elements of an operand
each element of a result depends on, whatever the function: swapping the accesses of result and operand gives a term
through which a mask of the result becomes one of the operand. Each case of a select adds a mask of its own. Positions
that data determine have rules in `undone`.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from math import prod
from typing import NamedTuple

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import Combination, index_row
from tapeless.interpreters.simplifications.masks import regions
from tapeless.interpreters.simplifications.masks.mask import Mask, larger
from tapeless.interpreters.simplifications.masks.mask_arrays import MaskWriter
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Alternative, Region
from tapeless.interpreters.writer import filled
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.dimension_numbers import reading_again
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Access
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
    found = [_of_result(w, eqn, n, region, k, _readings(terms, k, is_core))
             for n, (region, terms) in enumerate(zip(out, row.results, strict=True))]  # fmt: skip
    if len(found) > 1:
        wide = {regions.moved(region, lambda mask: w.origin(mask).along_whole_axes()) for region in found} - {NOWHERE}
        if len(wide) == 1:
            return wide.pop()
    return reduce(regions.either, found)


def _of_result(
    w: MaskWriter, eqn: Equation, n: int, region: Region | None, k: int, readings: "Sequence[_Reading | None]"
) -> Region | None:
    """Compute the region where operand k is read for result n, by all accesses of it."""
    total: Region | None = NOWHERE
    if region == NOWHERE:
        return total
    for reading in (None,) if limits.READINGS.is_passed(len(readings)) else readings:
        total = regions.either(total, reading and _through(w, eqn, n, region, k, reading))
    return total


class _Reading(NamedTuple):
    """An access of an operand, as a term that reads the result and writes the operand elements that it depends on.

    choices: for each bracket that is a case of a select, the operand that selects, the case, the number of cases, and a
    term that reads that operand. by_data: symbols or lookups determine positions. is_at_place: the term is an identity.
    """

    reader: Term
    choices: tuple[tuple[int, int, int, Term], ...]
    by_data: bool
    is_at_place: bool


@lru_cache(maxsize=4096)
def _readings(terms: Sum, k: int, is_core: bool) -> tuple[_Reading | None, ...]:
    """List the distinct accesses of an operand; None for one that reads whole axes only."""
    found = [_reading(t, f, is_core) for t in terms if 0 not in t.sizes for f in t.factors if f.operand == k]
    return tuple(dict.fromkeys(found))


def _reading(t: Term, f: Read, is_core: bool) -> _Reading | None:
    of_result, of_operand = [variables_in(access) for access in (t.out, f.access)]
    if is_core and of_result.isdisjoint(of_operand):
        return None
    cases = [b for b in t.brackets if is_case(b) and b.limits is not None]
    others = [b for b in t.brackets if b not in cases]
    known = [b for b in others if not isinstance(b, Lookup) and not any(a.symbols for a in indices_of(b))]
    by_data = any(isinstance(b, Lookup) for b in others) or any(a.symbols for a in (*t.out, *f.access))

    def reading(access: Access) -> Term:
        return term(f.access, t.sizes, [Read(0, access)], known)

    choices = [(b.operand, b.index.constant, b.limits[1] + 1, reading(b.access)) for b in cases if b.limits]
    return _Reading(reading(t.out), tuple(choices), by_data, t.out == f.access and not known and not by_data)


def _through(w: MaskWriter, eqn: Equation, n: int, region: Region | None, k: int, reading: _Reading) -> Region | None:
    """Move a region of result n to operand k by one access, and intersect it with the masks of selected cases.

    Masks of the result's shape are moved with its region, so that they are reduced together."""
    shape = eqn.invars[k].aval.shape
    choices = [(Mask(eqn.invars[operand], case, cases), reader) for operand, case, cases, reader in reading.choices]
    for chosen, reader in choices:
        region = regions.both(region, regions.of(chosen)) if reader == reading.reader else region
    if region is not None and not (reading.is_at_place and shape == eqn.outvars[n].aval.shape):
        region = regions.moved(_jointly(w, eqn, region, k, reading), lambda mask: _moved(w, eqn, mask, k, reading))
    for mask, reader in choices:
        chosen = None if reader == reading.reader else mask.read(reader, shape)
        region = region if chosen is None else regions.both(region, regions.of(chosen))
    return region


def _jointly(w: MaskWriter, eqn: Equation, region: Region | None, k: int, reading: _Reading) -> Region | None:
    """Write masks of an alternative that a move reduces as one: where both hold somewhere, they need not hold together.

    Only where that takes no larger array than they are made of: if these have one shape and are moved in the same way,
    or one is as large as the result.
    """

    def is_reduced(mask: Mask) -> bool:
        moved = _moved(w, eqn, mask, k, reading)
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

    return region and tuple(map(joint, region))


def _moved(w: MaskWriter, eqn: Equation, mask: Mask, k: int, reading: _Reading) -> Mask | None:
    """Move a mask of a result to an operand; None if it may hold everywhere."""
    if reading.by_data and eqn.primitive in undone:
        return Mask(undone[eqn.primitive](w, eqn, k, w.truth(mask)), 1, 2)
    shape = eqn.invars[k].aval.shape
    found = mask.read(reading.reader, shape)
    if found is not None:
        return found
    # A larger mask is used if it takes no reduction, such as a mask of the examples of a batch.
    wide = larger(reading.reader, mask.shape, shape)
    found = wide and w.origin(mask).read(wide, shape)
    return None if found is None or found.is_reduced else found


# ---- positions that data determine -----------------------------------------------------------------------------
# The term of a window at computed positions has a symbol or a lookup, which a mask cannot be read through. These rules
# move masks by the opposite operation at the same positions: reads where the primitive writes, writes where it reads.


def _dynamic_slice(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    x, *starts = eqn.invars
    return w.write(i.dynamic_update_slice_p, filled(w, False, mask.aval.update(shape=x.aval.shape)), mask, *starts)


def _dynamic_update_slice(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    _, update, *starts = eqn.invars
    return w.write(i.dynamic_slice_p, mask, *starts, slice_sizes=update.aval.shape)


def _gather(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    """Scatter-add the mask as counts: an element is read if any window that has it is."""
    how = {name: value for name, value in eqn.params.items() if name not in ("slice_sizes", "fill_value")}
    how["dimension_numbers"] = i.ScatterDimensionNumbers(*how["dimension_numbers"])
    ones = w.counts(mask)
    none = filled(w, 0, ones.aval.update(shape=eqn.invars[0].aval.shape))
    return w.are_counted(w.write(i.scatter_add_p, none, eqn.invars[1], ones, **how))


def _scatter(w: MaskWriter, eqn: Equation, k: int, mask: Atom) -> Atom:
    operand, indices, updates = eqn.invars
    return w.write(i.gather_p, mask, indices, **reading_again(eqn.params, operand.aval, updates.aval, False))


undone[i.dynamic_slice_p], undone[i.dynamic_update_slice_p] = _dynamic_slice, _dynamic_update_slice
undone[i.gather_p] = _gather
undone[i.scatter_p] = undone[i.scatter_add_p] = _scatter
