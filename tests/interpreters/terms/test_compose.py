"""Composing sums: values are kept, terms stay in order, and every limit ends it where it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.interpreters.terms.compose import ComposedTerms, Composer, NumberedAtoms, Substitution
from tapeless.tracer.jaxpr import Var
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.term import Read, Term, term
from tapeless.tracer.terms.term_limits import Limit
from tapeless.tracer.types import ShapedArray
from tests.tracer.terms.random_terms import SHAPES, looped, operands, terms

producers = terms(out=SHAPES[0], reading=(1,))


@settings(deadline=None, max_examples=60)
@given(terms(), terms(), producers, producers, st.integers(0, 99))
def test_inlining_keeps_the_value(one: Term, other: Term, first: Term, second: Term, seed: int):
    """Operand 0 of a sum is itself a sum, which may be read several times in one term."""
    x = operands(seed)
    x[0] = looped((first, second), x, SHAPES[0])
    found, passed = Composer().inlined((one, other), 0, (first, second))
    assert passed is None and all(f.operand != 0 for t in found for f in t.factors)
    np.testing.assert_array_equal(looped(tuple(found), x), looped((one, other), x))


I = variables((5,))  # noqa: E741  # the index, as on paper


def product_of(*factors: int) -> Term:
    return term(I, (5,), [Read(k, I) for k in factors])


CUBE = (product_of(0, 0, 0),)  # of operand 0
SUM = (product_of(1), product_of(2))


def limit(n: int) -> Limit:
    return Limit(n, "N", "things", "nothing")


# Multiplying out (x1 + x2)^3 composes 2 + 4 + 8 terms, has 8 of them before equal ones are merged, and 3 factors each.
@pytest.mark.parametrize(("field", "least"), [("compositions", 14), ("pending", 8), ("terms", 8), ("factors", 3)])
def test_limits(field: str, least: int):
    for n, stops in ((least, False), (least - 1, True)):
        composer = Composer(**{field: limit(n)})
        found, passed = composer.inlined(CUBE, 0, SUM)
        assert ((passed or composer.passed_by(found)) is not None) == stops, n


def test_what_counts_refuse_composing_would_refuse():
    for n in range(1, 5):
        producer = tuple([product_of(k + 1) for k in range(n)])
        composer = Composer(compositions=limit(3))
        if composer.passed_by_counts(CUBE, 0, n) is not None:
            assert composer.inlined(CUBE, 0, producer).passed is not None


def test_terms_stay_in_order():
    """The first factor is multiplied out first; rewritten terms stand where the old one stood."""

    def step(t: Term) -> Substitution | tuple[Term, ...] | None:
        ks = [f.operand for f in t.factors]
        if 9 in ks:
            return product_of(7), product_of(8)
        return Substitution(ks.index(0), SUM) if 0 in ks else None

    reader = (product_of(0, 3), product_of(9), product_of(0))
    found = Composer().composed(reader, step)
    assert found == ComposedTerms([product_of(*ks) for ks in ((1, 3), (2, 3), (7,), (8,), (1,), (2,))], None)


def test_atoms_are_numbered_as_they_are_met():
    x, y = [Var(ShapedArray((), np.dtype(np.float32))) for _ in range(2)]
    numbered = NumberedAtoms([x, x])
    assert [numbered.number(v) for v in (y, x, y)] == [1, 0, 1]
    assert numbered.atoms == [x, y]
