"""Printed formulas and generated source against loops: a reader who sees only the text finds the same numbers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.tracer.formulas.numpy_source import matrix_text, sum_source
from tapeless.tracer.formulas.text import Operands, equation
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Read, Term, Use, term
from tests.index_language.test_random_bodies import random_program
from tests.symbolic.checks import run_source
from tests.symbolic.reading import read_text
from tests.tracer.terms.random_terms import MASK, OUT, SHAPES, looped, operands, terms

NAMES = ("A", "x", "mask", "p", "s")
OPERANDS = Operands(NAMES, SHAPES, frozenset([MASK]))


@st.composite
def sums(draw: Any) -> tuple[Term, ...]:
    """One or two terms, whose factors are conjugated or divide, too."""
    found = list[Term]()
    for t in draw(st.lists(terms(), min_size=1, max_size=2)):
        uses = [draw(st.sampled_from([Use.PLAIN, Use.PLAIN, *Use])) for _ in t.factors]
        factors = [f._replace(use=use) for f, use in zip(t.factors, uses)]
        found.append(term(t.out, t.sizes, factors, t.brackets, t.coefficient))
    return tuple(found)


def check_forms(found: tuple[Term, ...], given: list[Any], shape: tuple[int, ...]) -> None:
    arrays, expected = dict(zip(NAMES, given)), looped(found, given, shape, complex)
    text = equation("out", found, shape, OPERANDS)
    value = read_text(text, arrays, {})["out"]
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12, err_msg=text)
    namespace: dict[str, Any] = {"np": np, **arrays}
    for source in (sum_source(found, shape, OPERANDS, {}), matrix_text(found, shape, OPERANDS)):
        if source is not None:
            found_by_source = eval(source, namespace)
            np.testing.assert_allclose(found_by_source, expected, rtol=1e-12, atol=1e-12, err_msg=source)


def numbers(seed: int) -> list[Any]:
    """Operands without zeros, some of them complex."""
    A, x, *others = operands(seed)
    return [A + 0.5 + 1j * A, x + 0.5, *others]


@settings(max_examples=100, deadline=None)
@given(found=sums(), seed=st.integers(0, 2**16))
def test_random_terms(found: tuple[Term, ...], seed: int):
    check_forms(found, numbers(seed), OUT)


def test_random_contractions():
    """Of whole axes and of parts of them, with products of matrices among them."""
    rng, chains = np.random.default_rng(0), 0
    for seed in range(150):
        rank, n = int(rng.integers(1, 3)), int(rng.integers(2, 5))
        reads = [(int(k), rng.integers(0, n, len(SHAPES[k]))) for k in rng.choice([0, 0, 1], rng.integers(1, 4))]
        axes = [(v, SHAPES[k][d]) for k, at in reads for d, v in enumerate(at)]
        sizes = [min([m for u, m in axes if u == v], default=2) for v in range(n)]
        sizes = [m - int(rng.integers(0, 4) == 0) for m in sizes]
        factors = [Read(k, tuple([Affine(0, ((int(v), 1),)) for v in at])) for k, at in reads]
        t = term([Affine(0, ((v, 1),)) for v in range(rank)], sizes, factors, (), int(rng.integers(1, 3)))
        chains += matrix_text((t,), t.sizes[:rank], OPERANDS) is not None
        check_forms((t,), numbers(seed), t.sizes[:rank])
    assert chains > 3


SPACES = {"x": (6,), "g": (3,), "v": (4,), "A": (4, 4), "t": ()}
x6, g3, v4, A44, t0 = [ix.Space(name, shape) for name, shape in SPACES.items()]


def filtered(x: Any, g: Any) -> Any:
    return ix.build(4, lambda i: ix.sum(3, lambda j: g[j] * x[i + j]))


@pytest.mark.parametrize(
    "f, argnums, spaces, text",
    [
        (lambda x, g: filtered(x, g).sum(), 1, (x6, g3), "Σ[j<4] x[a + j]"),
        (lambda x: x[:3].sum() ** 2, 0, (x6,), "2 * Σ[j<3] [a < 3] * x[j]"),
        (lambda t, x: t * (1 / x).sum(), 0, (t0, x6), "Σ[j] 1 / x[j]"),
        (lambda v, A, g: (v * (A[:, :3] @ g)).sum(), 0, (v4, A44, g3), "Σ[j<3] A[a,j] * g[j]"),
        (lambda x, g: tnp.sin(filtered(x, g)).sum(), 1, (x6, g3),
         "y[a<4] = Σ[j] x[a + j] * g[j]\ny1 = cos(y)\nΣ[j] x[a + j] * y1[j]"),
        (lambda x, g: ix.sum((3, 3), lambda i, j: g[i] * x[2 * j]), 1, (x6, g3), "Σ[j<3] x[2j]"),
    ],
)  # fmt: skip
def test_ranges_of_sums(f: Any, argnums: int, spaces: Any, text: str):
    """They are printed unless the arrays that are read say them: `Σ[j] x[a + j]` would be another sum."""
    with tl.enable_x64():
        args = [np.random.default_rng(0).normal(size=s.shape) for s in spaces]
        found, expected = ix.grad(f, argnums)(*spaces), tl.grad(f, argnums)(*map(tnp.asarray, args))
        assert found.text() == text
        lines = text.split("\n")
        name = f"∇{spaces[argnums].name}"
        lines[-1] = f"{name}{'[a]' if np.ndim(expected) else ''} = {lines[-1]}"
        arrays = {s.name: x for s, x in zip(spaces, args)}
        read = read_text("\n".join(lines), arrays, {name: np.shape(expected)})[name]
        np.testing.assert_allclose(read, expected, rtol=1e-12)
        np.testing.assert_allclose(run_source(found, *args), expected, rtol=1e-12)


def test_products_of_matrices_of_parts():
    """They are no products of the matrices; the source cuts the parts out."""
    found = ix.pullback(lambda A, v: A[:2] @ v, 1)(A44, v4, ix.Space("k", (2,)))
    assert found.text() == "Σ[j<2] A[j,a] * k[j]"
    with pytest.raises(NotImplementedError, match=r"^matrix: Σ\[j<2\] A\[j,a\] \* k\[j\] is no chain: use text\(\)\.$"):
        found.matrix()
    assert ix.grad(lambda x: 0 * x.sum())(x6).matrix() == "0"


@pytest.mark.parametrize(
    "f",
    [
        tnp.max,
        lambda x: (((x > 0).astype(float) + (x > 1)) * x).sum(),
        lambda x: (((x > 0).astype(float) - (x > 1)) * x).sum(),
    ],
)
def test_source_adds_booleans_as_numbers(f: Any):
    """Two maxima share the gradient; for NumPy, True + True is True."""
    with tl.enable_x64():
        x = np.array([1.0, 2, 2, 0, -1, 2])
        expected = tl.grad(f)(tnp.asarray(x))
        np.testing.assert_allclose(run_source(ix.grad(f)(x6), x), expected, rtol=1e-12)


def test_positions_that_are_clipped():
    """An index of NumPy's style that is outside is the last one, and the formula says so."""
    with tl.enable_x64():
        x, p = np.arange(1.0, 7), np.array([0, 3, 9])
        found = ix.grad(lambda x, p: (tnp.take(x, p, mode="clip") ** 2).sum())(x6, ix.Space("p", (3,), int))
        assert found.text().endswith("\n2 * Σ[j] [clip(y4[j,0], 0, 5) = a] * x[a]")
        read = read_text(found.text().replace("\n2", "\n∇x[a] = 2"), {"x": x, "p": p}, {"∇x": (6,)})["∇x"]
        np.testing.assert_array_equal(read, [2, 0, 0, 8, 0, 12])
        np.testing.assert_array_equal(run_source(found, x, p), read)


# ---- masks and numbers of indices --------------------------------------------------------------------------------

A9, k9 = ix.Space("A", (9, 9)), ix.Space("k", (9, 9))
OF_INDICES = {
    "2 * [(a + b) % 2 = 0] * A[a,b]": lambda A: ix.sum((9, 9), lambda i, j: ((i + j) % 2 == 0) * A[i, j] ** 2),
    "2 * [(a // 2 + b // 2) % 2 = 0] * A[a,b]": lambda A: ix.sum(
        (9, 9), lambda i, j: ((i // 2 + j // 2) % 2 == 0) * A[i, j] ** 2
    ),
    "a * (b + 1)": lambda A: ix.sum((9, 9), lambda i, j: A[i, j] * i * (j + 1)),
    "2 * A[a,b] * ((a + 1) // 3 - 1)": lambda A: ix.sum((9, 9), lambda i, j: A[i, j] ** 2 * ((i - 2) // 3)),
    "((a + 1) % 3) * ((a + 2) % 5)": lambda A: ix.sum((9, 9), lambda i, j: A[i, j] * ((i - 2) % 3) * ((i - 3) % 5)),
    "[not ((b + a) % 3 = 0 or b * a > 7)] * A[a,b] + [(a + b) % 3 = 0 or a * b > 7]": lambda A: ix.sum(
        (9, 9), lambda i, j: ix.where(((i + j) % 3 == 0) | (i * j > 7), A[i, j], 0.5 * A[j, i] ** 2)
    ),
    "Σ[i,j] [a * b % 9 = i] * [a * a % 9 = j] * A[i,j] + Σ[i,j] [i * j % 9 = a] * [i * i % 9 = b] * A[i,j]": (
        lambda A: ix.sum((9, 9), lambda i, j: A[(i * j) % 9, (i * i) % 9] * A[i, j])
    ),
}


@pytest.mark.parametrize("text", OF_INDICES)
def test_functions_of_indices_are_printed_where_they_are_read(text: str):
    with tl.enable_x64():
        A, f = np.random.default_rng(0).normal(size=(9, 9)), OF_INDICES[text]
        found, expected = ix.grad(f)(A9), tl.grad(f)(tnp.asarray(A))
        assert found.text() == text
        read = read_text(f"∇A[a,b] = {text}", {"A": A}, {"∇A": (9, 9)})["∇A"]
        for value in (read, found(A), run_source(found, A)):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_definitions_of_indices_and_reductions():
    """What a function is applied to has a name; a quantifier, a maximum and a power print as such."""

    def f(A: Any) -> Any:
        some = ix.sum(9, lambda i: ix.exists(9, lambda j: A[i, j] > 1) * A[i, i] ** 2.5)
        return some + ix.sum((9, 9), lambda i, j: A[i, j] * tnp.sin(i * 1.0)) + tnp.max(A[0])

    with tl.enable_x64():
        A = np.abs(np.random.default_rng(0).normal(size=(9, 9)))
        found = ix.grad(f)(A9)
        for part in ("[a<9] = a\n", " = sin(", " = ∃[j] ", " = max[j] ", "**1.5"):
            assert part in found.text()
        definitions, result = found.text().rsplit("\n", 1)
        read = read_text(f"{definitions}\n∇A[a,b] = {result}", {"A": A}, {"∇A": (9, 9)})["∇A"]
        np.testing.assert_allclose(read, tl.grad(f)(tnp.asarray(A)), rtol=1e-12)
    assert r"&= \exists_{j} " in found.latex() and r"&= \max_{j} " in found.latex()


def test_guards_that_numbers_decide_are_not_printed():
    x = ix.Space("x", (6,))
    assert ix.grad(lambda x: (x**2.5).sum())(x).text() == "y = x**1.5\n2.5 * y[a]"
    assert ix.grad(tl.nn.logsumexp)(x).text() == (
        "y = max[j] x[j]\ny1[a] = x[a] - y\ny2 = exp(y1)\ny3[a<1] = Σ[j] y2[j]\ny2[a] / y3[0]"
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_bodies(seed: int):
    """The text of gradients, read as it stands, the formulas and their source against `tl.grad`."""
    rng, (_, f) = np.random.default_rng(seed), random_program(seed)
    x, a = rng.normal(size=5), rng.normal(size=(4, 6))
    with tl.enable_x64():
        found = ix.grad(lambda x, a: f(x, a).sum(), (0, 1))(ix.Space("x", (5,)), ix.Space("a", (4, 6)))
        forms, gradient = [found, found.simplify()], tl.grad(lambda x, a: f(x, a).sum(), (0, 1))
        expected, *computed = tl.jit(lambda x, a: [gradient(x, a), *[form(x, a) for form in forms]])(x, a)
        others = {o.name: np.asarray(o.value) for o in found.inputs if o.value is not None}
        for form, by_form in zip(forms, computed, strict=True):
            read = read_text(form.text(), {"x": x, "a": a, **others}, {"∇x": (5,), "∇a": (4, 6)})
            for values in ((read["∇x"], read["∇a"]), by_form, run_source(form, x, a, **others)):
                for value, wanted in zip(values, expected, strict=True):
                    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9, err_msg=form.text())


@pytest.mark.parametrize(
    "f, text",
    [
        (lambda A, z: (z.conj() @ A @ z).real, "Re(Σ[j,k] A[j,k] * z[k] * conj(z[j]))"),
        (lambda A, z: -4 * (A @ z).imag[0], "-4 * y[0]"),
        (lambda A, z: ((1 + 2j) * (A @ z)).real.sum(), "Re((1+2j) * Σ[j,k] A[j,k] * z[k])"),
        (lambda A, z: 3 * z[0].real + z[1].imag + 1, "1.5 * y + Im(z[1]) + 1"),
    ],
)
def test_real_and_imaginary_parts(f: Any, text: str):
    with tl.enable_x64():
        rng = np.random.default_rng(0)
        A, z = [rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((3, 3), 3)]
        found = ix.grad(f, 1, value=True)(ix.Space("A", (3, 3), complex), ix.Space("z", (3,), complex))
        assert f"value = {text}" in found.text().split("\n")
        expected = f(tnp.asarray(A), tnp.asarray(z))
        read = read_text(found.text(), {"A": A, "z": z}, {"∇z": (3,)})["value"]
        for value in (read, found(A, z)[0], run_source(found, A, z)[0]):
            np.testing.assert_allclose(value, expected, rtol=1e-12)


def test_functions_of_the_first_elements():
    """They are of these, not of the whole array: a maximum of the first three, and its value."""
    x = np.array([1.0, 2, 3, 9, 4, 5])
    with tl.enable_x64():
        found = ix.grad(lambda x: tnp.max(x[:3]) ** 2, value=True)(x6)
        assert found.text().startswith("y[a<3] = x[a]\ny1 = max[j] y[j]\n")
        for value, slope in (found(x), run_source(found, x)):
            np.testing.assert_allclose(value, 9)
            np.testing.assert_allclose(slope, [0, 0, 6, 0, 0, 0])
