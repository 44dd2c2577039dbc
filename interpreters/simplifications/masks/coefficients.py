"""Mask the coefficients of linear operations: select(mask, a, 0) for `a`; and decide which masks imply others."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.constant_values import number
from tapeless.interpreters.simplifications.masks import regions
from tapeless.interpreters.simplifications.masks.mask import Mask, mask_of
from tapeless.interpreters.simplifications.masks.mask_arrays import MaskWriter, find_map, movement
from tapeless.interpreters.simplifications.masks.operand_regions import region_of_operand
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Alternative, Region
from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.terms.map import Shape

_LOGIC = frozenset((and_p, or_p, not_p))


class Coefficients:
    """The masked coefficients and the mask arrays of one program, each written once.

    implied: for an input or a mask of a result, the predicates that are known to hold wherever it does.
    """

    def __init__(self, writer: MaskWriter) -> None:
        self._w = writer
        self._found: dict[tuple[Atom, Region, float], Atom] = {}
        self._literals: dict[Mask, Region | None] = {}
        self._expansions: dict[Region, Region | None] = {}
        self.implied: Mapping[Atom, Sequence[Atom]] = {}

    # ---- coefficients ------------------------------------------------------------------------------------------

    def masked(self, x: Atom, region: Region | None, other: float) -> Atom:
        """Mask a coefficient: `other` outside `region`; the operand of a broadcast where none of its copies is read.

        Unchanged if the region is everywhere or nowhere, or if the coefficient is a finite number other than 0, or is
        masked so already.
        """
        if not region or is_finite_nonzero(self._w, x):
            return x
        key = x, region, other
        if key not in self._found:
            self._found[key] = self._masked(x, region, other)
        return self._found[key]

    def _masked(self, x: Atom, region: Region, other: float) -> Atom:
        plain = self.plain(region)
        if not plain or self._is_masked(x, plain, other):
            return x
        spread = self._w.made_by(x, broadcast_in_dim_p)
        return self._chosen(x, plain, other) if spread is None else self._spread(spread, x, region, other)

    def _spread(self, eqn: Equation, x: Atom, region: Region, other: float) -> Atom:
        """Mask the operand of a broadcast instead: it is read where any of its copies is."""
        (small,) = eqn.invars
        chosen = self.masked(small, region_of_operand(self._w, eqn, [region], 0), other)
        return x if chosen is small else self._w.write(broadcast_in_dim_p, chosen, **eqn.params)

    def _chosen(self, x: Atom, region: Region, other: float) -> Atom:
        filler, x = literal(other, x.aval), self._without_wider(x, region, other)
        if len(region) == 1 and len(region[0]) == 1 and region[0][0].cases:
            (mask,) = region[0]
            cases = [x if k == mask.case else filler for k in range(mask.cases)]
            return self._w.write(e.select_n_p, mask.which, *cases)
        return self._w.write(e.select_n_p, self._w.array(region), filler, x)

    def _without_wider(self, x: Atom, region: Region, other: float) -> Atom:
        """Drop selects of a coefficient by masks that hold in all of a region."""
        for _ in range(limits.NESTED):
            eqn = self._w.made_by(x, e.select_n_p)
            kept = [k for k, case in enumerate(eqn.invars[1:]) if number(self._w, case) != other] if eqn else []
            if eqn is None or len(kept) != 1 or not self.covers(regions.of(mask_of(eqn, kept[0])), region):
                return x
            x = eqn.invars[1 + kept[0]]
        return x

    def _is_masked(self, x: Atom, region: Region, other: float) -> bool:
        """Tell whether a coefficient is `other` outside a region of masks without views."""
        outside = self._support(x, other, limits.NESTED)
        return outside is not None and self._covers(region, outside)

    def has(self, x: Atom, mask: Mask, other: float) -> bool:
        """Tell whether a coefficient is `other` outside a mask."""
        region = self.plain(regions.of(mask))
        return region is not None and self._is_masked(x, region, other)

    def _support(self, x: Atom, other: float, depth: int) -> Region | None:
        """Return a region outside of which a coefficient is `other`, by its selects; None if none is known."""
        known = number(self._w, x)
        if known is not None:
            return NOWHERE if known == other else None
        eqn = self._w.definition(x)
        if eqn is None or not depth:
            return None
        if eqn.primitive is broadcast_in_dim_p:
            return _read(self._support(eqn.invars[0], other, depth - 1), eqn)
        if eqn.primitive is not e.select_n_p:
            return None
        total: Region | None = NOWHERE
        for k, case in enumerate(eqn.invars[1:]):
            inner = self._support(case, other, depth - 1)
            if inner != NOWHERE:
                total = regions.either(total, regions.both(regions.of(mask_of(eqn, k)), inner))
        return total

    # ---- implication of masks ----------------------------------------------------------------------------------

    def covers(self, region: Region | None, part: Region | None) -> bool:
        """Tell whether a region is known to contain another, by the logic that computes their masks."""
        if region is None or part is None:
            return region is None
        plain = self.plain(region)
        return plain is None or self._covers(plain, part)

    def _covers(self, region: Region, part: Region) -> bool:
        known = self.plain(part)
        if known is None:
            return False
        goal, found = self._expanded(region), self._expanded(known)
        if goal is None or found is None:
            return goal is None
        return regions.covers(goal, [self._with_implied(a) for a in found])

    def _with_implied(self, alternative: Alternative) -> Alternative:
        more = [Mask(x, 1, 2) for m in alternative if m.case == 1 for x in self.implied.get(m.which, ())]
        return (*alternative, *more)

    def _expanded(self, region: Region) -> Region | None:
        """Expand the masks of a region, without views, by the `and`, `or` and `not` that compute them."""
        if region not in self._expansions:
            self._expansions[region] = self._expand(region)
        return self._expansions[region]

    def _expand(self, region: Region) -> Region | None:
        found: Region | None = NOWHERE
        for alternative in region:
            each: Region | None = None
            for mask in alternative:
                each = regions.both(each, self._literal(mask), unbounded=True)
                if each is not None and len(each) > limits.EXPANDED:
                    return region
            found = regions.either(found, each, unbounded=True)
        return region if found is not None and len(found) > limits.EXPANDED else found

    def _literal(self, mask: Mask) -> Region | None:
        if mask not in self._literals:
            self._literals[mask] = self._made_of(mask)
        return self._literals[mask]

    def _made_of(self, mask: Mask) -> Region | None:
        """Expand a mask by the logic that computes its predicate; the mask itself if there is none, or too much."""
        if mask.which.aval.dtype != bool:
            return self._literal(Mask(self._w.truth(mask), 1, 2))
        eqn = self._w.definition(mask.which)
        if eqn is None or eqn.primitive not in _LOGIC:
            return regions.of(mask)
        found = self._of_logic(mask, eqn, self._literal, unbounded=True)
        return regions.of(mask) if found is not None and len(found) > limits.EXPANDED else found

    def _of_logic(
        self, mask: Mask, eqn: Equation, expand: Callable[[Mask], Region | None], unbounded: bool = False
    ) -> Region | None:
        """Expand a mask by the `and`, `or` or `not` that computes its predicate, and its operands by `expand`."""
        if eqn.primitive is not_p:
            return expand(mask._replace(which=eqn.invars[0], case=1 - mask.case))

        def part(x: Atom) -> Region | None:
            known = number(self._w, x)
            if known is not None:
                return None if known == mask.case else NOWHERE
            return _repeated(expand(Mask(x, mask.case, 2)), x, mask.shape)

        conjunction = (eqn.primitive is and_p) == (mask.case == 1)
        return (regions.both if conjunction else regions.either)(*map(part, eqn.invars), unbounded=unbounded)

    # ---- masks of operands -------------------------------------------------------------------------------------

    def of_inputs(self, mask: Mask) -> Region | None:
        """Write a mask without views in masks of inputs of the program, as far as it is made of these."""
        return self._of_inputs(mask, limits.NESTED)

    def _of_inputs(self, mask: Mask, depth: int) -> Region | None:
        """Expand a mask without views by the equations that compute its predicate: logic, moves, comparisons."""
        eqn = self._w.definition(mask.which)
        if eqn is None or not eqn.invars or not depth:
            return regions.of(mask)
        x, primitive = eqn.invars[0], eqn.primitive
        if primitive in _LOGIC and mask.which.aval.dtype == bool:
            return self._of_logic(mask, eqn, lambda part: self._of_inputs(part, depth - 1))
        if primitive is e.eq_p and mask.case == 1 and type(eqn.invars[1]) is Literal:
            case = int(eqn.invars[1].value) if x.aval.dtype.kind in "iu" else -1
            return self._of_inputs(Mask(x, case, 0), depth - 1) if case >= 0 else regions.of(mask)
        if movement(eqn) is not None or (primitive is reduce_or_p and x.aval.dtype == bool and mask.case == 1):
            return _read(self._of_inputs(mask._replace(which=x), depth - 1), eqn)
        return regions.of(mask)

    # ---- masks as arrays ---------------------------------------------------------------------------------------

    def array(self, region: Region) -> Atom | None:
        """Write a region as a boolean array; None if it is everywhere, or nowhere."""
        plain = self.plain(region)
        return self._w.array(plain) if plain else None

    def plain(self, region: Region) -> Region | None:
        """Write the views of all masks; drop masks holding everywhere, and alternatives holding nowhere."""
        found: list[Alternative] = []
        for alternative in region:
            masks = list(map(self._w.plain, alternative))
            if False not in masks:
                found.append(tuple(dict.fromkeys(m for m in masks if type(m) is Mask)))
        return None if () in found else tuple(dict.fromkeys(found))


def _repeated(region: Region | None, x: Atom, shape: Shape) -> Region | None:
    """Broadcast the masks of a region to a shape if `x`, which they are computed from, is a scalar."""
    return region if x.aval.shape == shape else regions.move_masks(region, lambda mask: mask.repeated(shape, ()))


def _read(region: Region | None, eqn: Equation) -> Region | None:
    """Read a region of the operand through an equation that moves elements, or reduces by `or`."""
    found = find_map(eqn)
    return None if found is None else regions.view_masks(region, [found])


def is_finite_nonzero(w: Writer, x: Atom) -> bool:
    """Tell whether a coefficient is a number other than infinity and nan, and not 0."""
    known = number(w, x)
    return known is not None and bool(np.isfinite(known)) and known != 0
