"""Terms over adjacent ranges as one: what is joined, what is not, and that values stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer.formulas.adjacent_ranges import with_adjacent_ranges_joined
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.solve import NO_AXES, explicit, merge_terms
from tapeless.tracer.terms.term import IsZero, NotNegative, Read, Sum, Term, term
from tests.tracer.terms.random_terms import OUT, looped, operands, terms

A, B = Affine(0, ((0, 1),)), Affine(0, ((1, 1),))  # indices of the result
ROWS = Read(1, (A,))  # of a vector of five elements


def between(low: int, high: int, coefficient: float = 1, read: Read = ROWS) -> Term:
    """The elements from low to high of the vector, in rows of the result."""
    brackets = [NotNegative(A - low), NotNegative(high - A)]
    found = explicit(term((A, B), OUT, [read], brackets, coefficient), OUT)
    assert found is not None
    return found


def joined(*given: Term) -> Sum:
    return with_adjacent_ranges_joined(merge_terms(given), OUT, NO_AXES)


@pytest.mark.parametrize(("parts", "whole"), [
    ([between(1, 3), between(0, 0)], between(0, 3)),
    ([between(0, 0), between(1, 2)], between(0, 2)),
    ([between(0, 1), between(2, 2), between(3, 3)], between(0, 3)),
    ([between(1, 2, 2.5), between(3, 3, 2.5)], between(1, 3, 2.5)),
])  # fmt: skip
def test_what_is_joined(parts: list[Term], whole: Term):
    assert joined(*parts) == (whole,)
    assert joined(*reversed(parts)) == (whole,)


@pytest.mark.parametrize("parts", [
    [between(1, 2), between(0, 0, -1)],  # another number
    [between(2, 3), between(0, 0)],  # not adjacent
    [between(1, 2), between(0, 0, read=Read(1, (A + 1,)))],  # another element
])  # fmt: skip
def test_what_is_not(parts: list[Term]):
    assert set(joined(*parts)) == set(parts)


def test_a_joint_term_that_is_there_already():
    """Twice the same is one term of twice the number; nothing is lost."""
    assert joined(between(0, 3), between(1, 3), between(0, 0)) == (between(0, 3, 2),)


@settings(deadline=None, max_examples=100)
@given(terms(), st.integers(0, 1), st.integers(0, 3), st.integers(0, 3), st.integers(0, 99))
def test_values_stay(t: Term, axis: int, low: int, high: int, seed: int):
    """Of random terms, cut in three along an axis: the index before a range, the range, and the index after it."""
    index = (A, B)[axis]
    cuts = [
        [IsZero(index - (low - 1))], [NotNegative(index - low), NotNegative(high - index)], [IsZero(index - (high + 1))]
    ]  # fmt: skip
    whole = explicit(t, OUT)
    parts = [explicit(whole.with_brackets([*whole.brackets, *cut]), OUT) for cut in cuts] if whole is not None else []
    given = merge_terms([x for x in parts if x is not None])
    x = operands(seed)
    found = with_adjacent_ranges_joined(given, OUT, NO_AXES)
    np.testing.assert_array_equal(looped(found, x), looped(given, x))
    assert len(found) <= len(given)
