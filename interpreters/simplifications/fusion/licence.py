"""Licence to sum in another order: which values may be written into their readers, by dtype.

Partial sums must neither leave the range of the dtype nor be much larger than what they are parts of. So nothing is
done in dtypes of few exponents, nor are sums torn apart whose addends were not rounded, as they may cancel exactly,
unless the addends are never at one place, nor are equal addends of opposite signs left out. Integers wrap around in any
order. Values move to wider dtypes unrounded.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any

from tapeless.tracer import dtypes
from tapeless.tracer.terms.solve import write_apart
from tapeless.tracer.terms.term import Sum, Term, Use, variables_of

RANGE = 1e30  # what a float must be able to hold: with less, like 65504 of float16, partial sums are soon infinite


@cache
def sums_in_any_order(dtype: Any) -> bool:
    """Tell whether partial sums in a dtype stay in its range."""
    return not dtypes.is_inexact(dtype) or float(dtypes.finfo(dtype).max) > RANGE


def only_moves(terms: Sum) -> bool:
    """Tell whether each element of a value is one of another, so that it may be converted before as after."""
    return all(len(t.factors) <= 1 and t.coefficient == 1 and not summed(t) and not _divides(t) for t in terms)


def is_unrounded(terms: Sum, dtype: Any) -> bool:
    """Tell whether each element of a value is one of another or its negative, so that converting commutes with it."""
    signs = (1, -1) if dtypes.is_inexact(dtype) else (1,)
    if any(len(t.factors) > 1 or t.coefficient not in signs or summed(t) or _divides(t) for t in terms):
        return False
    return are_apart(terms)


def are_apart(terms: Sequence[Term]) -> bool:
    """Tell whether no element of a value is written by two terms."""
    return all(write_apart(a, b) for a, b in combinations(terms, 2))


def _divides(t: Term) -> bool:
    return any(f.use is Use.DIVIDED for f in t.factors)


def summed(t: Term) -> set[int]:
    """The variables that a term is summed over."""
    return set(range(len(t.sizes))).difference(*[variables_of(a) for a in t.out])


def may_be_torn(terms: Sum, literals: Sequence[int], linear: bool, dtype: Any) -> bool:
    """Tell whether the terms of a sum may be summed one by one.

    Args:
      literals: operands that are numbers, which multiplying by does not count as rounding.
    """
    if linear or not dtypes.is_inexact(dtype):
        return True
    exact = [t for t in terms if sum(f.operand not in literals for f in t.factors) < 2]
    return are_apart(exact)


def may_cancel(linear: bool, dtype: Any) -> bool:
    """Tell whether x + y - x may be y: of floats it is the part of y that is not lost, as in compensated sums."""
    return linear or not dtypes.is_inexact(dtype)
