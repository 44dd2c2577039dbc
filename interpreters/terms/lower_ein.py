"""Lower every `ein` to other primitives: the last pass before a program is printed as StableHLO, which has no `ein`."""

from collections.abc import Sequence
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.terms.joins import (
    ranks_of_entries,
    shared_indices,
    split_at_index,
    with_one_index,
)
from tapeless.interpreters.terms.lower_terms import lower_sum
from tapeless.interpreters.terms.taps import at_values, in_taps
from tapeless.interpreters.writer import Writer, fill_array
from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, list_inner_jaxprs, map_carried
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.ein import ein_p, operands_of
from tapeless.tracer.terms.affine import Access, Variable, variable
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import NotNegative, Sum, Term, term, variables_in, variables_of
from tapeless.tracer.types import ShapedArray

# Periodic reads and writes, `x[i + 1 - n q]` of an axis of n, become slices side by side: one term for each period q.
#
# Search terms: circular shift, roll, periodic boundary condition, torus, index set splitting. For each index at most
# one value of q is inside of the axis, so the sum over q is a choice. With q fixed, what the brackets leave of the
# other variables is a box; the boxes are disjoint, and `lower_terms.py` concatenates them. As one sum, all periods
# would be read everywhere, behind masks, and each read written as a reverse of padded rows (docs/xla_defects.md).
# Left out: indices of several variables, as in `x[(i + j) % n]`, where no box is left.


def in_periods(t: Term, operands: list[Atom], shape: tuple[int, ...]) -> Sum:
    """Rewrite a term as one for each choice of its periods; the term alone if that leaves brackets, or is too many.

    Args:
      operands: the arrays that the term reads.
      shape: of the result.
    """
    accesses = [(f.access, operands[f.operand].aval.shape) for f in t.factors]
    periods = sorted({v for each in ((t.out, shape), *accesses) for v in _periods(*each)} & _bracketed(t))
    if not periods or limits.PERIODS.is_passed(prod([t.sizes[v] for v in periods])):
        return (t,)
    choices = product(*[range(t.sizes[v]) for v in periods])
    found = [solve_term(at_values(t, dict(zip(periods, choice, strict=True)))) for choice in choices]
    parts = tuple([part for part in found if part is not None])
    return (t,) if any(isinstance(b, NotNegative) for part in parts for b in part.brackets) else parts


def _periods(access: Access, shape: tuple[int, ...]) -> set[Variable]:
    """Return the variables of which at most one value is inside of an axis, whatever the others are."""
    shared = [(a, n) for a, n in zip(access, shape, strict=True) if len(a.variables) > 1]
    return {v for a, n in shared for v in variables_of(a) if abs(a.coefficient(v)) >= n}


def _bracketed(t: Term) -> frozenset[Variable]:
    """Return the variables that share a bracket [index >= 0] with others."""
    return variables_in([b.index for b in t.brackets if isinstance(b, NotNegative) and len(b.index.variables) > 1])


# Narrow sums to bands: with the brackets [0 <= a <= w], a summed variable becomes d = a, which has w + 1 values.
#
# Search terms: banded matrix, diagonal storage, loop skewing. The sum then takes as many products as the band has
# elements, not as many as the matrix.


def in_bands(t: Term) -> Term | None:
    """Solve a term, and replace its summed variables by narrower variables of bands; None if it is 0."""
    found = solve_term(t)
    inequalities = [b for b in found.brackets if isinstance(b, NotNegative)] if found is not None else []
    for a, b in permutations(inequalities, 2):
        width = a.index + b.index
        if found is not None and width.is_constant:
            after = _with_band(found, a, b, width.constant + 1)
            if after is not None:
                return in_bands(after)
    return found


def _with_band(t: Term, a: NotNegative, b: NotNegative, size: int) -> Term | None:
    """Replace the largest summed variable to which two brackets leave `size` values; None if none has more."""
    kept = variables_in(t.out)
    options = [v for v, c in a.index.variables if abs(c) == 1 and v not in kept and t.sizes[v] > size]
    if not options:
        return None
    v, d = max(options, key=lambda v: (t.sizes[v], -v)), variable(len(t.sizes))
    sign = a.index.coefficient(v)
    value = (d - a.index.without(v)) * sign
    out, factors, brackets = t.changed(lambda index: index.substituted(v, value))
    others = [new for new, old in zip(brackets, t.brackets) if old not in (a, b)]
    sizes = {u: n for u, n in enumerate((*t.sizes, size)) if u != v}
    in_range = NotNegative(value), NotNegative(t.sizes[v] - 1 - value)
    return term(out, sizes, factors, (*in_range, *others), t.coefficient)


_COUNTS = np.dtype(np.float32)  # dtype in which booleans are added up: a sum is 0 only if all are false


@core.memoize_by_program
def without_ein(jaxpr: Jaxpr) -> Jaxpr:
    """Lower every `ein` of a program, and of the bodies in it, to other primitives.

    Returns: the same object if there is no `ein`. Remembered for as long as `jaxpr` lives.
    """
    if not _has_ein(jaxpr):
        return jaxpr
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        if eqn.primitive is ein_p:
            w.source = eqn.source
            w.substitute(eqn.outvars[0], _written_out(w, now))
        elif any(map(_has_ein, list_inner_jaxprs(eqn))):
            w.changed = True
            w.keep(now.replace(params=map_carried(without_ein, eqn)))
        else:
            w.keep(now)
    w.sparser = False  # linear marks need not be inferred again: a program is not transposed after lowering
    return w.finish()


@core.memoize_by_program
def _has_ein(jaxpr: Jaxpr) -> bool:
    return ein_p in jaxpr.primitives or any(map(_has_ein, jaxpr.programs))


# ---- one equation --------------------------------------------------------------------------------------------


def _written_out(w: Writer, eqn: Equation) -> Atom:
    (out,) = [v.aval for v in eqn.outvars]
    is_truth = dtypes.is_bool(out.dtype)
    terms, operands = list[Term](), list(eqn.invars)
    for t in eqn.params["terms"] if 0 not in out.shape else ():
        after = in_bands(t)
        if after is not None and not any(0 in eqn.invars[k].aval.shape for k in operands_of(after)):
            after = _without_joins(w, after, operands, out, eqn.params["precision"])
            after = after.unit if is_truth else after
            terms += [tap for part in in_periods(after, operands, out.shape) for tap in in_taps(part)]
    return _summed(w, terms, operands, out, eqn.params["precision"])


def _summed(w: Writer, terms: Sequence[Term], operands: Sequence[Atom], out: ShapedArray, precision: Any) -> Atom:
    """Write a sum of terms as operations; truth values are counted."""
    is_truth = dtypes.is_bool(out.dtype)
    aval = out.update(dtype=_COUNTS) if is_truth else out
    total = lower_sum(w, tuple(terms), operands.__getitem__, aval, precision, guarded=True)
    assert total is not None
    return w.write(e.ne_p, total, fill_array(w, 0, total.aval)) if is_truth else total


def _without_joins(w: Writer, t: Term, operands: list[Atom], out: ShapedArray, precision: Any) -> Term:
    """Write what entries of several relations sum at one index as arrays, which become operands of the term."""
    while True:
        split = split_at_index(t)
        if split is not None:
            array = out.update(shape=(split.size,))
            part = _without_joins(w, split.part, operands, array, precision)
            operands.append(_summed(w, [part], operands, array, precision))
            t = split.rest(len(operands) - 1)
        elif (shared := shared_indices(t)) is not None:
            operands += ranks_of_entries(w, shared, operands)
            t = with_one_index(t, shared, (len(operands) - 2, len(operands) - 1))
        else:
            return t
