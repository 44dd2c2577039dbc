"""Contractions that results have in common: computed once, the same values, and how much work is left."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.interpreters.formulas.let_form import LetForm, evaluate_form
from tapeless.interpreters.formulas.shared_contractions import with_shared_contractions
from tapeless.tracer.formulas.symmetries import Symmetry
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.term import Read, Use, term
from tapeless.tracer.types import ShapedArray
from tests.index_language.programs import work
from tests.symbolic.checks import gradient, hermitian, random, run_source


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def band_energy(C, F):
    n, m = C.shape
    return ix.sum((m, n, n), lambda i, p, q: tnp.conj(C[p, i]) * F[p, q] * C[q, i]).real


def repulsion(C, J):
    (n, m), conj = C.shape, tnp.conj
    density = ix.build((n, n), lambda p, q: ix.sum(m, lambda i: conj(C[p, i]) * C[q, i]))
    return ix.sum((n,) * 4, lambda p, q, r, s: density[p, q] * density[r, s] * J[p, q, r, s]).real


def symmetric(rng, n):
    J = random(rng, (n,) * 4)
    J = J + J.transpose(1, 0, 3, 2).conj()
    return J + J.transpose(2, 3, 0, 1)


EXCHANGE = [((1, 0, 3, 2), "conj"), ((2, 3, 0, 1), "id")]


def form(x, A):
    return ix.sum((9, 9), lambda i, j: x[i] * A[i, j] * x[j])


CASES = [  # function, its second argument, its symmetries, most operations for value and gradient per one for the value
    (band_energy, (8, 5), lambda rng: hermitian(rng, 8), "hermitian", 1.1),
    (band_energy, (64, 16), lambda rng: hermitian(rng, 64), "hermitian", 1.1),
    (form, (9,), lambda rng: hermitian(rng, 9).real, "symmetric", 1.2),
    (repulsion, (6, 2), lambda rng: symmetric(rng, 6), EXCHANGE, 1.2),
]  # fmt: skip


@pytest.mark.parametrize(("f", "shape", "second", "symmetries", "most"), CASES)
def test_value_and_gradient(rng, f, shape, second, symmetries, most):
    """VD8: the value is a product with the gradient."""
    given = second(rng)
    x = random(rng, shape, np.iscomplexobj(given))
    spaces = ix.Space("x", shape, x.dtype), ix.Space("A", given.shape, given.dtype, symmetries=symmetries)
    found = ix.grad(f, value=True)(*spaces).expand().simplify()
    expected = f(tnp.asarray(x), tnp.asarray(given)), gradient(f, 0, (x, given))
    for form in (found, found.share()):
        for a, b in zip(form(x, given), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
        for a, b in zip(run_source(form, x, given), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert work(found, x, given) <= most * work(f, x, given)


def test_text():
    C, F = ix.Space("C", (4, 2), complex), ix.Space("F", (4, 4), complex, symmetries="hermitian")
    found = ix.grad(band_energy, value=True)(C, F).simplify().share()
    assert found.text() == ("y[a,b] = Σ[p] C[p,b] * F[a,p]\nvalue = Σ[p,i] conj(C[p,i]) * y[p,i]\n∇C[a,b] = 2 * y[a,b]")
    n = ix.size("n")
    x, A = ix.Space("x", (n,)), ix.Space("A", (n, n), symmetries="symmetric")
    sized = ix.grad(lambda x, A: x @ A @ x, value=True)(x, A)
    assert sized.simplify().share().text().split("\n")[0] == "y[a] = Σ[j<n] A[a,j] * x[j]"


def test_nothing_is_shared_that_is_no_part():
    x, y = ix.Space("x", (3,)), ix.Space("y", (3,))
    found = ix.grad(lambda x, y: ix.sum((3, 3), lambda i, j: x[i] * x[j] * y[i]), (0, 1), value=True)(x, y)
    args = np.array([1.0, 2.0, 3.0]), np.array([2.0, -1.0, 1.0])
    value, (gx, gy) = found(*args)
    np.testing.assert_allclose(value, args[0].sum() * (args[0] @ args[1]))
    np.testing.assert_allclose(gx, args[1] * args[0].sum() + args[0] @ args[1])
    np.testing.assert_allclose(gy, args[0] * args[0].sum())


# ---- random sums -------------------------------------------------------------------------------------------------

SIZE, RANKS = 3, (1, 2, 2)
SYMMETRIES = {1: [Symmetry((1, 0), True)], 2: [Symmetry((1, 0), False, -1)]}


@st.composite
def products(draw, rank):
    """A product of reads at variables, the first of which are those of the result."""
    n = draw(st.integers(max(rank, 1), 4))
    reads = []
    for _ in range(draw(st.integers(1, 4))):
        k = draw(st.integers(0, len(RANKS) - 1))
        access = [variables((SIZE,) * n)[draw(st.integers(0, n - 1))] for _ in range(RANKS[k])]
        reads.append(Read(k, tuple(access), draw(st.sampled_from([Use.PLAIN, Use.CONJUGATED]))))
    return term(variables((SIZE,) * rank), (SIZE,) * n, reads, (), draw(st.sampled_from([1, -1, 2])))


def by_einsum(t, operands):
    """The product of a term by NumPy; an array of ones for each variable, in case that nothing else has it."""
    assert not t.brackets
    given = [([k], np.ones(n)) for k, n in enumerate(t.sizes)]
    for read in t.factors:
        x = operands[read.operand]
        given.append((places(read.access), x.conj() if read.use is Use.CONJUGATED else x))
    pairs = [part for at, x in given for part in (x, at)]
    return t.coefficient * np.einsum(*pairs, places(t.out))


def places(access):
    """The variables that axes are read at, one at each."""
    found = [a.variables[0] for a in access]
    assert all(a.constant == 0 and a.variables == ((v, 1),) for a, (v, _) in zip(access, found, strict=True))
    return [v for v, _ in found]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(products(0), min_size=1, max_size=2),
    st.lists(products(1), min_size=1, max_size=2),
    st.lists(products(2), min_size=1, max_size=1),
    st.integers(0, 99),
)
def test_sharing_keeps_the_values(scalar, vector, matrix, seed):
    rng = np.random.default_rng(seed)
    operands = [random(rng, (SIZE,) * rank) for rank in RANKS]
    operands[1], operands[2] = operands[1] + operands[1].T.conj(), operands[2] - operands[2].T
    avals = tuple([ShapedArray((SIZE,) * rank, np.dtype(complex)) for rank in (0, 1, 2)])
    inputs = tuple([ShapedArray((SIZE,) * rank, np.dtype(complex)) for rank in RANKS])
    with tl.enable_x64():
        form = LetForm(inputs, (), (tuple(scalar), tuple(vector), tuple(matrix)))
        shared = with_shared_contractions(form, avals, SYMMETRIES)
        for terms, found in zip((scalar, vector, matrix), evaluate_form(shared, operands, avals), strict=True):
            expected = sum(by_einsum(t, operands) for t in terms)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
