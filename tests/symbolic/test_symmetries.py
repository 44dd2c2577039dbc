"""Random products of reads under random symmetries: simplifying changes neither sums nor gradients."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.tracer.formulas.symmetries import Symmetry, merged_by_symmetry, select_symmetries
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.term import Read, Use, term
from tests.symbolic.checks import check, random

N = 2  # of every axis
RANKS = 1, 2, 3, 4
SYMMETRIES = {
    1: [()],
    2: [(), (((1, 0), "id"),), (((1, 0), "conj"),), (((1, 0), "neg"),)],
    3: [(), (((1, 0, 2), "id"),), (((1, 0, 2), "neg"),), (((1, 2, 0), "id"),), (((1, 0, 2), "id"), ((0, 2, 1), "id"))],
    4: [(), (((1, 0, 3, 2), "conj"), ((2, 3, 0, 1), "id")), (((1, 0, 2, 3), "neg"), ((0, 1, 3, 2), "neg"))],
}
KINDS = {"id": (lambda x: x, False, 1), "conj": (np.conj, True, 1), "neg": (np.negative, False, -1)}


def with_symmetries(x, declared):
    """Average over all products of the symmetries, of which there are at most 24."""
    images = [x]
    for image in images:
        for permutation, kind in declared:
            new = KINDS[kind][0](image.transpose(permutation))
            if not any(np.array_equal(new, old) for old in images):
                images.append(new)
    return np.round(sum(images) / len(images), 6)  # exactly, as rounding errors of what should be 0 are not symmetric


def arrays(rng, chosen, is_complex):
    given = [random(rng, (N,) * rank, is_complex) for rank in RANKS]
    return [with_symmetries(x, s) for x, s in zip(given, chosen, strict=True)]


def looped(terms, operands, shape):
    """The sum of terms, product by product."""
    out = np.zeros(shape, complex)
    for t in terms:
        for at in product(*map(range, t.sizes)):
            value = complex(t.coefficient)
            for f in t.factors:
                x = operands[f.operand][tuple(at[a.variable] for a in f.access)]
                value *= np.conj(x) if f.use is Use.CONJUGATED else x
            out[tuple(at[a.variable] for a in t.out)] += value
    return out


@st.composite
def sums(draw):
    """Terms of up to three reads, each at random variables; all are written to axes 0 and 1."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        v = variables((N,) * draw(st.integers(2, 5)))
        reads = []
        for _ in range(draw(st.integers(1, 3))):
            k = draw(st.integers(0, len(RANKS) - 1))
            access = tuple(draw(st.sampled_from(v)) for _ in range(RANKS[k]))
            reads.append(Read(k, access, draw(st.sampled_from([Use.PLAIN, Use.CONJUGATED]))))
        found.append(term(v[:2], (N,) * len(v), reads, (), draw(st.sampled_from([1, -1, 2, 0.5]))))
    return found


@settings(max_examples=150, deadline=None)
@given(sums(), st.tuples(*[st.sampled_from(SYMMETRIES[rank]) for rank in RANKS]), st.booleans(), st.integers(0, 99))
def test_merging_keeps_the_value(terms, chosen, is_complex, seed):
    operands = arrays(np.random.default_rng(seed), chosen, is_complex)
    real = frozenset() if is_complex else frozenset(range(len(RANKS)))
    declared = {k: [Symmetry(p, *KINDS[kind][1:]) for p, kind in s] for k, s in enumerate(chosen)}
    found = merged_by_symmetry(terms, declared, real)
    assert len(found) <= len(terms)
    expected = looped(terms, operands, (N, N))
    np.testing.assert_allclose(looped(found, operands, (N, N)), expected, rtol=1e-10, atol=1e-10)
    used = select_symmetries(terms, declared, real)
    assert all(set(s) <= set(declared[k]) for k, s in used.items())
    fewer = merged_by_symmetry(terms, used, real)
    conjugates = [sum(f.use is Use.CONJUGATED for t in s for f in t.factors) for s in (fewer, found)]
    assert len(fewer) == len(found) and conjugates[0] == conjugates[1]
    np.testing.assert_allclose(looped(fewer, operands, (N, N)), expected, rtol=1e-10, atol=1e-10)


@st.composite
def products(draw):
    """An einsum of two to four operands, with all letters summed, and which of them are conjugated."""
    ranks = draw(st.lists(st.sampled_from(RANKS), min_size=2, max_size=4))
    letters = "ijklm"[: draw(st.integers(1, 4))]
    subscripts = ["".join(draw(st.sampled_from(letters)) for _ in range(rank)) for rank in ranks]
    return subscripts, ranks, [draw(st.booleans()) for _ in ranks]


@settings(max_examples=12, deadline=None)
@given(products(), st.tuples(*[st.sampled_from(SYMMETRIES[rank]) for rank in RANKS]), st.booleans(), st.integers(0, 99))
def test_gradients_of_products(given, chosen, is_complex, seed):
    subscripts, ranks, conjugated = given

    def f(*arrays):
        chosen = [arrays[RANKS.index(rank)] for rank in ranks]
        read = [tnp.conj(x) if c else x for x, c in zip(chosen, conjugated, strict=True)]
        return tnp.einsum(",".join(subscripts) + "->", *read)

    dtype = complex if is_complex else float
    with tl.enable_x64():
        operands = arrays(np.random.default_rng(seed), chosen, is_complex)
        spaces = [ix.Space(f"A{rank}", (N,) * rank, dtype, s) for rank, s in zip(RANKS, chosen, strict=True)]
        check(f, RANKS.index(ranks[0]), operands, spaces)


def test_antisymmetric_forms_are_0():
    A = ix.Space("A", (3, 3), symmetries=[((1, 0), "neg")])
    found = ix.grad(lambda x, A: x @ A @ x)(ix.Space("x", (3,)), A)
    assert len(found.terms) == 2
    assert found.simplify().text() == "0"
    assert found.simplify().assumptions == ("A[i,j] = -A[j,i]",)
    assert str(found.simplify()) == "0\n  if A[i,j] = -A[j,i]"


@pytest.mark.parametrize(
    ("symmetry", "text", "assumptions"),
    [
        (("conj",), "Σ[i] A[a,i] * y[i]", ("A[i,j] = conj(A[j,i])",)),
        (("id",), "Σ[j] conj(A[j,a]) * y[j]", ()),
        ((), "Σ[j] conj(A[j,a]) * y[j]", ()),
    ],
)
def test_a_symmetry_is_used_for_fewer_conjugates(symmetry, text, assumptions):
    """Also where no terms merge by it; one that saves nothing is not assumed."""
    rng = np.random.default_rng(0)
    declared = [((1, 0), kind) for kind in symmetry]
    A = with_symmetries(random(rng, (2, 2)), declared)
    x, y = random(rng, (2,)), random(rng, (2,))
    spaces = ix.Space("x", (2,), complex), ix.Space("A", (2, 2), complex, declared), ix.Space("y", (2,), complex)

    def f(x, A, y):
        return tnp.real(ix.sum((2, 2), lambda i, j: tnp.conj(x[i]) * tnp.conj(A[j, i]) * y[j]))

    with tl.enable_x64():
        found = check(f, 0, (x, A, y), spaces)
    assert (found.text(), found.assumptions) == (text, assumptions)
    np.testing.assert_allclose(found(x, A, y), A.conj().T @ y)


def test_undeclared_symmetries_are_never_used():
    found = ix.grad(lambda x, A: x @ A @ x)(ix.Space("x", (3,)), ix.Space("A", (3, 3))).simplify()
    assert len(found.terms) == 2
    assert found.assumptions == ()


def test_symmetries_of_data_are_checked():
    A, x = ix.Space("A", (2, 2), symmetries="symmetric"), ix.Space("x", (2,))
    found = ix.grad(lambda A, x: x @ A @ x, 1)(A, x).simplify()
    given = np.array([[1.0, 2.0], [3.0, 4.0]])
    message = (
        "A does not have the declared symmetry, A[i,j] = A[j,i]: they differ by 1.\n"
        "  Give an array that has it, do not declare it, or leave the check out with check=False."
    )
    for call in (lambda: found(given, np.ones(2)), lambda: found.compile(A=given)):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == message
    np.testing.assert_allclose(found(given, np.ones(2), check=False), [6, 14], rtol=1e-6)
    np.testing.assert_allclose(found.compile(A=given + given.T)(np.ones(2)), [14, 26], rtol=1e-6)


@pytest.mark.parametrize(
    ("symmetries", "message"),
    [
        ([((0, 1, 2), "id")], "A: (0, 1, 2) is no permutation of axes that leaves the shape (2, 2) as it is."),
        ([((1, 0), "odd")], "A: the kind of the symmetry (1, 0) is 'odd', none of 'id', 'conj', 'neg'."),
        ([((1, 0), "id"), ((1, 0), "neg")], "A: symmetric, antisymmetric together say that it is 0."),
        ("unitary", "A: symmetries='unitary' is not known of float32[2,2]; use pairs (permutation, kind)."),
    ],
)
def test_wrong_symmetries(symmetries, message):
    with pytest.raises(ValueError) as caught:
        ix.Space("A", (2, 2), symmetries=symmetries)
    assert str(caught.value) == message
