"""The evaluator against a loop over the box, in every semiring, and what brackets keep out."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer.terms.affine import Affine, variables
from tapeless.tracer.terms.evaluate import BOOLEANS, COUNTS, Semiring, evaluate_sum, numbers
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Term, Use, term
from tests.tracer.terms.random_terms import MASK, OUT, looped, operands, terms

FLOATS = numbers(np.float64)
i, j, k = variables((0, 0, 0))


@settings(deadline=None, max_examples=120)
@given(terms(), st.integers(0, 99))
def test_numbers(t: Term, seed: int):
    x = operands(seed)
    np.testing.assert_array_equal(evaluate_sum((t,), OUT, x, FLOATS), looped((t,), x))


@settings(deadline=None, max_examples=80)
@given(terms(), st.integers(0, 99))
def test_supports_and_counts(t: Term, seed: int):
    """Of numbers that are 0 or 1 a count is the sum of products, and a support where that is not 0."""
    x = operands(seed)
    ones = [x[0] != 0, x[1] != 0, *x[MASK:]]
    counts = looped((t.unit,), ones)
    np.testing.assert_array_equal(evaluate_sum((t,), OUT, ones, COUNTS), counts)
    np.testing.assert_array_equal(evaluate_sum((t,), OUT, ones, BOOLEANS), counts > 0)


@settings(deadline=None, max_examples=50)
@given(st.lists(terms(), max_size=3), st.integers(0, 99))
def test_sums(several: list[Term], seed: int):
    x = operands(seed)
    solutions = tuple([s for t in several if (s := solve_term(t)) is not None])
    np.testing.assert_array_equal(evaluate_sum(tuple(several), OUT, x, FLOATS), evaluate_sum(solutions, OUT, x, FLOATS))


def test_extremes():
    """The greatest along an axis, and what nobody writes."""
    x = np.array([[1.0, 5.0], [7.0, 2.0]])
    greatest = Semiring(np.dtype(np.float64), -np.inf, np.maximum)
    t = term((i + 1,), (2, 2), [Read(0, (i, j))])
    np.testing.assert_array_equal(evaluate_sum((t,), (3,), [x], greatest), [-np.inf, 5, 7])


def test_a_bracket_keeps_infinities_out():
    x, y = np.array([[np.inf, 1.0], [2.0, np.nan]]), np.array([0.0, 3.0])
    triangle = term((i,), (2, 2), [Read(0, (i, j)), Read(1, (j,))], [NotNegative(j - i), NotNegative(i + j - 1)])
    np.testing.assert_array_equal(evaluate_sum((triangle,), (2,), [x, y], FLOATS), [3, np.nan])
    beside = term((i,), (2, 2), [Read(0, (i, j)), Read(1, (j,))], [IsZero(i + j - 1)])
    np.testing.assert_array_equal(evaluate_sum((beside,), (2,), [x, y], FLOATS), [3, 0])


def test_quotients_and_conjugates():
    x, y = np.array([1 + 2j, 3j]), np.array([2j, 0.0])
    t = term((i,), (2,), [Read(0, (i,), Use.CONJUGATED), Read(1, (i,), Use.DIVIDED)], [IsZero(i)], coefficient=4)
    np.testing.assert_allclose(evaluate_sum((t,), (2,), [x, y], numbers(complex)), [4 * (1 - 2j) / 2j, 0])


def test_positions_that_an_array_holds():
    """Out of range is nothing; more than an index array at a time; positions as wide as their dtype."""
    x = np.arange(12.0).reshape(3, 4)
    rows, columns = np.array([2, -1, 0]), np.array([3, 0, 2**63 + 1], np.uint64)
    t = term((i,), (3, 3, 4), [Read(0, (j, k))], [Lookup(j, 1, (i,)), Lookup(k, 2, (i,), (0, 3))])
    np.testing.assert_array_equal(evaluate_sum((t,), (3,), [x, rows, columns], FLOATS), [11, 0, 3])
    written = term((j,), (3, 3), [Read(0, (i,))], [Lookup(j, 1, (i,))])
    np.testing.assert_array_equal(evaluate_sum((written,), (3,), [x[0, 1:], np.array([1, 1, 7])], FLOATS), [0, 3, 0])


def test_nothing_of_nothing():
    empty = term((), (0,), [Read(0, (i,))])
    assert evaluate_sum((empty,), (), [np.zeros(0)], FLOATS) == 0
    never = term((i,), (2,), [Read(0, (i,))], [IsZero(Affine(1))])
    np.testing.assert_array_equal(evaluate_sum((never,), (2,), [np.zeros(0)], FLOATS), [0, 0])


def test_dtypes_that_numpy_does_not_know():
    x = np.arange(3).astype("bfloat16")
    t = term((i,), (3, 3), [Read(0, (i,)), Read(0, (j,))])
    found = evaluate_sum((t,), (3,), [x], numbers(x.dtype))
    np.testing.assert_array_equal(found.astype(np.float32), [0, 3, 6])
