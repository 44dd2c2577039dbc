"""Solving and composing: the same values before and after, and the forms that they are for."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer.terms.affine import Affine, symbol, variables
from tapeless.tracer.terms.solve import compose_terms, merge_terms, solve_term, transposed
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Sum, Term, Use, term
from tapeless.tracer.terms.term_printing import term_text
from tests.tracer.terms.random_terms import OUT, SHAPES, looped, operands, terms

seeds = st.integers(0, 99)


def some(*found: Term | None) -> Sum:
    return tuple([t for t in found if t is not None])


def text(t: Term | None) -> str:
    assert t is not None
    return term_text(t)


# ---- random terms --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(terms(), seeds)
def test_solving_keeps_the_value(t: Term, seed: int):
    """And no range is lost: the oracle refuses to read or write outside."""
    x = operands(seed)
    np.testing.assert_array_equal(looped(some(solve_term(t)), x), looped((t,), x))


@settings(deadline=None, max_examples=80)
@given(terms())
def test_solving_twice_is_solving_once(t: Term):
    once = solve_term(t)
    assert once is None or solve_term(once) is once


@settings(deadline=None, max_examples=120)
@given(terms(), terms(out=SHAPES[0], reading=(1,)), seeds)
def test_composing_keeps_the_value(reader: Term, producer: Term, seed: int):
    """Operand 0 of the reader is what the producer gives."""
    x = operands(seed)
    x[0] = looped((producer,), x, SHAPES[0])
    at = next((k for k, f in enumerate(reader.factors) if f.operand == 0), None)
    if at is not None:
        np.testing.assert_array_equal(looped(some(compose_terms(reader, at, producer)), x), looped((reader,), x))


@settings(deadline=None, max_examples=60)
@given(terms(), terms(out=SHAPES[0], reading=(1,)), terms(out=SHAPES[0], reading=(1,)), seeds)
def test_composing_with_a_sum(reader: Term, one: Term, other: Term, seed: int):
    x = operands(seed)
    x[0] = looped((one, other), x, SHAPES[0])
    at = next((k for k, f in enumerate(reader.factors) if f.operand == 0), None)
    if at is not None:
        found = merge_terms(some(compose_terms(reader, at, one), compose_terms(reader, at, other)))
        np.testing.assert_array_equal(looped(found, x), looped((reader,), x))


@settings(deadline=None, max_examples=60)
@given(terms(reading=(0, 1)), seeds)
def test_transposing(t: Term, seed: int):
    """⟨y, J x⟩ = ⟨Jᵀ y, x⟩ in the first factor; transposing again gives the term."""
    x, y = operands(seed), np.random.default_rng(seed).integers(-3, 4, OUT).astype(np.float64)
    k = t.factors[0].operand
    if sum(f.operand == k for f in t.factors) > 1:
        return
    given = [*x]
    given[k] = y
    back = transposed(t, 0)
    pulled = looped((back,), given, SHAPES[k])
    assert np.sum(pulled * x[k]) == np.sum(y * looped((t,), x))
    at = next(i for i, f in enumerate(back.factors) if f.operand == k)
    assert transposed(back, at) is t


@settings(deadline=None, max_examples=60)
@given(st.lists(terms(), max_size=4), seeds)
def test_merging_keeps_the_value(several: list[Term], seed: int):
    x = operands(seed)
    np.testing.assert_array_equal(looped(merge_terms(several), x), looped(tuple(several), x))


# ---- equalities ----------------------------------------------------------------------------------------------

i, j, k, m = variables((0, 0, 0, 0))


def reading(sizes: Any, out: Any, *brackets: Any, access: Any = None) -> Term | None:
    read = out if access is None else access
    return solve_term(term(out, sizes, [Read(0, tuple(read))], brackets))


def test_an_equality_of_two_variables_is_a_diagonal():
    assert text(reading((4, 4), (i, j), IsZero(i - j))) == "out[i,i] += a[i,i]"


def test_a_range_that_is_not_implied_stays():
    """[i = j + 2] in 5 by 4: j runs over 3 of its values."""
    found = reading((5, 4), (i, j), IsZero(i - j - 2))
    assert found is not None
    assert found.sizes == (3,)
    assert text(found) in ("out[i + 2,i] += a[i + 2,i]", "out[i,i - 2] += a[i,i - 2]")


def test_digits_fall_apart():
    """4 i + j = 4 k + m with j, m < 4: a reshape and its inverse cancel."""
    found = reading((3, 4, 3, 4), (i, j), IsZero(4 * i + j - 4 * k - m), access=(k, m))
    assert text(found) == "out[i,j] += a[i,j]"


def test_digits_with_a_constant():
    """4 i + j = 9 is i = 2 and j = 1."""
    assert text(reading((3, 4), (i, j), IsZero(4 * i + j - 9))) == "out[2,1] += a[2,1]"


def test_digits_of_multiples_and_a_rest():
    """5 i = 4 j + k with k < 4 is i = j = k, and 5 i + 1 the diagonal beside it; 3 i + 1 is none."""
    assert text(reading((4, 4, 4), (i,), IsZero(5 * i - 4 * j - k), access=(j, k))) == "out[i] += a[i,i]"
    assert text(reading((3, 4, 4), (i,), IsZero(5 * i + 1 - 4 * j - k), access=(j, k))) == "out[i] += a[i,i + 1]"
    assert (
        "["
        in text(reading((4, 4, 4), (i,), IsZero(3 * i + 1 - 4 * j - k), access=(j, k))).split("+=")[1].split("a[")[0]
    )


def test_divisors():
    assert reading((5, 5), (i, j), IsZero(2 * i - 2 * j - 1)) is None
    assert text(reading((5, 5), (i, j), IsZero(2 * i - 2 * j))) == "out[i,i] += a[i,i]"


def test_two_variables():
    """2 i = 3 j below 8: multiples of 3 and of 2."""
    found = reading((8, 8), (i, j), IsZero(2 * i - 3 * j))
    assert found is not None
    assert found.sizes == (3,)
    assert text(found) == "out[3i,2i] += a[3i,2i]"


def test_out_of_bounds_is_nothing():
    assert reading((3, 3), (i, j), IsZero(i - j - 3)) is None
    assert reading((3, 3), (i, j), NotNegative(i - j - 3)) is None


def test_what_nothing_solves_stays():
    found = solve_term(term((k,), (4, 4, 4), [Read(0, (i, j))], [IsZero(2 * i + 3 * j - 5 * k)]))
    assert found is not None
    assert found.brackets


def test_a_sum_of_variables_that_is_zero():
    assert text(reading((3, 3), (i, j), IsZero(i + j))) == "out[0,0] += a[0,0]"


def test_a_correlation():
    """The adjoint in x of f[i] = Σ_j g[j] x[i+j], read at every u: [u = i + j] is where the result is written."""
    adjoint = transposed(term((i,), (6, 3), [Read(0, (j,)), Read(1, (i + j,))]), 1)
    read = term((i,), (8,), [Read(2, (i,))])
    assert text(compose_terms(read, 0, adjoint)) == "out[i + j] += a[i] b[j]"
    fewer = term((i,), (6,), [Read(2, (i,))])
    assert text(compose_terms(fewer, 0, adjoint)) == "out[i] += Σ j. [i >= j] a[j] b[i - j]"


# ---- inequalities --------------------------------------------------------------------------------------------


def test_an_inequality_of_one_variable_is_a_range():
    found = reading((8,), (i,), NotNegative(2 * i - 5))
    assert found is not None
    assert (found.sizes, term_text(found)) == ((5,), "out[i + 3] += a[i + 3]")


def test_a_digit_that_does_not_decide():
    """2 i + j >= 4 with j < 2 is i >= 2."""
    found = reading((4, 2), (i, j), NotNegative(2 * i + j - 4))
    assert found is not None
    assert (found.sizes, term_text(found)) == ((2, 2), "out[i + 2,j] += a[i + 2,j]")


def test_opposite_inequalities():
    assert text(reading((4, 4), (i, j), NotNegative(i - j), NotNegative(j - i))) == "out[i,i] += a[i,i]"
    assert reading((4, 4), (i, j), NotNegative(i - j), NotNegative(j - i - 1)) is None


def test_the_stricter_of_two():
    found = reading((4, 4), (i, j), NotNegative(i - j), NotNegative(i - j - 1))
    assert found is not None
    assert found.brackets == (NotNegative(i - j - 1),)


def test_what_nothing_reads_is_a_factor():
    assert text(solve_term(term((i,), (3, 5), [Read(0, (i,))]))) == "out[i] += 5 a[i]"


def test_a_symbol_stays():
    s = symbol(1, 0, 3)
    found = solve_term(term((j,), (7, 4), [Read(0, (i,))], [IsZero(i - j - s)]))
    assert text(found) == "out[i] += a[i + clip(b, 0, 3)]"


# ---- lookups -------------------------------------------------------------------------------------------------


def case(k: int, operand: int = 1) -> Lookup:
    return Lookup(Affine(k), operand, (i,), (0, 1))


def test_a_choice_and_its_opposite_are_nothing():
    assert reading((3,), (i,), case(0), case(1)) is None
    assert reading((3,), (i,), case(2)) is None


def test_all_cases_of_a_choice_are_one_term():
    both = [term((i,), (3,), [Read(0, (i,))], [case(k)]) for k in (0, 1)]
    assert merge_terms(both) == (term((i,), (3,), [Read(0, (i,))]),)
    assert len(merge_terms([both[0], both[1].scaled(2)])) == 2


def test_one_position_looked_up_twice():
    t = term((i,), (3, 5, 5), [Read(0, (j, k))], [Lookup(j, 1, (i,)), Lookup(k, 1, (i,))])
    assert text(solve_term(t)) == "out[i] += Σ j. [j = b[i]] a[j,j]"


# ---- composition ---------------------------------------------------------------------------------------------


def test_a_read_of_a_product():
    """(A @ B)[:, 0] reads a column of B."""
    product = term((i, j), (4, 5, 6), [Read(1, (i, k)), Read(2, (k, j))])
    column = term((i,), (4,), [Read(0, (i, Affine(0)))])
    assert term_text(compose_terms(column, 0, product), operands="xab") == "out[i] += Σ j. a[i,j] b[j,0]"  # type: ignore[arg-type]


def test_a_conjugate_of_a_product():
    product = term((i,), (4,), [Read(1, (i,)), Read(2, (i,), Use.CONJUGATED)], coefficient=1j)
    found = compose_terms(term((i,), (4,), [Read(0, (i,), Use.CONJUGATED)]), 0, product)
    assert found is not None
    assert found.coefficient == -1j
    assert [f.use for f in found.factors] == [Use.CONJUGATED, Use.PLAIN]


def test_a_divisor_is_not_replaced():
    quotient = term((i,), (4,), [Read(0, (i,), Use.DIVIDED)])
    with pytest.raises(ValueError, match=r"composed: factor 0 of out\[i\] \+= 1 / a\[i\] divides"):
        compose_terms(quotient, 0, term((i,), (4,), [Read(1, (i,))]))
    with pytest.raises(ValueError, match="is divided, not plain"):
        transposed(quotient, 0)
