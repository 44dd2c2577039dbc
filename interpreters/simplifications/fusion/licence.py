"""Licence to sum in another order (reassociation): which values may be substituted into their readers, by dtype.

Partial sums must neither overflow nor be much larger than the total. So nothing is reordered in dtypes of few
exponents. A sum of unrounded addends is not split, as these may cancel exactly, unless they never meet in an element;
and equal addends of opposite signs are not cancelled. Integers wrap around in any order. Through a conversion to
another dtype, only unrounded values are substituted.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

from tapeless.tracer import dtypes
from tapeless.tracer.terms.solve import write_apart
from tapeless.tracer.terms.term import Sum, Term, Use, variables_in

RANGE = 1e30  # a float dtype must hold it: with less, as 65504 of float16, partial sums soon overflow


@cache
def sums_in_any_order(dtype: Any) -> bool:
    """Tell whether partial sums in a dtype stay in its range, whatever the order."""
    return not dtypes.is_inexact(dtype) or float(dtypes.finfo(dtype).max) > RANGE


@lru_cache(maxsize=4096)
def only_moves(terms: Sum) -> bool:
    """Tell whether each term moves elements of one operand unchanged; two terms may still write to one element."""
    return all(len(t.factors) <= 1 and t.coefficient == 1 and not find_summed(t) and not _divides(t) for t in terms)


@lru_cache(maxsize=4096)
def is_unrounded(terms: Sum, dtype: Any) -> bool:
    """Tell whether each element is an operand's or its negative, so that a conversion of `dtype` commutes with it."""
    signs = (1, -1) if dtypes.is_inexact(dtype) else (1,)
    if any(len(t.factors) > 1 or t.coefficient not in signs or find_summed(t) or _divides(t) for t in terms):
        return False
    return are_apart(terms)


def are_apart(terms: Sequence[Term]) -> bool:
    """Tell whether no two terms write to the same element."""
    return all(write_apart(a, b) for a, b in combinations(terms, 2))


def _divides(t: Term) -> bool:
    return any(f.use is Use.DIVIDED for f in t.factors)


def find_summed(t: Term) -> set[int]:
    """Return the variables that a term is summed over."""
    return set(range(len(t.sizes))) - variables_in(t.out)


@lru_cache(maxsize=4096)
def may_be_torn(terms: Sum, literals: tuple[int, ...], linear: bool, dtype: Any) -> bool:
    """Tell whether the addends of a sum may be added to another sum one by one.

    Args:
      literals: operands that are numbers; a product with them does not count as rounded.
    """
    if linear or not dtypes.is_inexact(dtype):
        return True
    exact = [t for t in terms if sum(f.operand not in literals for f in t.factors) < 2]
    return are_apart(exact)


def may_cancel(linear: bool, dtype: Any) -> bool:
    """Tell whether x + y - x may become y. Not for floats: it is the part of y that x + y holds (compensated sums)."""
    return linear or not dtypes.is_inexact(dtype)
