"""Reads and writes at affine positions, and choices by an index, as slices, reverses, pads and parts side by side.

Search terms: gather to slice, scatter to pad, strided access, index set splitting, loop unswitching. The row of a
gather, a scatter or a choice looks positions up; where these are affine in pieces, each piece is a term without
lookups, and terms that tile the result are joined. Left alone: pieces that are no boxes, windows that overlap, and what
would move or add more elements than before. A sum of one number is that number: it is not added to 0, which would
change the sign of -0.0.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.simplifications.constants import is_zero, number
from tapeless.interpreters.simplifications.fusion.affine_values import UNKNOWN, Piece, Pieces, Values, at_access, bounds
from tapeless.interpreters.simplifications.fusion.licence import summed, sums_in_any_order
from tapeless.interpreters.simplifications.fusion.lower_terms import lowered
from tapeless.interpreters.simplifications.fusion.plan import Plan, planned
from tapeless.interpreters.simplifications.fusion.statements import inlined, statement
from tapeless.interpreters.simplifications.fusion.tiles import (
    Box,
    additions,
    cells,
    fills_box,
    size_of,
    tiling,
    written_box,
)
from tapeless.interpreters.simplify import Simplification, Writer, filled, rules
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Var
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.ein import ein_p, reduced
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.shape import concatenate_p, pad_p
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.solve import solved
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Sum, Term, is_case, term
from tapeless.tracer.types import ShapedArray

TERMS = 8  # of one result: what has more is left alone
MOST = 2  # elements that are moved or added for each that was

_known: "WeakKeyDictionary[Writer, dict[Var, Pieces]]" = WeakKeyDictionary()


# ---- rules ---------------------------------------------------------------------------------------------------


def parts_of_cases(w: Writer, aval: ShapedArray, which: Atom, cases: Sequence[Atom]) -> Atom | None:
    """Parts of cases side by side, if which case it is is known of boxes of indices; around zeros are nothing.

    Indices stay a choice: what reads or writes there has them in pieces. So do choices in programs with tangents, but
    for one of the same case everywhere: masks are sunk, and a slice is none.
    """
    if any(w.jaxpr.linear_in) and len(_pieces(w, which)) > 1:
        return None
    if dtypes.is_integer(aval.dtype) and UNKNOWN not in [_pieces(w, x) for x in cases]:
        return None
    found = _parts(w, select_n_p, (which, *cases), {}, 0, aval)
    return None if found is None or found.additions else found.written(w, aval)


def _gather(w: Writer, x: Atom, indices: Atom, **params: Any) -> Atom | None:
    """Parts of the operand side by side."""
    if params["mode"] is i.GatherScatterMode.PROMISE_IN_BOUNDS:
        params["mode"] = i.GatherScatterMode.CLIP  # as it is lowered
    fill = params["fill_value"]
    if fill is not None and not fill and any(np.asarray(fill).tobytes()):
        return None  # -0.0, which what nobody writes is not
    (aval,) = i.gather_p.type((x.aval, indices.aval), params)
    found = _parts(w, i.gather_p, (x, indices), params, 1, aval)
    if found is None or found.additions or found.moved > MOST * aval.size:
        return None
    return found.written(w, aval)


def _scatter(primitive: Primitive, w: Writer, x: Atom, indices: Atom, updates: Atom, **params: Any) -> Atom | None:
    """Padded updates, added to the operand where this is not known to be 0, or beside what is left of it.

    What is not added is at a place of its own.
    """
    found, adds = _parts(w, primitive, (x, indices, updates), params, 1, x.aval), primitive is i.scatter_add_p
    sums = adds and sums_in_any_order(x.aval.dtype)
    if found is None or (any(map(summed, found.terms)) and not sums):
        return None
    if any(_reads(t, 0) for t in found.terms):
        boxes = [box for t, box in zip(found.terms, found.boxes) if not _reads(t, 0)]
        found = _around_updates(w, found, x, lambda box: adds or not any(_meet(box, other) for other in boxes))
        if found is None or found.size > MOST * updates.aval.size:
            return None
    return found.written(w, x.aval) if adds or not found.additions else None


def _ein(w: Writer, *operands: Atom, **params: Any) -> Atom | None:
    """The sum without lookups of positions that are affine: what a loop over indices reads at its index."""
    before, avals = list[Term](params["terms"]), tuple([x.aval for x in operands])
    looked_up = {b.operand for t in before for b in t.brackets if isinstance(b, Lookup) and not is_case(b)}
    found = before
    for k in sorted(looked_up):
        pieces = _pieces(w, operands[k])
        if pieces is not UNKNOWN:
            after = [each for t in found for each in without_lookups(t, k, pieces, avals[k].shape)]
            if None not in after and len(after) <= TERMS:
                found = [t for t in after if t is not None]
    if found == before:
        return None
    (aval,) = ein_p.type(avals, params)
    left = reduced(found, avals, aval.shape, aval.dtype)
    if not left.terms:
        return filled(w, 0, aval)
    params = left.params(aval.shape, aval.dtype, params["precision"])
    return w.write(ein_p, *[operands[k] for k in left.operands], **params)


rules[ein_p] = Simplification(_ein)
rules[i.gather_p] = Simplification(_gather)
for _primitive in (i.scatter_p, i.scatter_add_p):
    rules[_primitive] = Simplification(partial(_scatter, _primitive))

# ---- terms ---------------------------------------------------------------------------------------------------


class _PlannedSum(NamedTuple):
    """A sum of terms without lookups over numbered atoms, and the plan of each term."""

    terms: Sum
    atoms: list[Atom]
    plans: list[Plan]

    @property
    def boxes(self) -> list[Box]:
        """The boxes that terms write into."""
        return [written_box(p.out) for p in self.plans]

    @property
    def size(self) -> int:
        """Count the elements of the box around all that is written."""
        return size_of(tiling(self.boxes).box) if self.plans else 0

    @property
    def additions(self) -> int:
        """Count the elements that are added to others."""
        return additions(tiling(self.boxes)) if self.plans else 0

    @property
    def moved(self) -> int:
        """Count the elements that are moved to be read."""
        return sum([_moved(p) for p in self.plans if p.factors])

    def written(self, w: Writer, aval: ShapedArray) -> Atom | None:
        """Write the sum."""
        return lowered(w, self.terms, self.atoms.__getitem__, aval, None)


def _parts(
    w: Writer, primitive: Primitive, operands: Sequence[Atom], params: Any, positions: int, aval: ShapedArray
) -> _PlannedSum | None:
    """Express a primitive without the lookups in operand number `positions`; None if there is no plan for that."""
    if any(dtypes.is_key(x.aval.dtype) or 0 in x.aval.shape for x in operands):
        return None
    pieces = _pieces(w, operands[positions])
    if pieces is UNKNOWN:
        return None
    row, found = rows[primitive](params, [x.aval for x in operands]), list[Term]()
    for t in row.results[0]:
        if t.factors and t.factors[0].operand < 2 and _is_left_out(w, operands[t.factors[0].operand]):
            continue
        if not t.factors:
            t = term(t.out, t.sizes, (), t.brackets, np.asarray(t.coefficient).astype(aval.dtype).item())
        for after in without_lookups(t, positions, pieces, operands[positions].aval.shape):
            if after is None or len(found) == TERMS:
                return None
            found.append(after)
    return _planned(found, list(operands), aval)


def _pieces(w: Writer, x: Atom) -> Pieces:
    return Values(w.definition, _known.setdefault(w, {})).pieces(x)


def _is_left_out(w: Writer, x: Atom) -> bool:
    """Tell whether a value is 0; -0.0 counts in linear programs only."""
    return is_zero(w, x) if w.linear else (n := number(w, x)) is not None and not any(n.tobytes())


def _planned(terms: Sequence[Term], atoms: list[Atom], aval: ShapedArray) -> _PlannedSum | None:
    """Terms with their plans; None if one has none, or needs more than views."""
    plans = [planned(t, tuple([atoms[f.operand].aval.shape for f in t.factors]), aval.shape) for t in terms]
    if any(p is None or not p.uses_views_only for p in plans):
        return None
    return _PlannedSum(tuple(terms), atoms, [p for p in plans if p is not None])


def without_lookups(t: Term, operand: int, pieces: Pieces, shape: tuple[int, ...]) -> Iterator[Term | None]:
    """The terms that a term is with pieces in the place of positions; None for one that is not known."""
    at = next((k for k, b in enumerate(t.brackets) if isinstance(b, Lookup) and b.operand == operand), None)
    if at is None:
        yield t
        return
    lookup, others = t.brackets[at], (*t.brackets[:at], *t.brackets[at + 1 :])
    assert isinstance(lookup, Lookup)
    for piece in [q for p in pieces for q in _clipped(p, lookup.limits, shape)]:
        p = at_access(piece, lookup.access)
        same = () if p.value is None else (IsZero(lookup.index - p.value),)
        after = solved(t.with_brackets((*others, *p.brackets, *same)))
        if after is not None:
            yield from [None] if p.value is None else without_lookups(after, operand, pieces, shape)


def _clipped(p: Piece, limits: tuple[int, int] | None, shape: tuple[int, ...]) -> Iterator[Piece]:
    """A piece with what is beyond limits moved to them."""
    ends = bounds(p, shape)
    if limits is None or p.value is None or ends is None:
        yield p
        return
    low, high = limits
    yield p.where(NotNegative(p.value - low), NotNegative(high - p.value))
    if ends[0] < low:
        yield Piece(Affine(low), (*p.brackets, NotNegative(low - 1 - p.value)))
    if ends[1] > high:
        yield Piece(Affine(high), (*p.brackets, NotNegative(p.value - high - 1)))


def _moved(plan: Plan) -> int:
    """Count the elements between the first and last that a factor is read at; of a whole diagonal only its own."""
    (axes,) = plan.factors
    digits = [d for a in axes for d in a.digits]
    own = [d.variable for d in digits]
    apart = any(a.variable == b.variable for a, b in zip(digits, digits[2:]))
    whole = all(a.length == a.size for a in axes if any(own.count(d.variable) > 1 for d in a.digits))
    if len(set(own)) < len(own) and whole and not apart and len(digits) == len(axes):
        return prod([plan.sizes[v] for v in set(own)])
    return prod([d.radix for d in digits])


# ---- updates -------------------------------------------------------------------------------------------------


def _around_updates(w: Writer, parts: _PlannedSum, x: Atom, is_kept: Callable[[Box], bool]) -> _PlannedSum | None:
    """Cut the operand of a scatter where updates begin and end: where there is none, it is not added to 0 either.

    Args:
      is_kept: tells whether the operand is read in a box that has updates everywhere, or nowhere.
    """
    updates = [(t, p) for t, p in zip(parts.terms, parts.plans) if not _reads(t, 0)]
    if not all(fills_box(p.out, p.sizes) for _, p in updates):
        return None
    atoms, kept = list(parts.atoms), [t for t in parts.terms if _reads(t, 0)]
    eqn = w.definition(x)
    if eqn is not None and eqn.primitive in (pad_p, concatenate_p):
        kept = _without_zeros(w, kept, eqn, atoms)
    boxes = [box for t, box in zip(parts.terms, parts.boxes) if not _reads(t, 0)]
    read = [box for box in cells(boxes, x.aval.shape) if is_kept(box)]
    cut = [after for t in kept for box in read if (after := _inside(t, box)) is not None]
    found = [*cut, *[t for t, _ in updates]]
    return _planned(found, atoms, x.aval) if len(found) <= TERMS else None


def _meet(box: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(box, other))


def _reads(t: Term, operand: int) -> bool:
    return any(f.operand == operand for f in t.factors)


def _without_zeros(w: Writer, terms: Sequence[Term], eqn: Equation, atoms: list[Atom]) -> Sequence[Term]:
    """Terms that read operand 0 with the parts of that in its place, but for zeros."""

    def numbered(part: Atom) -> int:
        atoms.append(part)
        return len(atoms) - 1

    joined = statement(eqn, w.definition, numbered)
    found = None if joined is None else inlined(tuple(terms), 0, joined.terms, TERMS)
    return terms if found is None else found


def _inside(t: Term, box: Box) -> Term | None:
    """A term where it writes into a box; None if it does not."""
    bounds = [b for a, (low, high) in zip(t.out, box) for b in (NotNegative(a - low), NotNegative(high - 1 - a))]
    return solved(t.with_brackets((*t.brackets, *bounds)))
