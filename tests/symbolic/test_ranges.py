"""Periodic and symmetric ranges: what they read, and merging by shifts and reflections of indices."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.interpreters.formulas.let_form import LetForm, evaluate_form
from tapeless.tracer.formulas import symmetries as merging
from tapeless.tracer.formulas.periodic import drop_quotients, wrap_accesses
from tapeless.tracer.formulas.symmetries import Symmetry, merged_by_symmetry
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.solve import explicit, staying
from tapeless.tracer.terms.term import IsZero, Read, Use, term
from tapeless.tracer.types import ShapedArray
from tests.symbolic.checks import gradient, random, run_source

N, ORBITALS, BANDS = 4, 2, 2


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# ---- Wannier functions ---------------------------------------------------------------------------------------

POINTS = ix.range("k", N, periodic=True)
SHELLS = {True: ix.range("b", 3, symmetric=True), False: ix.range("b", 3)}
OVERLAPS = [((1, 0, 3, 2), "conj")]


def spread(shells):
    def f(U, S, w):
        rho = ix.build(
            (BANDS, shells),
            lambda n, b: ix.sum(
                (POINTS, ORBITALS, ORBITALS),
                lambda k, p, q: tnp.conj(U[k, p, n]) * S[k, k + b, p, q] * U[k + b, q, n],
            ),
        )
        return ix.sum((BANDS, shells), lambda n, b: w[b] * tnp.abs(rho[n, b]) ** 2)

    return f


def wannier(symmetries=OVERLAPS, even=True, symmetric=True):
    shells = SHELLS[symmetric]
    U = ix.Space("U", (POINTS, ORBITALS, BANDS), complex)
    S = ix.Space("S", (POINTS, POINTS, ORBITALS, ORBITALS), complex, symmetries=symmetries)
    return ix.grad(spread(shells))(U, S, ix.Space("w", (shells,), even=even))


def arrays(rng, symmetries=OVERLAPS, even=True):
    U, S, w = random(rng, (N, ORBITALS, BANDS)), random(rng, (N, N, ORBITALS, ORBITALS)), random(rng, (3,), False)
    return U, S + S.transpose(1, 0, 3, 2).conj() if symmetries else S, w + w[::-1] if even else w


def spread_by_loops(U, S, w, symmetric):
    total = 0.0
    for n, b in product(range(BANDS), range(3)):
        step = b - 1 if symmetric else b
        rho = sum(
            U[k, p, n].conj() * S[k, (k + step) % N, p, q] * U[(k + step) % N, q, n]
            for k, p, q in product(range(N), range(ORBITALS), range(ORBITALS))
        )
        total += w[b] * abs(rho) ** 2
    return total


@pytest.mark.parametrize("symmetric", [True, False])
def test_reads_modulo_the_size(rng, symmetric):
    args = arrays(rng, (), False)
    value = spread(SHELLS[symmetric])(*map(tnp.asarray, args))
    np.testing.assert_allclose(value, spread_by_loops(*args, symmetric), rtol=1e-12)


WANNIER = (
    "4 * Σ[b,q,k,p,q1] S[a,a + b - 1,c,q] * S[b + k - 1,k,p,q1] * U[a + b - 1,q,d] * U[k,q1,d] * conj(U[b + k - 1,p,d])"
    " * w[b]"
)


def test_wannier_functions(rng, monkeypatch):
    """VD9: one term with coefficient 4, in less than a second where nothing else runs: so few forms are compared."""
    forms = list[Any]()
    neighbours = merging._neighbours
    monkeypatch.setattr(merging, "_neighbours", lambda *args: forms.append(args) or neighbours(*args))
    found = wannier().simplify()
    assert len(forms) <= 160
    assert [t.coefficient for t in found.terms] == [4]
    assert found.text() == WANNIER
    assert found.assumptions == (
        "S[i,j,k,l] = conj(S[j,i,l,k])",
        "w[i] = w[2 - i]",
        "U[i + 4,j,k] = U[i,j,k]",
        "S[i + 4,j,k,l] = S[i,j,k,l]",
        "S[i,j + 4,k,l] = S[i,j,k,l]",
    )
    args = arrays(rng)
    expected = gradient(spread(SHELLS[True]), 0, args)
    for form in (wannier(), found, wannier().expand(), found.expand().simplify()):
        np.testing.assert_allclose(form(*args), expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(run_source(form, *args), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("symmetries", "even", "symmetric"), [((), True, True), (OVERLAPS, False, True), (OVERLAPS, True, False)]
)
def test_wannier_functions_without_a_symmetry(rng, symmetries, even, symmetric):
    """VD9, negative: two terms with coefficient 2, right numerically."""
    args = arrays(rng, symmetries, even)
    found = wannier(symmetries, even, symmetric).simplify()
    assert [t.coefficient for t in found.terms] == [2, 2]
    expected = gradient(spread(SHELLS[symmetric]), 0, args)
    np.testing.assert_allclose(found(*args), expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(run_source(found, *args), expected, rtol=1e-11, atol=1e-11)


def test_what_is_not_periodic_is_not_shifted(rng):
    """A variable that reads an axis that is not periodic stays, and so does the quotient that it has."""
    k, x, c = ix.range("k", N, periodic=True), ix.Space("x", (POINTS,)), ix.Space("c", (N,))
    found = ix.grad(lambda x, c: ix.sum(k, lambda k: c[k] * x[k + 1] * x[k]))(x, c).simplify()
    values = random(rng, (N,), False), random(rng, (N,), False)
    expected = values[1] * np.roll(values[0], -1) + np.roll(values[1] * values[0], 1)
    assert len(found.terms) == 2
    np.testing.assert_allclose(found(*values), expected, rtol=1e-12)


def test_periodic_differences_merge(rng):
    k, x = ix.range("k", N, periodic=True), ix.Space("x", (POINTS,))
    found = ix.grad(lambda x: ix.sum(k, lambda k: (x[k + 1] - x[k]) ** 2))(x).expand().simplify()
    assert sorted(t.text() for t in found.terms) == ["-2 * x[a + 1]", "-2 * x[a - 1]", "4 * x[a]"]
    assert found.assumptions == ("x[i + 4] = x[i]",)
    at = random(rng, (N,), False)
    np.testing.assert_allclose(found(at), 4 * at - 2 * np.roll(at, 1) - 2 * np.roll(at, -1), rtol=1e-12)


@pytest.mark.parametrize("n, steps", [(8, (-1, 0, 1)), (5, (-2, 1, 3)), (3, (-4, 0, 2))])
def test_a_stencil_applied_twice_merges(rng, n, steps):
    """The second read is wrapped where the first one is: brackets of the one bound the quotient of the other."""
    k, at = ix.range("k", n, periodic=True), random(rng, (n,), False)
    left, right = np.roll(np.eye(n), steps[0], 1), np.roll(np.eye(n), steps[2], 1)  # row i has 1 at i + step
    a = left - 2 * np.roll(np.eye(n), steps[1], 1) + right

    def energy(x):
        return 0.5 * ix.sum(k, lambda i: (x[i + steps[0]] - 2 * x[i + steps[1]] + x[i + steps[2]]) ** 2)

    found = ix.grad(energy)(ix.Space("x", (k,))).expand().simplify()
    assert "Σ" not in str(found) and "[0 <=" not in str(found)
    np.testing.assert_allclose(found(at), a.T @ (a @ at), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(run_source(found, at), a.T @ (a @ at), rtol=1e-12, atol=1e-12)


def test_gradients_of_ranges_are_those_of_loops(rng):
    """`tl.grad` of a body with a periodic range, and jit, vmap and jvp of it."""
    k = ix.range("k", 5, periodic=True)

    def f(x):
        return ix.build(k, lambda k: x[k - 2] * x[2 * k + 1] + x[3 - k])

    def by_rolls(x):
        i = np.arange(5)
        return x[(i - 2) % 5] * x[(2 * i + 1) % 5] + x[(3 - i) % 5]

    x, t = random(rng, (5,), False), random(rng, (5,), False)
    np.testing.assert_allclose(f(tnp.asarray(x)), by_rolls(x), rtol=1e-12)
    np.testing.assert_allclose(tl.jit(tl.vmap(f))(np.stack([x, t])), [by_rolls(x), by_rolls(t)], rtol=1e-12)
    slopes = np.stack([(by_rolls(x + 1e-6 * e) - by_rolls(x - 1e-6 * e)) / 2e-6 for e in np.eye(5)], 1)
    np.testing.assert_allclose(tl.jvp(f, (x,), (t,))[1], slopes @ t, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(tl.vjp(f, x)[1](t)[0], t @ slopes, rtol=1e-7, atol=1e-8)


def test_reads_modulo_the_size_at_places_that_arrays_hold(rng):
    k, x, steps = ix.range("k", 5, periodic=True), random(rng, (5,), False), np.array([-7, -1, 0, 3, 12])
    held, places = tnp.asarray(x), tnp.asarray(steps)
    i = np.arange(5)
    np.testing.assert_array_equal(ix.build(k, lambda k: held[k + places[k]]), x[(i + steps) % 5])
    np.testing.assert_array_equal(
        ix.build(k, lambda k: held[2 * k - places[k + 1]]), x[(2 * i - np.roll(steps, -1)) % 5]
    )
    gathered = tl.grad(lambda x: ix.sum(k, lambda k: x[k + places[k]] ** 2))(x)
    expected = np.zeros(5)
    np.add.at(expected, (i + steps) % 5, 2 * x[(i + steps) % 5])
    np.testing.assert_allclose(gathered, expected, rtol=1e-12)


# ---- ranges whose indices are not eliminated ----------------------------------------------------------------


def filtered_by_a_bracket(b):
    return lambda x, w: ix.sum(3, lambda i: x[i] ** 2 * ix.sum(b, lambda b: (b == i) * w[b]))


def test_reads_modulo_the_size_at_quotients():
    x, k = np.arange(1.0, 7.0), ix.range("k", 6, periodic=True)
    array, s = tnp.asarray(x), ix.sparse((np.arange(6),), x, (6,))
    for place in (lambda k: (k + 7) // 2, lambda k: 2 * ((k + 7) // 2) - 1, lambda k: (3 * k) // 2 + k):
        expected = [x[place(i) % 6] for i in range(6)]
        for read in (array, s):
            np.testing.assert_array_equal(ix.build(k, lambda k, read=read, place=place: read[place(k)]), expected)


def test_sums_that_are_not_to_be_eliminated_stay(rng):
    """Brackets are solved for other indices; the range is declared in the body, and of the space or not."""
    b, x = ix.range("b", 3, eliminate=False), ix.Space("x", (3,))
    args = random(rng, (3,), False), random(rng, (3,), False)
    expected = 2 * args[0] * args[1]
    eliminated = ix.grad(filtered_by_a_bracket(ix.range("b", 3)))(x, ix.Space("w", (3,)))
    assert eliminated.text() == "2 * x[a] * w[a]"
    for w in (ix.Space("w", (b,)), ix.Space("w", (3,))):
        found = ix.grad(filtered_by_a_bracket(b))(x, w)
        for form in (found, found.simplify(), found.expand(), ix.grad(filtered_by_a_bracket(b), lets=True)(x, w)):
            assert "Σ[b] [a = b] * " in form.text()
            np.testing.assert_allclose(form(*args), expected, rtol=1e-12)
            np.testing.assert_allclose(run_source(form, *args), expected, rtol=1e-12)
        assert ix.grad(filtered_by_a_bracket(b), 1)(x, w).text() == "x[a]**2"  # an index of the result is no sum
        hessian = ix.pullback(found)(x, w, ix.Space("k", (3,)))
        assert hessian.text() == "2 * Σ[b] [a = b] * w[b] * k[b]"
    np.testing.assert_allclose(tl.jit(filtered_by_a_bracket(b))(*args), np.sum(args[0] ** 2 * args[1]), rtol=1e-12)


def test_an_equation_is_solved_for_the_other_index(rng):
    """Σ[k] [a = k + b] x[k] w[b] is a sum over b, or over k, as is wished."""
    args = random(rng, (5,), False), random(rng, (3,), False)

    def f(k, b):
        return lambda x, w, c: ix.sum((k, b), lambda k, b: x[k] * w[b] * c[k + b])

    spaces = [ix.Space(name, (n,)) for name, n in (("x", 5), ("w", 3), ("c", 7))]
    long, short = ix.range("k", 5, eliminate=False), ix.range("b", 3, eliminate=False)
    over_k, over_b = ix.grad(f(long, 3), 2)(*spaces), ix.grad(f(5, short), 2)(*spaces)
    assert over_k.text() == "Σ[k] [0 <= a - k < 3] * x[k] * w[a - k]"
    assert over_b.text() == "Σ[b] [0 <= a - b < 5] * x[a - b] * w[b]"
    for found in (over_k, over_b, over_k.simplify(), over_b.simplify()):
        np.testing.assert_allclose(found(*args, np.zeros(7)), np.convolve(*args), rtol=1e-12)


def test_wannier_functions_with_shells_that_stay(rng):
    """VD9: the same term, for a shell is not eliminated there anyway; a periodic range can be kept, too."""
    assert ix.range("b", 3, symmetric=True, eliminate=False).eliminate is False
    U = ix.Space("U", (POINTS, ORBITALS, BANDS), complex)
    S = ix.Space("S", (POINTS, POINTS, ORBITALS, ORBITALS), complex, symmetries=OVERLAPS)
    b = ix.range("b", 3, symmetric=True, eliminate=False)
    found = ix.grad(spread(b))(U, S, ix.Space("w", (b,), even=True)).simplify()
    assert [t.coefficient for t in found.terms] == [4]
    args = arrays(rng)
    expected = gradient(spread(SHELLS[True]), 0, args)
    np.testing.assert_allclose(found(*args), expected, rtol=1e-11, atol=1e-11)
    k = ix.range("k", N, periodic=True, eliminate=False)
    turned = ix.grad(lambda x, c: ix.sum(k, lambda k: c[k] * x[k + 1] * x[k]))(ix.Space("x", (k,)), ix.Space("c", (N,)))
    values = random(rng, (N,), False), random(rng, (N,), False)
    expected = values[1] * np.roll(values[0], -1) + np.roll(values[1] * values[0], 1)
    for form in (turned, turned.simplify()):
        np.testing.assert_allclose(form(*values), expected, rtol=1e-12)
        np.testing.assert_allclose(run_source(form, *values), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: ix.range("b", 4, symmetric=True), ValueError, "index.range: b has 4 values; expected an odd number."),
        (lambda: ix.range("b", 3, symmetric=True, periodic=True), ValueError, "b is periodic or symmetric, not both."),
        (
            lambda: ix.build(ix.range("k", 4, periodic=True), lambda k: tnp.ones(3)[k + 1]),
            ValueError,
            "an axis of 3 is read by an index of the periodic range k, of 4: reads are modulo its size, so the axis "
            "must have the same. Index by a plain range, and `%`.",
        ),
        (
            lambda: ix.build(ix.range("b", 3, symmetric=True), lambda b: tnp.ones(5)[b]),
            ValueError,
            "an axis of 5 is read by an index of the symmetric range b, of 3: reads are from its middle, so the "
            "axis must have the same size. What is added to the index counts from 0.",
        ),
        (lambda: ix.Space("w", (3,), even=[1]), ValueError, "w: even=(1,) are no axes of float64[3]."),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_arrays_are_checked_to_be_even():
    found = ix.grad(lambda x, w: ix.sum(3, lambda i: w[i] * x[i] * x[2 - i]))(
        ix.Space("x", (3,)), ix.Space("w", (3,), even=True)
    ).simplify()
    assert found.text() == "2 * x[2 - a] * w[a]"
    with pytest.raises(ValueError, match=r"w\[i\] = w\[2 - i\]: they differ by 2"):
        found(np.ones(3), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1.0])), [6, 8, 2])


# ---- random terms ---------------------------------------------------------------------------------------------

SIZE = 3  # of every axis
RANKS = 1, 2, 2
PERIODS = {(0, 0): SIZE, (1, 0): SIZE}  # of a vector, of one axis of a matrix; the other matrix has none
EVEN = {2: [Symmetry((0, 1), mirrored=((0, SIZE),))], 1: [Symmetry((0, 1), True, mirrored=((1, SIZE),))]}


def looped(terms, operands):
    """The sum of terms, product by product; what is outside of an axis that is not periodic is 0."""
    out = np.zeros((SIZE,), complex)
    for t in terms:
        for at in product(*map(range, t.sizes)):

            def index(a, at=at):
                return a.constant + sum(c * at[v] for v, c in a.variables)

            value = complex(t.coefficient)
            value *= all(index(b.index) == 0 if isinstance(b, IsZero) else index(b.index) >= 0 for b in t.brackets)
            for f in t.factors:
                x = operands[f.operand]
                place = [
                    index(a) % SIZE if (f.operand % len(RANKS), d) in PERIODS else index(a)
                    for d, a in enumerate(f.access)
                ]
                inside = all(0 <= i < SIZE for i in place)
                read = x[tuple(place)] if inside else 0.0
                value *= np.conj(read) if f.use is Use.CONJUGATED else read
            (i,) = [index(a) for a in t.out]
            if 0 <= i < SIZE:
                out[i] += value
    return out


@st.composite
def sums(draw):
    """Terms of up to three reads at i, j, their sums and differences; written to the first variable."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 4))
        reads = []
        for _ in range(draw(st.integers(1, 3))):
            k = draw(st.integers(0, len(RANKS) - 1))
            access = []
            for d in range(RANKS[k]):
                v = draw(st.integers(0, n - 1))
                a = Affine(0, ((v, 1),))
                if (k, d) in PERIODS and draw(st.booleans()):
                    other = draw(st.integers(0, n - 1)), draw(st.sampled_from([1, -1, 2]))
                    a = a + Affine(draw(st.integers(-4, 4)), (other,))
                elif draw(st.booleans()):
                    a = SIZE - 1 - a
                access.append(a)
            reads.append(Read(k, tuple(access), draw(st.sampled_from([Use.PLAIN, Use.CONJUGATED]))))
        found.append(term([Affine(0, ((0, 1),))], (SIZE,) * n, reads, (), draw(st.sampled_from([1, -1, 2]))))
    return found


def operands_of(rng):
    x = [random(rng, (SIZE,) * rank) for rank in RANKS]
    x[1] = x[1] + x[1][:, ::-1].conj()
    x[2] = x[2] + x[2][::-1]
    return x


@settings(max_examples=120, deadline=None)
@given(sums(), st.integers(0, 99))
def test_merging_by_shifts_and_reflections_keeps_the_value(terms, seed):
    operands = operands_of(np.random.default_rng(seed))
    expected = looped(terms, operands)
    for periods in (PERIODS, {(1, 0): SIZE}):
        found = merged_by_symmetry(terms, EVEN, frozenset(), periods)
        assert len(found) <= len(terms)
        np.testing.assert_allclose(looped(found, operands), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=120, deadline=None)
@given(sums(), st.integers(0, 99))
def test_wrapping_and_unwrapping_keep_the_value(terms, seed):
    """Reads modulo the size as brackets of quotients, solved for the result, and back."""
    operands = operands_of(np.random.default_rng(seed))
    expected = looped(terms, operands)
    whole = [wrap_accesses(t, PERIODS) for t in terms]
    np.testing.assert_allclose(looped(whole, operands), expected, rtol=1e-10, atol=1e-10)
    solved = [x for t in whole if (x := explicit(t, (SIZE,))) is not None]
    back = [x for t in whole if (x := drop_quotients(t, PERIODS)) is not None]
    both = [x for t in solved if (x := drop_quotients(t, PERIODS)) is not None]
    for found in (solved, back, both):
        np.testing.assert_allclose(looped(found, operands), expected, rtol=1e-10, atol=1e-10)


@settings(max_examples=120, deadline=None)
@given(sums(), st.sets(st.sampled_from([(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)])), st.integers(0, 99))
def test_solving_keeps_the_value_and_what_stays(terms, axes, seed):
    """A variable of an axis that stays is still read at on it."""
    operands = operands_of(np.random.default_rng(seed))
    stays = frozenset(axes)
    whole = [wrap_accesses(t, PERIODS) for t in terms]
    found = [x for t in whole if (x := explicit(t, (SIZE,), stays)) is not None]
    back = [x for t in found if (x := drop_quotients(t, PERIODS, stays)) is not None]
    for some in (found, back):
        np.testing.assert_allclose(looped(some, operands), looped(terms, operands), rtol=1e-10, atol=1e-10)
    for before, after in zip(whole, [explicit(t, (SIZE,), stays) for t in whole], strict=True):
        if after is not None:
            assert len(staying(before.factors, stays)) <= len(staying(after.factors, stays))


def pushed_by_loops(terms, operands, tangents):
    """The product rule: each read in turn of the tangent."""
    n = len(RANKS)
    changed = list[Any]()
    for t in terms:
        for k, f in enumerate(t.factors):
            reads = [*t.factors[:k], f._replace(operand=n + f.operand), *t.factors[k + 1 :]]
            changed.append(term(t.out, t.sizes, reads, t.brackets, t.coefficient))
    return looped(changed, [*operands, *tangents])


@settings(max_examples=20, deadline=None)
@given(sums(), st.booleans(), st.integers(0, 99))
def test_what_is_computed_is_what_loops_compute(terms, is_merged, seed):
    """The lowered program of terms with periodic axes, merged or not; its jvp, its transpose, and a batch of it."""
    rng = np.random.default_rng(seed)
    operands, tangents, k = operands_of(rng), operands_of(rng), random(rng, (SIZE,))
    given_terms = merged_by_symmetry(terms, EVEN, frozenset(), PERIODS) if is_merged else tuple(terms)
    with tl.enable_x64():
        avals = tuple([ShapedArray((SIZE,) * rank, np.dtype(complex)) for rank in RANKS])
        form = LetForm(avals, (), (given_terms,), PERIODS)

        def f(*xs):
            return evaluate_form(form, xs, [ShapedArray((SIZE,), np.dtype(complex))])[0]

        @tl.jit
        def every(xs, ts):
            return tl.jvp(f, xs, ts), tl.vjp(f, *xs)[1](k), tl.vmap(f)(*[tnp.stack(pair) for pair in zip(xs, ts)])

        (value, tangent), pulled, batch = every(tuple(operands), tuple(tangents))
        np.testing.assert_allclose(f(*operands), looped(terms, operands), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(value, looped(terms, operands), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(tangent, pushed_by_loops(terms, operands, tangents), rtol=1e-10, atol=1e-10)
        pairing = sum(np.sum(np.asarray(ct) * t) for ct, t in zip(pulled, tangents))
        np.testing.assert_allclose(pairing.real, np.sum(k * tangent).real, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(batch, [looped(terms, x) for x in (operands, tangents)], rtol=1e-10, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(sums(), st.integers(0, 99))
def test_what_is_not_declared_is_not_used(terms, seed):
    """Of arrays without symmetries, and with no axis that is read modulo its size, the value stays."""
    operands = [random(np.random.default_rng(seed + k), (SIZE,) * rank) for k, rank in enumerate(RANKS)]
    for symmetries, periods in (({}, {}), ({}, PERIODS)):
        found = merged_by_symmetry(terms, symmetries, frozenset(), periods)
        np.testing.assert_allclose(looped(found, operands), looped(terms, operands), rtol=1e-10, atol=1e-10)
