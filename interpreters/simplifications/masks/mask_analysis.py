"""Mask sinking in linear jaxprs: select(m, a ẋ, 0) becomes select(m, a, 0) ẋ, so that gradients have no 0 * inf.

The elements that a select discards are computed all the same, perhaps with infinite or nan coefficients. In forward
mode that is harmless. In reverse mode their cotangent is 0, and 0 times infinity is nan. So if a linear value is read
only where a mask holds, its coefficients are replaced by 0 (divisors by 1) elsewhere, as far back as that is so:
through equations that add, move, repeat and sum, and into the bodies of equations. Both modes then agree, and 0 times
infinity stays nan where the function itself computes it.
The select itself is dropped if it selects between 0 and a sum of terms that all have such a coefficient.
No linear operation is added. Among known values, masks are combined, and each coefficient is selected once.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import Final, NamedTuple

from tapeless.interpreters.index_rows import Combination, IndexRow, index_row, is_elementwise
from tapeless.interpreters.simplifications.constant_values import is_zero
from tapeless.interpreters.simplifications.masks import regions
from tapeless.interpreters.simplifications.masks.coefficients import Coefficients, is_finite_nonzero
from tapeless.interpreters.simplifications.masks.mask import Mask, mask_of
from tapeless.interpreters.simplifications.masks.mask_arrays import MaskWriter
from tapeless.interpreters.simplifications.masks.operand_regions import region_of_operand
from tapeless.interpreters.simplifications.masks.regions import NOWHERE, Region
from tapeless.interpreters.writer import in_order
from tapeless.tracer import core, dtypes, passes
from tapeless.tracer.bodies import Bodies, bodies_of
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.terms.term import Sum, Use

Out = Sequence[Region | None]
Found = tuple[Equation, list[Region | None]]


def entered(eqn: Equation) -> Bodies | None:
    """Describe the bodies that masks of an equation's results are sunk into; None if they stay outside."""
    bodies = bodies_of(eqn)
    if bodies is None or bodies.fixed or (bodies.loops and (bodies.steps is None or len(bodies.each) > 1)):
        return None
    return bodies


def computes_masks(jaxpr: Jaxpr) -> bool:
    """Tell whether masks of a program may depend on the values that they would mask; then nothing is sunk in it."""
    return _is_mixed(jaxpr) or _compares(jaxpr)


def _is_mixed(jaxpr: Jaxpr) -> bool:
    """Tell whether an equation of a program computes primals along with tangents, as a loop of a jvp does.

    Such a program is unzipped before it is transposed. And masks of its tangents may be computed from its primals, so
    that the equation would depend on its own results.
    """
    return any(len({v.linear for v in eqn.outvars}) > 1 for eqn in jaxpr.eqns)


def _compares(jaxpr: Jaxpr) -> bool:
    """Tell whether booleans or integers of a program are computed from linear values, as in solvers of cotangents.

    Such a program is not linear in its inputs, and a mask may be computed from the values that it would mask.
    """
    made = (*jaxpr.invars, *[v for eqn in jaxpr.eqns if eqn.linear for v in eqn.outvars])
    return any(v.linear and dtypes.kind(v.aval.dtype) in "biu" for v in made)


@core.memoize_by_program
def chooses(jaxpr: Jaxpr) -> bool:
    """Tell whether a program, or a body in it, selects between linear values."""
    eqns = jaxpr.eqns if e.select_n_p in jaxpr.primitives else jaxpr.carrying
    return any(eqn.linear and _chooses_by(eqn) for eqn in eqns)


def _chooses_by(eqn: Equation) -> bool:
    bodies = entered(eqn)
    if bodies is None:
        return eqn.primitive is e.select_n_p
    programs = [body.jaxpr for body in bodies.each]
    return any(map(chooses, programs)) or _read_apart(programs)


def _read_apart(branches: Sequence[Jaxpr]) -> bool:
    """Tell whether some branch reads a linear operand, and another does not, so that branching chooses, too."""
    used = [(branch.invars, passes.used_variables(branch)) for branch in branches if len(branches) > 1]
    return len({tuple([v in read for v in invars if v.linear]) for invars, read in used}) > 1


class Sinking:
    """Mask sinking in one program: backwards, find where each value is read; then forwards, mask coefficients.

    The forward pass also finds the masks outside of which a value is zero. out: the region where each result is read.
    finite: the linear inputs that are known to be finite. into: sinks masks into the bodies of an equation.
    """

    def __init__(self, jaxpr: Jaxpr, out: Out, finite: Collection[Var], into: "IntoBodies") -> None:
        self.jaxpr: Final = jaxpr
        self._into = into
        self.w: Final = MaskWriter(jaxpr)
        self.coefficients: Final = Coefficients(self.w)
        self.where: dict[Atom, Region | None] = {}  # the region where each linear value is read
        self._programs: dict[Equation, Equation] = {}  # equations with masks sunk into their bodies
        self._noting = True  # is there a select that may be dropped?
        self._zero: dict[Atom, frozenset[Mask]] = {}  # masks outside of which a value is zero
        self._finite: dict[Atom, frozenset[Mask] | None] = dict.fromkeys(jaxpr.invars)  # or finite; None: everywhere
        self._finite.update({v: frozenset() for v in jaxpr.invars if v.linear and v not in finite})
        for v, region in zip(jaxpr.outvars, out, strict=True):
            self._read(v, region)

    def run(self) -> Jaxpr:
        """Return the program with its masks sunk, the same object if there are none."""
        linear = [eqn for eqn in self.jaxpr.eqns if eqn.linear]
        for eqn in self.jaxpr.eqns:
            if not eqn.linear:
                self.w.keep(eqn)
        for eqn in reversed(linear):
            self._ask(eqn)
        self._noting = any(self._one_case(eqn) is not None for eqn in linear)
        for eqn in linear:
            self.w.source = eqn.source
            self._visit(eqn)
        if not self.w.changed:
            return self.jaxpr
        return in_order(self.jaxpr, self.w.eqns, [self.w.now(v) for v in self.jaxpr.outvars])

    # ---- where values are read ---------------------------------------------------------------------------------

    def _ask(self, eqn: Equation) -> None:
        """Add the regions where the linear operands of an equation are read, from those of its results."""
        self.w.source = eqn.source
        out = [self.where.get(v, NOWHERE) for v in eqn.outvars]
        bodies = entered(eqn)
        if bodies is not None and (any(out) or _chooses_by(eqn)):
            self._programs[eqn], found = self._into(self, eqn, bodies, out)
        else:
            found = [region_of_operand(self.w, eqn, out, k) if x.linear else None for k, x in enumerate(eqn.invars)]
        for x, region in zip(eqn.invars, found, strict=True):
            self._read(x, region)

    def _read(self, x: Atom, region: Region | None) -> None:
        if x.linear:
            self.where[x] = regions.either(self.where.get(x, NOWHERE), region)

    def of_operand(self, eqn: Equation, k: int) -> Region | None:
        """Compute the region where operand `k` of an equation is read."""
        return region_of_operand(self.w, eqn, [self.where.get(v, NOWHERE) for v in eqn.outvars], k)

    def is_finite(self, x: Atom) -> bool:
        """Tell whether a linear value is known to be finite; in the backward pass only inputs can be."""
        return x in self._finite and self._finite[x] is None

    # ---- what is written ---------------------------------------------------------------------------------------

    def _visit(self, eqn: Equation) -> None:
        now = self.w.renamed(eqn)
        if eqn in self._programs and self._programs[eqn] is not eqn:
            self.w.changed = True
            now = self.w.renamed(self._programs[eqn])
        elif not self._noting and not any(self.where.get(v) for v in eqn.outvars):
            pass  # it is read everywhere, or nowhere
        elif (product := _product(eqn)) is not None:
            now = self._masked(eqn, product, now)
        elif self._noting:
            self._pass_on(eqn, now)
        only = self._only(eqn)
        if only is None or not self.w.replace(eqn, self.w.now(only)):
            self.w.keep(now)

    def _masked(self, eqn: Equation, product: "_Product", renamed: Equation) -> Equation:
        """Mask the coefficient of a product; records the masks outside of which the product is 0."""
        k = product.coefficient
        coefficient = renamed.invars[k]
        now = self.coefficients.masked(coefficient, self.of_operand(eqn, k), product.elsewhere)
        if self._noting and product.is_elementwise:
            self._note(eqn, eqn.invars[1 - k], now, product.elsewhere)
        if now is coefficient:
            return renamed
        self.w.changed = True
        return renamed.replace(invars=[now if i == k else y for i, y in enumerate(renamed.invars)])

    def _note(self, eqn: Equation, x: Atom, coefficient: Atom, other: float) -> None:
        """Transfer function of products: record the masks outside of which a product is zero, or finite."""
        out = eqn.outvars[0]
        zero, finite = self._zero.get(x, frozenset()), self._finite.get(x, frozenset())
        if not _fits(x, eqn):
            zero = frozenset()
        if is_finite_nonzero(self.w, coefficient):
            self._zero[out], self._finite[out] = zero, finite if _fits(x, eqn) or finite is None else frozenset()
            return
        region = self.where.get(out)
        masks = region[0] if region is not None and len(region) == 1 else ()
        held = frozenset([m for m in masks if self.coefficients.has(coefficient, m, other)])
        fine = held if finite is None else held & finite
        self._zero[out], self._finite[out] = (held & zero) | fine if other == 0 else held & zero, fine

    def _pass_on(self, eqn: Equation, now: Equation) -> None:
        """Transfer function of linear operations without coefficients, which move and add elements."""
        out, linear, row = eqn.outvars[0], [x for x in eqn.invars if x.linear], index_row(eqn)
        if row is None or len(eqn.outvars) != 1 or not _adds(row):
            return
        finite = [self._finite.get(x, frozenset()) for x in linear]
        if all(f is None for f in finite):
            self._finite[out] = None
        if not is_elementwise(row.results[0]) or not all(_fits(x, eqn) for x in linear):
            return
        if all(is_zero(self.w, x) for x in now.invars if not x.linear):
            self._zero[out] = _common([self._zero.get(x, frozenset()) for x in linear])
        known = [f for f in finite if f is not None]
        if known:
            self._finite[out] = _common(known)

    # ---- selects of one case -----------------------------------------------------------------------------------

    def _only(self, eqn: Equation) -> Var | None:
        """Return the only nonzero case of a select_n if it is itself zero wherever it is not selected; else None."""
        case = self._one_case(eqn)
        if case is None:
            return None
        x = eqn.invars[1 + case]
        return x if type(x) is Var and mask_of(eqn, case) in self._zero.get(x, ()) else None

    def _one_case(self, eqn: Equation) -> int | None:
        """Return the number of the only case of a select_n that is not zero, or None."""
        if eqn.primitive is not e.select_n_p:
            return None
        left = [k for k, x in enumerate(eqn.invars[1:]) if not is_zero(self.w, x)]
        return left[0] if len(left) == 1 else None


IntoBodies = Callable[[Sinking, Equation, Bodies, Out], Found]


class _Product(NamedTuple):
    """A product of a linear operand and operand number `coefficient`, which is set to `elsewhere` outside of masks."""

    coefficient: int
    elsewhere: float
    is_elementwise: bool


def _product(eqn: Equation) -> _Product | None:
    """Match an equation that multiplies a linear operand by a coefficient; None for others."""
    if len(eqn.invars) != 2 or eqn.invars[0].linear == eqn.invars[1].linear:
        return None
    row = index_row(eqn)
    if row is None or row.combination is not Combination.TERMS or len(row.results) != 1:
        return None
    return _product_of(row.results[0], 1 if eqn.invars[0].linear else 0)


@lru_cache(maxsize=4096)
def _product_of(terms: Sum, k: int) -> _Product | None:
    # In windows, which have brackets, a coefficient is read nearly everywhere: reducing the mask would not pay.
    uses = {f.operand: f.use for f in terms[0].factors} if len(terms) == 1 and not terms[0].brackets else {}
    return _Product(k, 1.0 if uses[k] is Use.DIVIDED else 0.0, is_elementwise(terms)) if len(uses) == 2 else None


@lru_cache(maxsize=4096)
def _adds(row: IndexRow) -> bool:
    """Tell whether a row only moves and adds elements, or applies a function to each."""
    if row.combination is Combination.TERMS:
        return all(len(t.factors) == 1 for terms in row.results for t in terms)
    return row.combination is Combination.POINTWISE or row.operation == "last"


def _common(groups: Sequence[frozenset[Mask]]) -> frozenset[Mask]:
    return reduce(and_, groups)


def _fits(x: Atom, eqn: Equation) -> bool:
    """Tell whether an operand has the shape of the result, so that a mask of one is one of the other."""
    return x.aval.shape == eqn.outvars[0].aval.shape
