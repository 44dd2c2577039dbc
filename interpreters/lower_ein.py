"""Lower every `ein` to other primitives: the last pass before a program is printed as StableHLO, which has no `ein`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.interpreters.simplifications.fusion.bands import in_bands
from tapeless.interpreters.simplifications.fusion.joins import (
    ranks_of_entries,
    shared_indices,
    split_at_index,
    with_one_index,
)
from tapeless.interpreters.simplifications.fusion.lower_terms import lowered
from tapeless.interpreters.simplifications.fusion.periods import in_periods
from tapeless.interpreters.simplifications.fusion.taps import in_taps
from tapeless.interpreters.writer import Writer, filled
from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, carried, map_carried
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.ein import ein_p, operands_of
from tapeless.tracer.terms.term import Term
from tapeless.tracer.types import ShapedArray

_COUNTS = np.dtype(np.float32)  # dtype in which booleans are added up: a sum is 0 only if all are false


@core.remembered
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
            w.place = eqn.source
            w.substitute(eqn.outvars[0], _written_out(w, now))
        elif any(map(_has_ein, carried(eqn))):
            w.changed = True
            w.keep(now.replace(params=map_carried(without_ein, eqn)))
        else:
            w.keep(now)
    w.sparser = False  # linear marks need not be inferred again: a program is not transposed after lowering
    return w.finish()


@core.remembered
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
    total = lowered(w, tuple(terms), operands.__getitem__, aval, precision, exact=True)
    assert total is not None
    return w.write(e.ne_p, total, filled(w, 0, total.aval)) if is_truth else total


def _without_joins(w: Writer, t: Term, operands: list[Atom], out: ShapedArray, precision: Any) -> Term:
    """Write what entries of several relations sum at one index as arrays, which become operands that a term reads."""
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
