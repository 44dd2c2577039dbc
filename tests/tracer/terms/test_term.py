"""The canonical form: terms that differ in names and order alone are one object."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer.terms.affine import Affine, symbol, variables
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Term, term, with_indices
from tests.tracer.terms.random_terms import looped, operands, terms


@settings(deadline=None, max_examples=60)
@given(terms(), st.randoms())
def test_renaming_gives_the_same_term(t: Term, random: Any):
    names = list(range(len(t.sizes)))
    random.shuffle(names)

    def rename(a: Affine) -> Affine:
        return a.renamed(names.__getitem__)

    factors = [f._replace(access=tuple(map(rename, f.access))) for f in t.factors]
    brackets = [with_indices(b, rename) for b in t.brackets]
    random.shuffle(factors)
    random.shuffle(brackets)
    sizes = dict(zip(names, t.sizes))
    again = term(tuple(map(rename, t.out)), sizes, factors, brackets, t.coefficient)
    assert again is t


@settings(deadline=None, max_examples=50)
@given(terms(), st.integers(0, 99))
def test_numbers_of_operands(t: Term, seed: int):
    """As a permutation, there and back."""
    turned = [3, 4, 0, 1, 2]
    x = operands(seed)
    moved = [x[turned.index(k)] for k in range(5)]
    there = t.with_operands(turned.__getitem__)
    np.testing.assert_array_equal(looped((there,), moved), looped((t,), x))
    assert there.with_operands(turned.index) is t


def test_variables_are_numbered_by_first_use():
    i, j, k = variables((2, 3, 4))
    t = term((j, i), (2, 3, 4), [Read(1, (k, i)), Read(0, (k, j))])
    a, b, c = variables((3, 2, 4))
    assert (t.out, t.sizes) == ((a, b), (3, 2, 4))
    assert t.factors == (Read(0, (c, a)), Read(1, (c, b)))


def test_equal_operands_in_any_order():
    """Σ_jk x[j] x[k] A[j,k] has two names for each of its variables, and y[j] tells them apart."""
    j, k = variables((3, 3))
    one = term((), (3, 3), [Read(0, (j,)), Read(0, (k,)), Read(1, (j, k)), Read(2, (j,))])
    other = term((), (3, 3), [Read(0, (k,)), Read(0, (j,)), Read(1, (k, j)), Read(2, (k,))])
    different = term((), (3, 3), [Read(0, (j,)), Read(0, (k,)), Read(1, (j, k)), Read(2, (k,))])
    assert one is other
    assert one is not different


def test_an_equality_has_one_sign():
    i, j = variables((3, 3))
    x = [Read(0, (i, j))]
    assert term((), (3, 3), x, [IsZero(i - j)]) is term((), (3, 3), x, [IsZero(j - i)])
    assert term((), (3, 3), x, [NotNegative(i - j)]) is not term((), (3, 3), x, [NotNegative(j - i)])
    assert term((), (3, 3), x, [NotNegative(i - j)]) is not term((), (3, 3), x, [IsZero(i - j)])


def test_brackets_are_kept_once():
    i, j = variables((3, 3))
    cases = [Lookup(Affine(1), 1, (i,)), Lookup(Affine(1), 1, (i,))]
    assert len(term((i, j), (3, 3), [Read(0, (i, j))], cases).brackets) == 1


def test_brackets_given_twice_name_no_variable():
    """The order of variables comes from the brackets, each once, however often they are written."""
    i, j, k = variables((1, 1, 1))
    brackets = [NotNegative(1 - (i - j + k)), NotNegative(i - j + k + 1), Lookup(j, 3, (i - j + k + 1,), None)]
    once = term((), (1, 1, 1), [], brackets)
    for more in (brackets[:1], brackets[1:2], brackets[2:]):
        assert term((), (1, 1, 1), [], brackets + more) is once


def test_coefficients_of_other_types_are_other_terms():
    (i,) = variables((3,))
    one, other = [term((i,), (3,), [Read(0, (i,))], coefficient=c) for c in (2, 2.0)]
    assert one is not other
    assert one.unit is other.unit


def test_a_symbol_with_one_value_is_a_number():
    assert symbol(0, 2, 2) == Affine(2)
    assert symbol(0, 0, 2).bounds(()) == (0, 2)
