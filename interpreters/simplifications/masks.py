"""Masks of linear programs sunk into coefficients: select(m, a ẋ, 0) becomes select(m, a, 0) ẋ.

What a choice discards was computed all the same, perhaps with coefficients that are infinite or nan. Forwards that is
harmless. Backwards the cotangent that arrives there is 0, and 0 times infinity is nan. So a linear value that is read
only where one mask holds has its coefficients replaced by 0 (divisors by 1) where it does not, as far back as that is
so; both modes then agree, and 0 times infinity stays what it is wherever it is the program's own.
The choice itself is left out if every term it chooses was multiplied by such a coefficient, and it chooses 0 otherwise.
"""

from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.constants import is_zero, number
from tapeless.interpreters.simplify import Writer, in_order, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules

NESTED = 8  # masks around one coefficient that are looked for


class Mask(NamedTuple):
    """Where `which`, the choice of a select_n among `cases`, is case number `case`."""

    which: Atom
    case: int
    cases: int


def sunk(jaxpr: Jaxpr) -> Jaxpr:
    """The pass."""
    if not any(eqn.primitive is e.select_n_p and eqn.outvars[0].linear for eqn in jaxpr.eqns):
        return jaxpr
    return _Sinking(jaxpr).run()


class _Sinking:
    """Backwards, who reads a value where; then forwards, the coefficients, and which values are zero elsewhere."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = jaxpr
        self.w = Writer(jaxpr)
        self._masks: dict[Atom, Mask | None] = dict.fromkeys(jaxpr.outvars)
        self._zero: set[tuple[Var, Mask]] = set()
        self._found: dict[Any, Atom] = {}
        self._of: dict[Atom, tuple[Mask, float]] = {}  # the masks of coefficients that have one now

    def run(self) -> Jaxpr:
        for eqn in reversed(self._jaxpr.eqns):
            self._ask(eqn)
        for eqn in self._jaxpr.eqns:
            self.w.place = eqn.source
            self._visit(eqn)
        if not self.w.changed:
            return self._jaxpr
        return in_order(self._jaxpr, self.w.eqns, [self.w.now(v) for v in self._jaxpr.outvars])

    def _ask(self, eqn: Equation) -> None:
        """Where the linear operands of an equation matter, from where its result does."""
        if eqn.primitive is e.select_n_p and eqn.outvars[0].linear:
            which, *cases = eqn.invars
            for k, x in enumerate(cases):
                self._read(x, Mask(which, k, len(cases)) if _fits(x, eqn) else None)
            return
        mask = self._mask(eqn) if eqn.primitive in rules else None
        for x in eqn.invars:
            self._read(x, mask if mask and _fits(x, eqn) else None)

    def _read(self, x: Atom, mask: Mask | None) -> None:
        if type(x) is Var and x.linear:
            self._masks[x] = mask if self._masks.get(x, mask) == mask else None

    def _mask(self, eqn: Equation) -> Mask | None:
        """The one mask where the result of an equation matters; None for everywhere."""
        return self._masks.get(eqn.outvars[0]) if len(eqn.outvars) == 1 else None

    def _visit(self, eqn: Equation) -> None:
        mask, rule = self._mask(eqn), rules.get(eqn.primitive)
        now = self.w.renamed(eqn)
        if mask is not None and rule is not None:
            now = self._masked(eqn, now, mask, rule(eqn))
        if eqn.primitive is e.select_n_p and eqn.outvars[0].linear:
            only = self._only(eqn)
            if only is not None and self.w.replace(eqn, self.w.now(only)):
                return
        self.w.keep(now)

    def _masked(self, eqn: Equation, renamed: Equation, mask: Mask, elsewhere: float | None) -> Equation:
        """An equation, with masks on coefficients; notes whether its result is 0 where the mask is not."""
        linear, invars = [x for x in eqn.invars if x.linear], renamed.invars
        now = [x if x.linear or elsewhere is None else self._coefficient(x, mask, elsewhere) for x in invars]
        by_factor = elsewhere == 0 and any(not x.linear and self._has(x, mask, 0) for x in now)
        zeros = [isinstance(x, Var) and (x, mask) in self._zero for x in linear]
        others = [is_zero(self.w, x) for x in invars if not x.linear] if elsewhere is None else []
        if by_factor or (all(zeros) and all(others)):
            self._zero.add((eqn.outvars[0], mask))
        if all(a is b for a, b in zip(now, invars)):
            return renamed
        self.w.changed = True
        return renamed.replace(invars=now)

    def _coefficient(self, x: Atom, mask: Mask, elsewhere: float) -> Atom:
        """A coefficient that is `elsewhere` where the mask does not hold; itself if it is a number, or so already.

        One that is smaller than the mask stays as it is, too: as large as the mask it would be dear to keep.
        """
        if _is_finite(self.w, x) or self._is_smaller(x, mask) or self._has(x, mask, elsewhere):
            return x
        key = x, mask, elsewhere
        if key not in self._found:
            other = literal(elsewhere, x.aval)
            cases = [x if k == mask.case else other for k in range(mask.cases)]
            self._found[key] = masked = self.w.write(e.select_n_p, mask.which, *cases)
            self._of[masked] = mask, elsewhere
        return self._found[key]

    def _is_smaller(self, x: Atom, mask: Mask) -> bool:
        made, of_mask = [self.w.made_by(y, broadcast_in_dim_p) for y in (x, mask.which)]
        size = made.invars[0].aval.size if made else x.aval.size
        return size < (of_mask.invars[0].aval.size if of_mask else mask.which.aval.size)

    def _has(self, x: Atom, mask: Mask, elsewhere: float) -> bool:
        """Whether a coefficient has this mask: there may be others around it."""
        if self._of.get(x) == (mask, elsewhere):
            return True
        eqn = self.w.made_by(x, e.select_n_p)
        for _ in range(NESTED):
            if eqn is None:
                return False
            others = [number(self.w, x) for k, x in enumerate(eqn.invars[1:]) if k != mask.case]
            if eqn.invars[0] is mask.which and all(c is not None and c == elsewhere for c in others):
                return True
            eqn = next(filter(None, [self.w.made_by(c, e.select_n_p) for c in eqn.invars[1:]]), None)
        return False

    def _only(self, eqn: Equation) -> Var | None:
        """The one case of a choice that is not zero, if it is zero itself wherever it is not chosen."""
        which, *cases = eqn.invars
        left = [k for k, x in enumerate(cases) if not is_zero(self.w, x)]
        if len(left) != 1:
            return None
        x = cases[left[0]]
        return x if isinstance(x, Var) and (x, Mask(which, left[0], len(cases))) in self._zero else None


def _fits(x: Atom, eqn: Equation) -> bool:
    """Whether an operand has the shape of the result, so that a mask of one is one of the other."""
    return x.aval.shape == eqn.outvars[0].aval.shape


def _is_finite(w: Writer, x: Atom) -> bool:
    """Whether a coefficient is a number other than infinity and nan, and not 0."""
    known = number(w, x)
    return known is not None and bool(np.isfinite(known)) and known != 0


# rule(eqn) -> what its coefficients are to be where they do not matter; None: it has none, all is added or moved along
rules = Rules("masks")


def _through(*primitives: Primitive, elsewhere: float | None = None) -> None:
    for p in primitives:
        rules[p] = lambda eqn: elsewhere


_through(e.neg_p, e.add_p, e.sub_p, e.convert_element_type_p, e.real_p, e.imag_p, e.conj_p)
_through(e.mul_p, elsewhere=0.0)
_through(e.div_p, elsewhere=1.0)
