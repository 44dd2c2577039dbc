"""Masks of linear programs sunk into coefficients: select(m, a ẋ, 0) becomes select(m, a, 0) ẋ.

What a choice discards was computed all the same, perhaps with coefficients that are infinite or nan. Forwards that is
harmless. Backwards the cotangent that arrives there is 0, and 0 times infinity is nan. So a linear value that is read
only where a mask holds has its coefficients replaced by 0 (divisors by 1) where it does not, as far back as that is
so: through what adds, moves, repeats and sums, and into the programs that equations carry. Both modes then agree, and
0 times infinity stays what it is wherever it is the program's own.
The choice itself is left out if every term it chooses was multiplied by such a coefficient, and it chooses 0 otherwise.
No linear operation is added. Of known values, masks are combined and coefficients chosen, once for each coefficient.
"""

import weakref
from collections.abc import Iterable, MutableMapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from tapeless.interpreters.simplifications import regions
from tapeless.interpreters.simplifications.constants import is_zero, number
from tapeless.interpreters.simplifications.regions import NOWHERE, Mask, Region
from tapeless.interpreters.simplify import Writer, carried, in_order, literal
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.reduction import reduce_or_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules, Table

NESTED = 8  # masks around one coefficient that are looked for

# rule(sinking, eqn, where its result matters, k) -> where operand k does, in its own shape; None: everywhere.
rules = Rules("masks")
# What coefficients are to be where they do not matter.
elsewhere: Table[float] = Table("masks")
# Moves that are defined for truth values only, where they are more than applying the primitive: apply(writer, mask,
# *others, **params) -> the mask that it makes.
of_truth = Rules("masks")
# Of what carries programs: rule(sinking, eqn, where each result matters) -> the equation with masks inside it, or the
# same; where each operand matters, None being everywhere and `NOWHERE` nowhere.
inside = Rules("masks")


def sunk(jaxpr: Jaxpr) -> Jaxpr:
    """The pass."""
    return Sinking(jaxpr, [None] * len(jaxpr.outvars)).run() if chooses(jaxpr) else jaxpr


def chooses(jaxpr: Jaxpr) -> bool:
    """Whether a program chooses between linear values, or one inside it does."""
    cache = _chooses.setdefault(jaxpr, {})
    if not cache:
        cache[None] = any(eqn.linear and _chooses_by(eqn) for eqn in jaxpr.eqns)
    return cache[None]


def _chooses_by(eqn: Equation) -> bool:
    return eqn.primitive is e.select_n_p or (eqn.primitive in inside and any(map(chooses, subjaxprs(eqn.params))))


class Sinking:
    """Backwards, who reads a value where; then forwards, the coefficients, and which values are zero elsewhere."""

    def __init__(self, jaxpr: Jaxpr, out: Sequence[Region | None], given: Iterable[Var] = ()) -> None:
        self.jaxpr = jaxpr
        self.w = Writer(jaxpr)
        self.where: dict[Atom, Region | None] = {}  # where linear values are read
        self._programs: dict[Equation, Equation] = {}
        self._zero: dict[Atom, frozenset[Mask]] = {}  # masks outside of which a value is zero
        unknown = [v for v in jaxpr.invars if v in carried and v not in given]
        self._finite: dict[Atom, frozenset[Mask] | None] = dict.fromkeys(jaxpr.invars)  # the same; None: all of it
        self._finite.update(dict.fromkeys(unknown, frozenset()))
        self._found: dict[Any, Atom] = {}
        for v, region in zip(jaxpr.outvars, out, strict=True):
            self._read(v, region)

    def run(self) -> Jaxpr:
        """The program with its masks sunk, the same object if there are none."""
        for eqn in self.jaxpr.eqns:
            if not eqn.linear:
                self.w.keep(eqn)
        for eqn in reversed(self.jaxpr.eqns):
            if eqn.linear:
                self._ask(eqn)
        for eqn in self.jaxpr.eqns:
            if eqn.linear:
                self.w.place = eqn.source
                self._visit(eqn)
        if not self.w.changed:
            return self.jaxpr
        return in_order(self.jaxpr, self.w.eqns, [self.w.now(v) for v in self.jaxpr.outvars])

    # ---- where values are read ---------------------------------------------------------------------------------

    def _ask(self, eqn: Equation) -> None:
        """Where the linear operands of an equation matter, from where its results do."""
        out = [self.where.get(v, NOWHERE) for v in eqn.outvars]
        if eqn.primitive in inside and (any(out) or any(map(chooses, subjaxprs(eqn.params)))):
            self.w.place = eqn.source
            self._programs[eqn], found = inside[eqn.primitive](self, eqn, out)
        else:
            found = [self.of_operand(eqn, k) if x.linear else None for k, x in enumerate(eqn.invars)]
        for x, region in zip(eqn.invars, found, strict=True):
            self._read(x, region)

    def _read(self, x: Atom, region: Region | None) -> None:
        if x.linear:
            self.where[x] = regions.either(self.where.get(x, NOWHERE), region)

    def of_operand(self, eqn: Equation, k: int) -> Region | None:
        """Where an operand of an equation with one result matters."""
        rule = rules.get(eqn.primitive)
        if rule is None or len(eqn.outvars) != 1:
            return None
        region = self.where.get(eqn.outvars[0], NOWHERE)
        return rule(self, eqn, region, k)

    def is_finite(self, x: Atom) -> bool:
        """Whether a linear operand is known to be finite before anything is written: some inputs are."""
        return x in self._finite and self._finite[x] is None

    # ---- what is written ---------------------------------------------------------------------------------------

    def _visit(self, eqn: Equation) -> None:
        now = self.w.renamed(eqn)
        if eqn in self._programs and self._programs[eqn] is not eqn:
            self.w.changed = True
            now = self.w.renamed(self._programs[eqn])
        elif eqn.primitive in elsewhere:
            now = self._masked(eqn, now)
        elif eqn.primitive in rules:
            self._pass_on(eqn, now)
        if eqn.primitive is e.select_n_p:
            only = self._only(eqn)
            if only is not None and self.w.replace(eqn, self.w.now(only)):
                return
        self.w.keep(now)

    def _masked(self, eqn: Equation, renamed: Equation) -> Equation:
        """A product, with masks on its coefficient; notes outside of which masks it is 0."""
        other = elsewhere[eqn.primitive]
        k = next((k for k, x in enumerate(eqn.invars) if not x.linear), None)
        if k is None:  # bilinear: it is not for this pass to say
            return renamed
        x, coefficient, region = eqn.invars[1 - k], renamed.invars[k], self.of_operand(eqn, k)
        now = self.coefficient(coefficient, region, other)
        self._note(eqn, x, now, other)
        if now is coefficient:
            return renamed
        self.w.changed = True
        return renamed.replace(invars=[now if i == k else y for i, y in enumerate(renamed.invars)])

    def _note(self, eqn: Equation, x: Atom, coefficient: Atom, other: float) -> None:
        """What is known of a product of x and a coefficient: of the masks where it is read, one by one."""
        out = eqn.outvars[0]
        if eqn.primitive not in (e.mul_p, e.div_p):
            return
        zero, finite = self._zero.get(x, frozenset()), self._finite.get(x, frozenset())
        if not _fits(x, eqn):
            zero = frozenset()
        if _is_finite(self.w, coefficient):
            self._zero[out], self._finite[out] = zero, finite if _fits(x, eqn) or finite is None else frozenset()
            return
        region = self.where.get(out)
        masks = region[0] if region is not None and len(region) == 1 else ()
        held = frozenset([m for m in masks if self._has(coefficient, m, region, other)])
        fine = held if finite is None else held & finite
        self._zero[out], self._finite[out] = (held & zero) | fine if other == 0 else held & zero, fine

    def _pass_on(self, eqn: Equation, now: Equation) -> None:
        """What is known of sums and of what is moved."""
        out, linear = eqn.outvars[0], [x for x in eqn.invars if x.linear]
        finite = [self._finite.get(x, frozenset()) for x in linear]
        if all(f is None for f in finite):
            self._finite[out] = None
        if eqn.primitive not in _same_shape or not all(_fits(x, eqn) for x in linear):
            return
        if all(is_zero(self.w, x) for x in now.invars if not x.linear):
            self._zero[out] = _common([self._zero.get(x, frozenset()) for x in linear])
        known = [f for f in finite if f is not None]
        if known:
            self._finite[out] = _common(known)

    # ---- coefficients ------------------------------------------------------------------------------------------

    def coefficient(self, x: Atom, region: Region | None, other: float) -> Atom:
        """A coefficient that is `other` outside a region; itself if it is a number, or so already."""
        if not region or _is_finite(self.w, x) or self._is_masked(x, region, other):
            return x
        key = x, region, other
        if key not in self._found:
            spread = self.w.made_by(x, broadcast_in_dim_p)
            self._found[key] = self._spread(spread, x, region, other) if spread else self._chosen(x, region, other)
        return self._found[key]

    def _spread(self, eqn: Equation, x: Atom, region: Region, other: float) -> Atom:
        """What is repeated matters where some repetition does."""
        (small,) = eqn.invars
        of_small = rules[broadcast_in_dim_p](self, eqn, region, 0)
        chosen = self.coefficient(small, of_small, other)
        if chosen is small:
            return x
        made = self.w.write(broadcast_in_dim_p, chosen, **eqn.params)
        exactly = not any(move.primitive is reduce_or_p for a in of_small for m in a for move in m.moves)
        _remember(made, region, other, exactly)
        return made

    def _chosen(self, x: Atom, region: Region, other: float) -> Atom:
        made = self._choice(x, region, literal(other, x.aval))
        _remember(made, region, other, True)
        return made

    def _choice(self, x: Atom, region: Region, number: Atom) -> Atom:
        if len(region) == 1 and len(region[0]) == 1 and not self._needs_bool(region[0][0]):
            (mask,) = region[0]
            cases = [x if k == mask.case else number for k in range(mask.cases)]
            return self.w.write(e.select_n_p, self._moved(mask, mask.which), *cases)
        return self.w.write(e.select_n_p, self.array(region), number, x)

    def _is_masked(self, x: Atom, region: Region, other: float) -> bool:
        if type(x) is Var and (region, other) in _before.get(x, ()):
            return True
        return len(region) == 1 and all(self._chosen_by(x, mask, other) for mask in region[0])

    def _has(self, x: Atom, mask: Mask, region: Region | None, other: float) -> bool:
        """Whether a coefficient is `other` outside a mask, one of those of the region."""
        exactly = type(x) is Var and _before.get(x, {}).get((region, other), False)
        return exactly or self._chosen_by(x, mask, other)

    def _chosen_by(self, x: Atom, mask: Mask, other: float) -> bool:
        """Whether a coefficient was chosen by a mask: there may be others around it."""
        eqn = self.w.made_by(x, e.select_n_p)
        for _ in range(NESTED):
            if eqn is None or mask.moves:
                return False
            others = [number(self.w, x) for k, x in enumerate(eqn.invars[1:]) if k != mask.case]
            if eqn.invars[0] is mask.which and all(c is not None and c == other for c in others):
                return True
            eqn = next(filter(None, [self.w.made_by(c, e.select_n_p) for c in eqn.invars[1:]]), None)
        return False

    # ---- masks as arrays ---------------------------------------------------------------------------------------

    def array(self, region: Region) -> Atom:
        """A region as an array of truth values."""
        if region not in self._found:
            alternatives = [self._folded(and_p, [self._truth(m) for m in a]) for a in region]
            self._found[region] = made = self._folded(or_p, alternatives)
            if type(made) is Var:
                _regions[made] = region
        return self._found[region]

    def _folded(self, primitive: Any, xs: Sequence[Atom]) -> Atom:
        total = xs[0]
        for x in xs[1:]:
            total = self.w.write(primitive, total, x)
        return total

    def _truth(self, mask: Mask) -> Atom:
        if mask not in self._found:
            start = self._truth(mask._replace(moves=())) if mask.moves else self._bool(mask.which, mask.case)
            self._found[mask] = self._moved(mask, start)
        return self._found[mask]

    def _bool(self, which: Atom, case: int) -> Atom:
        if which.aval.dtype == bool:
            return which if case else self.w.write(not_p, which)
        return self.w.write(e.eq_p, which, literal(case, which.aval))

    def _moved(self, mask: Mask, x: Atom) -> Atom:
        for primitive, params, others in mask.moves:
            if primitive in of_truth:
                x = of_truth[primitive](self.w, x, *others, **dict(params))
            else:
                x = self.w.write(primitive, x, *others, **dict(params))
        return x

    def _needs_bool(self, mask: Mask) -> bool:
        return any(m.primitive in of_truth for m in mask.moves)

    # ---- only one case -----------------------------------------------------------------------------------------

    def _only(self, eqn: Equation) -> Var | None:
        """The one case of a choice that is not zero, if it is zero itself wherever it is not chosen."""
        cases = eqn.invars[1:]
        left = [k for k, x in enumerate(cases) if not is_zero(self.w, x)]
        if len(left) != 1:
            return None
        x = cases[left[0]]
        mask = mask_of(eqn, left[0])
        return x if isinstance(x, Var) and mask in self._zero.get(x, ()) else None


def region_of(x: Var) -> Region | None:
    """The region that a mask was made for, if it was."""
    return _regions.get(x)


def _common(groups: Sequence[frozenset[Mask]]) -> frozenset[Mask]:
    return reduce(and_, groups)


def mask_of(eqn: Equation, case: int) -> Mask:
    """Where a choice takes a case, in the shape of the result."""
    which, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    mask = Mask(which, case, len(eqn.invars) - 1)
    return mask if which.aval.shape == shape else mask.moved(broadcast_in_dim_p, shape=shape, dims=())


def _remember(x: Atom, region: Region, other: float, exactly: bool) -> None:
    if type(x) is Var:
        _before.setdefault(x, {})[region, other] = exactly


def _fits(x: Atom, eqn: Equation) -> bool:
    """Whether an operand has the shape of the result, so that a mask of one is one of the other."""
    return x.aval.shape == eqn.outvars[0].aval.shape


def _is_finite(w: Writer, x: Atom) -> bool:
    """Whether a coefficient is a number other than infinity and nan, and not 0."""
    known = number(w, x)
    return known is not None and bool(np.isfinite(known)) and known != 0


_same_shape = frozenset((e.neg_p, e.add_p, e.sub_p, e.convert_element_type_p, e.real_p, e.imag_p, e.conj_p))
# Coefficients that were masked: by what, with which number, and whether they are that number all over elsewhere.
_before: MutableMapping[Var, dict[tuple[Region | None, float], bool]] = weakref.WeakKeyDictionary()
_regions: MutableMapping[Var, Region] = weakref.WeakKeyDictionary()
_chooses = core.program_cache()
