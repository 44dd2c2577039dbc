"""Coefficients of linear operations, masked: select(mask, a, 0) for `a`, and the arrays of masks."""

import weakref
from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.simplifications.constants import number
from tapeless.interpreters.simplifications.masks import regions
from tapeless.interpreters.simplifications.masks.regions import Mask, Region
from tapeless.interpreters.simplify import Writer, literal
from tapeless.tracer.jaxpr import Atom, Equation, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules

NESTED = 8  # masks around one coefficient that are looked for

of_truth = Rules(
    "masks moved",
    "rule(writer, mask, *other operands, **params) -> the mask moved as the primitive moves its operand",
    absent="the primitive itself is applied to the mask",
)


class Coefficients:
    """The masked coefficients and the mask arrays of one program, each written once."""

    def __init__(self, writer: Writer) -> None:
        self._w = writer
        self._found: dict[Any, Atom] = {}
        self._inputs = frozenset(writer.jaxpr.invars)

    # ---- coefficients ------------------------------------------------------------------------------------------

    def masked(self, x: Atom, region: Region | None, other: float) -> Atom:
        """Mask a coefficient: `other` outside `region`. Unchanged if it is a finite number, or masked so already."""
        if not region or is_finite_nonzero(self._w, x) or self._is_masked(x, region, other):
            return x
        key = x, region, other
        if key not in self._found:
            spread = self._w.made_by(x, broadcast_in_dim_p)
            self._found[key] = self._spread(spread, x, region, other) if spread else self._chosen(x, region, other)
        return self._found[key]

    def _spread(self, eqn: Equation, x: Atom, region: Region, other: float) -> Atom:
        """Mask the operand of a broadcast instead: it is read where any of its copies is."""
        (small,) = eqn.invars
        of_small = regions.rules[broadcast_in_dim_p](self._w, eqn, region, 0)
        chosen = self.masked(small, of_small, other)
        if chosen is small:
            return x
        made = self._w.write(broadcast_in_dim_p, chosen, **eqn.params)
        exactly = not any(move.primitive is reduce_or_p for a in of_small for m in a for move in m.moves)
        _remember(made, x, region, other, exactly)
        return made

    def _chosen(self, x: Atom, region: Region, other: float) -> Atom:
        made = self._choice(x, region, literal(other, x.aval))
        _remember(made, x, region, other, True)
        return made

    def _choice(self, x: Atom, region: Region, number: Atom) -> Atom:
        if len(region) == 1 and len(region[0]) == 1 and not self._needs_bool(region[0][0]):
            (mask,) = region[0]
            cases = [x if k == mask.case else number for k in range(mask.cases)]
            return self._w.write(e.select_n_p, self._moved(mask, mask.which), *cases)
        return self._w.write(e.select_n_p, self.array(region), number, x)

    def _is_masked(self, x: Atom, region: Region, other: float) -> bool:
        before = _before.get(x, ()) if type(x) is Var else ()
        if any(number == other and regions.covers(region, known) for known, number in before):
            return True
        return len(region) == 1 and all(self._chosen_by(x, mask, other) for mask in region[0])

    def has(self, x: Atom, mask: Mask, other: float) -> bool:
        """Tell whether a coefficient is `other` outside a mask."""
        before = _before.get(x, {}) if type(x) is Var else {}
        exact = [region for (region, number), exactly in before.items() if exactly and number == other]
        return any(all(mask in a for a in region) for region in exact) or self._chosen_by(x, mask, other)

    def _chosen_by(self, x: Atom, mask: Mask, other: float, depth: int = NESTED) -> bool:
        """Tell whether a coefficient was chosen by a mask, or every case that it was chosen from."""
        known = number(self._w, x)
        if known is not None:
            return bool(known == other)
        eqn = self._w.made_by(x, e.select_n_p)
        if eqn is None or mask.moves or not depth:
            return False
        cases = list(enumerate(eqn.invars[1:]))
        if eqn.invars[0] is mask.which:
            cases = [(k, case) for k, case in cases if k != mask.case]
        return all(self._chosen_by(case, mask, other, depth - 1) for _, case in cases)

    # ---- masks as arrays ---------------------------------------------------------------------------------------

    def array(self, region: Region) -> Atom:
        """Materialise a region as a boolean array."""
        if region not in self._found:
            alternatives = [self._folded(and_p, [self._truth(m) for m in a]) for a in region]
            self._found[region] = made = self._folded(or_p, alternatives)
            if type(made) is Var:
                _regions[made] = region
        return self._found[region]

    def region_of(self, x: Atom) -> Region | None:
        """Return the region that a boolean array was materialised from, if its operands are defined in this jaxpr."""
        region = _regions.get(x) if type(x) is Var else None
        if region is None:
            return None
        read = {v for a in region for m in a for v in (m.which, *[v for move in m.moves for v in move.others])}
        return region if all(map(self._is_there, read)) else None

    def _is_there(self, v: Atom) -> bool:
        return type(v) is not Var or v in self._inputs or self._w.definition(v) is not None

    def _folded(self, primitive: Any, xs: Sequence[Atom]) -> Atom:
        total = xs[0]
        for x in xs[1:]:
            total = self._w.write(primitive, total, x)
        return total

    def _truth(self, mask: Mask) -> Atom:
        if mask not in self._found:
            start = self._truth(mask._replace(moves=())) if mask.moves else self._bool(mask.which, mask.case)
            self._found[mask] = self._moved(mask, start)
        return self._found[mask]

    def _bool(self, which: Atom, case: int) -> Atom:
        if which.aval.dtype == bool:
            return which if case else self._w.write(not_p, which)
        return self._w.write(e.eq_p, which, literal(case, which.aval))

    def _moved(self, mask: Mask, x: Atom) -> Atom:
        for primitive, params, others in mask.moves:
            if primitive in of_truth:
                x = of_truth[primitive](self._w, x, *others, **dict(params))
            else:
                x = self._w.write(primitive, x, *others, **dict(params))
        return x

    def _needs_bool(self, mask: Mask) -> bool:
        return any(m.primitive in of_truth for m in mask.moves)


def is_finite_nonzero(w: Writer, x: Atom) -> bool:
    """Tell whether a coefficient is a number other than infinity and nan, and not 0."""
    known = number(w, x)
    return known is not None and bool(np.isfinite(known)) and known != 0


def _remember(made: Atom, x: Atom, region: Region, other: float, exactly: bool) -> None:
    """Record that `made` is `x` with `other` outside `region`, keeping the records of `x`."""
    if type(made) is Var:
        before = _before.get(x, {}) if type(x) is Var else {}
        kept = {known: exact for known, exact in before.items() if known[1] == other}
        _before[made] = {**kept, **_before.get(made, {}), (region, other): exactly}


# Coefficients that were masked: by what, with which number, and whether they are that number all over elsewhere.
_before: MutableMapping[Var, dict[tuple[Region, float], bool]] = weakref.WeakKeyDictionary()
_regions: MutableMapping[Var, Region] = weakref.WeakKeyDictionary()
