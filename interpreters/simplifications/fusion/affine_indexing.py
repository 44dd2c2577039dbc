"""Rewrite gathers, scatters and selects at piecewise affine positions as slices, reverses, pads and concatenations.

Search terms: gather to slice, scatter to pad, strided access, index set splitting, loop unswitching. The index row of a
gather, a scatter or a select looks positions up; where these are affine in pieces, each piece is a term without
lookups, and terms that tile the result are concatenated. Left alone: pieces other than boxes, overlapping windows, and
rewrites that would move or add more elements than before. A sum of one number is that number: it is not added to 0,
which would change the sign of -0.0. A row of rewrites.py names `parts_of_cases`; the rules of gather and scatter are
registered here.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.simplifications.constant_values import is_zero, number
from tapeless.interpreters.simplifications.fusion.affine_values import UNKNOWN, Piece, Pieces, Values, at_access, bounds
from tapeless.interpreters.simplifications.fusion.licence import find_summed, sums_in_any_order
from tapeless.interpreters.simplifications.fusion.statements import statement
from tapeless.interpreters.terms.compose import Composer
from tapeless.interpreters.terms.lower_terms import lower_sum
from tapeless.interpreters.terms.plan import Plan, plan_term
from tapeless.interpreters.terms.tiles import (
    Box,
    additions,
    cells,
    fills_box,
    size_of,
    tiling,
    written_box,
)
from tapeless.interpreters.writer import Simplification, Writer, fill_array, rules
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Var
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.ein import ein_p, reduce_terms
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.shape import concatenate_p, pad_p
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Sum, Term, is_case, term
from tapeless.tracer.types import ShapedArray

_known: "WeakKeyDictionary[Writer, dict[Var, Pieces]]" = WeakKeyDictionary()


# ---- rules ---------------------------------------------------------------------------------------------------


def parts_of_cases(w: Writer, aval: ShapedArray, which: Atom, cases: Sequence[Atom]) -> Atom | None:
    """Rewrite a select whose predicate is a known function of indices as parts of its cases side by side, else None.

    A select of affine indices stays, for gathers and scatters at these find its pieces themselves. So does a select in
    a program with tangents unless it selects one case everywhere, since masks are sunk from selects, not from slices.
    """
    if any(w.jaxpr.linear_in) and len(_pieces(w, which)) > 1:
        return None
    if dtypes.is_integer(aval.dtype) and UNKNOWN not in [_pieces(w, x) for x in cases]:
        return None
    found = _parts(w, select_n_p, (which, *cases), {}, 0, aval)
    return None if found is None or found.additions else found.written(w, aval)


def _gather(w: Writer, x: Atom, indices: Atom, **params: Any) -> Atom | None:
    """Rewrite a gather at piecewise affine positions as slices joined side by side; None if it would move too much."""
    if params["mode"] is i.GatherScatterMode.PROMISE_IN_BOUNDS:
        params["mode"] = i.GatherScatterMode.CLIP  # as the emitted gather does
    fill = params["fill_value"]
    if fill is not None and not fill and any(np.asarray(fill).tobytes()):
        return None  # -0.0: elements that no term writes would be 0.0
    (aval,) = i.gather_p.type((x.aval, indices.aval), params)
    found = _parts(w, i.gather_p, (x, indices), params, 1, aval)
    if found is None or found.additions or found.moved > limits.MOVED * aval.size:
        return None
    return found.written(w, aval)


def _scatter(primitive: Primitive, w: Writer, x: Atom, indices: Atom, updates: Atom, **params: Any) -> Atom | None:
    """Rewrite a scatter at piecewise affine positions as padded updates, joined with or added to the operand, or None.

    Nothing is added to parts of the operand that are known to be 0. Updates of a scatter that does not add must not
    overlap.
    """
    found, adds = _parts(w, primitive, (x, indices, updates), params, 1, x.aval), primitive is i.scatter_add_p
    sums = adds and sums_in_any_order(x.aval.dtype)
    if found is None or (any(map(find_summed, found.terms)) and not sums):
        return None
    if any(_reads(t, 0) for t in found.terms):
        boxes = [box for t, box in zip(found.terms, found.boxes) if not _reads(t, 0)]
        found = _around_updates(w, found, x, lambda box: adds or not any(_meet(box, other) for other in boxes))
        if found is None or found.size > limits.MOVED * updates.aval.size:
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
            if None not in after and len(after) <= limits.INDEXED_TERMS:
                found = [t for t in after if t is not None]
    if found == before:
        return None
    (aval,) = ein_p.type(avals, params)
    left = reduce_terms(found, avals, aval.shape, aval.dtype)
    if not left.terms:
        return fill_array(w, 0, aval)
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
        """List the box that each term writes into."""
        return [written_box(p.out) for p in self.plans]

    @property
    def size(self) -> int:
        """Count the elements of the box around all terms."""
        return size_of(tiling(self.boxes).box) if self.plans else 0

    @property
    def additions(self) -> int:
        """Count the scalar additions."""
        return additions(tiling(self.boxes)) if self.plans else 0

    @property
    def moved(self) -> int:
        """Count the elements that the slices of all factors have."""
        return sum([_moved(p) for p in self.plans if p.factors])

    def written(self, w: Writer, aval: ShapedArray) -> Atom | None:
        """Write the sum as an array of type `aval`; None if a coefficient is no number of its dtype."""
        return lower_sum(w, self.terms, self.atoms.__getitem__, aval, None)


def _parts(
    w: Writer, primitive: Primitive, operands: Sequence[Atom], params: Any, positions: int, aval: ShapedArray
) -> _PlannedSum | None:
    """Express a primitive as terms without lookups in operand number `positions`; None if that is not known affine.

    None also if there are too many terms, or one needs more than views.
    """
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
            if after is None or len(found) == limits.INDEXED_TERMS:
                return None
            found.append(after)
    return _planned(found, list(operands), aval)


def _pieces(w: Writer, x: Atom) -> Pieces:
    return Values(w.definition, _known.setdefault(w, {})).pieces(x)


def _is_left_out(w: Writer, x: Atom) -> bool:
    """Tell whether a value is 0, so that terms with it can be dropped; -0.0 counts in linear programs only."""
    return is_zero(w, x) if w.linear else (n := number(w, x)) is not None and not any(n.tobytes())


def _planned(terms: Sequence[Term], atoms: list[Atom], aval: ShapedArray) -> _PlannedSum | None:
    """Plan each term; None if one has no plan, or needs more than views."""
    plans = [plan_term(t, tuple([atoms[f.operand].aval.shape for f in t.factors]), aval.shape) for t in terms]
    if any(p is None or not p.uses_views_only for p in plans):
        return None
    return _PlannedSum(tuple(terms), atoms, [p for p in plans if p is not None])


def without_lookups(t: Term, operand: int, pieces: Pieces, shape: tuple[int, ...]) -> Iterator[Term | None]:
    """Yield terms whose sum equals `t`, one for each piece of its looked-up positions; None for unknown ones."""
    at = next((k for k, b in enumerate(t.brackets) if isinstance(b, Lookup) and b.operand == operand), None)
    if at is None:
        yield t
        return
    lookup, others = t.brackets[at], (*t.brackets[:at], *t.brackets[at + 1 :])
    assert isinstance(lookup, Lookup)
    for piece in [q for p in pieces for q in _clipped(p, lookup.limits, shape)]:
        p = at_access(piece, lookup.access)
        same = () if p.value is None else (IsZero(lookup.index - p.value),)
        after = solve_term(t.with_brackets((*others, *p.brackets, *same)))
        if after is not None:
            yield from [None] if p.value is None else without_lookups(after, operand, pieces, shape)


def _clipped(p: Piece, limits: tuple[int, int] | None, shape: tuple[int, ...]) -> Iterator[Piece]:
    """Clip a piece to limits: yield the part between them, and the parts beyond as constants."""
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
    """Count the elements from the first to the last that a factor is read at; for a whole diagonal only its own."""
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
    """Cut the operand of a scatter along the edges of its updates, so that no update, nor 0, is added outside of these.

    None if the updates leave gaps in their boxes, or there are too many terms.

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
    return _planned(found, atoms, x.aval) if len(found) <= limits.INDEXED_TERMS else None


def _meet(box: Box, other: Box) -> bool:
    return all(a < d and c < b for (a, b), (c, d) in zip(box, other))


def _reads(t: Term, operand: int) -> bool:
    return any(f.operand == operand for f in t.factors)


def _without_zeros(w: Writer, terms: Sequence[Term], eqn: Equation, atoms: list[Atom]) -> Sequence[Term]:
    """Substitute the operands of a pad or concatenation for its result, operand 0 of the terms, and drop zeros."""

    def numbered(part: Atom) -> int:
        atoms.append(part)
        return len(atoms) - 1

    joined = statement(eqn, w.definition, numbered)
    if joined is None:
        return terms
    found, passed = Composer(limits.INDEXED_TERMS).inlined(terms, 0, joined.numbered_terms)
    return found if passed is None else terms


def _inside(t: Term, box: Box) -> Term | None:
    """Restrict a term to where it writes into a box; None if it does not."""
    bounds = [b for a, (low, high) in zip(t.out, box) for b in (NotNegative(a - low), NotNegative(high - 1 - a))]
    return solve_term(t.with_brackets((*t.brackets, *bounds)))
