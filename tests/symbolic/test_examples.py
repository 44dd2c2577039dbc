"""The examples of variational differentiation: printed forms, numbers of terms, and the stated numbers."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import work
from tests.symbolic.checks import check, gradient, hermitian, random, run_source
from tests.symbolic.reading import read_text

pytestmark = pytest.mark.usefixtures("eager_by_steps")


@pytest.fixture(autouse=True)
def in_64_bits():
    with tl.enable_x64():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def space(name, *shape, symmetries=(), dtype=complex):
    return ix.Space(name, shape, dtype, symmetries)


def quadratic(A, x):
    return ix.sum((2, 2), lambda i, j: tnp.conj(x[i]) * A[i, j] * x[j])


MATRIX, POINT = np.array([[2, 1j], [-1j, 3]]), np.array([1 + 1j, 2 - 1j])


def test_hermitian_form():
    """VD1: one term, the stated numbers in both conventions."""
    spaces = space("A", 2, 2, symmetries="hermitian"), space("x", 2)
    found = check(quadratic, 1, (MATRIX, POINT), spaces)
    assert found.text() == "2 * Σ[j] A[a,j] * x[j]"
    assert found.latex() == r"2 \, \sum_{j} A_{aj} \, x_{j}"
    assert found.einsum() == '2 * np.einsum("ab,b->a", A, x)'
    assert found.assumptions == ("A[i,j] = conj(A[j,i])",)
    assert [t.coefficient for t in found.terms] == [2]
    np.testing.assert_allclose(quadratic(tnp.asarray(MATRIX), tnp.asarray(POINT)), 25, rtol=1e-15)
    np.testing.assert_allclose(found(MATRIX, POINT), [6 + 8j, 14 - 8j], rtol=1e-15)
    bilinear = ix.grad(quadratic, 1, convention="bilinear")(*spaces).simplify()
    np.testing.assert_allclose(bilinear(MATRIX, POINT), [6 - 8j, 14 + 8j], rtol=1e-15)


def test_form_without_symmetry(rng):
    """VD1, undeclared: A x + A† x."""
    found = check(quadratic, 1, (random(rng, (2, 2)), POINT), (space("A", 2, 2), space("x", 2)))
    assert found.text() == "Σ[i] conj(A[i,a]) * x[i] + Σ[j] A[a,j] * x[j]"
    assert found.assumptions == ()


def test_bulk_operations_give_the_same_form():
    def f(A, x):
        return x.conj() @ A @ x

    spaces = space("A", 2, 2, symmetries="hermitian"), space("x", 2)
    assert ix.grad(f, 1)(*spaces).simplify().text() == "2 * Σ[j] A[a,j] * x[j]"


def test_trace_of_products(rng):
    """VD2: (2 B†, 2 A†)"""

    def f(A, B):
        return tnp.trace(A @ B + B @ A)

    found = ix.grad(f, (0, 1))(space("A", 3, 3), space("B", 3, 3)).simplify()
    assert found.text() == "∇A[a,b] = 2 * conj(B[b,a])\n∇B[a,b] = 2 * conj(A[b,a])"
    assert [len(t) for t in found.terms] == [1, 1]
    A, B = random(rng, (3, 3)), random(rng, (3, 3))
    for k, x in enumerate(found(A, B)):
        np.testing.assert_allclose(x, gradient(f, k, (A, B)), rtol=1e-12)


def cubic(T, x):
    return ix.sum((3, 3, 3), lambda i, j, k: T[i, j, k] * x[i] * x[j] * x[k])


def test_cubic_form(rng):
    """VD3: one term if T is symmetric, three if nothing is declared."""
    T, x = random(rng, (3, 3, 3), False), random(rng, (3,), False)
    spaces = space("T", 3, 3, 3, dtype=float), space("x", 3, dtype=float)
    assert len(check(cubic, 1, (T, x), spaces).terms) == 3
    symmetric = sum(T.transpose(p) for p in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
    spaces = space("T", 3, 3, 3, symmetries="symmetric", dtype=float), space("x", 3, dtype=float)
    found = check(cubic, 1, (symmetric, x), spaces)
    assert found.text() == "3 * Σ[j,k] T[a,j,k] * x[j] * x[k]"
    partly = space("T", 3, 3, 3, symmetries=[((1, 0, 2), "id")], dtype=float), space("x", 3, dtype=float)
    assert len(check(cubic, 1, (T + T.transpose(1, 0, 2), x), partly).terms) == 2


def residual(T, X, Y, Z):
    return tnp.sum((T - tnp.einsum("in,jn,kn->ijk", X, Y, Z)) ** 2)


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (1, "-2 * Σ[j,k] y[a,j,k] * Y[j,b] * Z[k,b]"),
        (2, "-2 * Σ[j,k] y[j,a,k] * X[j,b] * Z[k,b]"),
        (3, "-2 * Σ[j,k] y[j,k,a] * X[j,b] * Y[k,b]"),
    ],
)
def test_tensor_decomposition(rng, argnums, expected):
    """VD4: the residual has a name, and is not multiplied out."""
    shapes = {"T": (2, 3, 4), "X": (2, 5), "Y": (3, 5), "Z": (4, 5)}
    args = [random(rng, shape, False) for shape in shapes.values()]
    found = check(residual, argnums, args, [space(name, *shape, dtype=float) for name, shape in shapes.items()])
    assert found.text() == f"y[a,b,c] = T[a,b,c] - Σ[j] X[a,j] * Y[b,j] * Z[c,j]\n{expected}"


def hartree_fock(C, J):
    return ix.sum(
        (2, 2, 3, 3, 3, 3),
        lambda i, j, p, q, r, s: tnp.conj(C[p, i]) * C[q, i] * tnp.conj(C[r, j]) * C[s, j] * J[p, q, r, s],
    )


EXCHANGE = (((1, 0, 3, 2), "conj"), ((2, 3, 0, 1), "id"))


def repulsion(rng):
    J = random(rng, (3,) * 4)
    J = J + J.transpose(1, 0, 3, 2).conj()
    return J + J.transpose(2, 3, 0, 1)


def test_hartree_fock(rng):
    """VD6: one term with the symmetries, four without."""
    C = random(rng, (3, 2))
    found = check(hartree_fock, 0, (C, repulsion(rng)), (space("C", 3, 2), space("J", 3, 3, 3, 3, symmetries=EXCHANGE)))
    assert found.text() == "4 * Σ[q,r,s,i] J[a,q,r,s] * C[q,b] * C[s,i] * conj(C[r,i])"
    assert found.assumptions == ("J[i,j,k,l] = conj(J[j,i,l,k])", "J[i,j,k,l] = J[k,l,i,j]")
    found = check(hartree_fock, 0, (C, random(rng, (3,) * 4)), (space("C", 3, 2), space("J", 3, 3, 3, 3)))
    assert [t.coefficient for t in found.terms] == [1, 1, 1, 1]
    one = space("J", 3, 3, 3, 3, symmetries=EXCHANGE[:1])
    J = random(rng, (3,) * 4)
    found = check(hartree_fock, 0, (C, J + J.transpose(1, 0, 3, 2).conj()), (space("C", 3, 2), one))
    assert [t.coefficient for t in found.terms] == [2, 2]


def test_second_derivative_of_hartree_fock(rng):
    """VD7: a gradient is a function that is differentiated again; three terms with coefficient 4."""
    C, J, k = space("C", 3, 2), space("J", 3, 3, 3, 3, symmetries=EXCHANGE), space("k", 3, 2)
    first = ix.grad(hartree_fock)(C, J).simplify()
    found = ix.pullback(first)(C, J, k).simplify()
    assert [t.coefficient for t in found.terms] == [4, 4, 4]
    assert found.text() == (
        "4 * Σ[q,r,s,i] J[a,q,r,s] * C[s,i] * conj(C[r,i]) * k[q,b]"
        " + 4 * Σ[p,q,s,i] J[p,q,a,s] * C[s,b] * conj(C[p,i]) * k[q,i]"
        " + 4 * Σ[p,q,s,i] J[p,q,a,s] * C[q,i] * C[s,b] * conj(k[p,i])"
    )
    assert found.assumptions == first.assumptions == ("J[i,j,k,l] = conj(J[j,i,l,k])", "J[i,j,k,l] = J[k,l,i,j]")
    assert ix.pullback(first)(C, J, k).assumptions == first.assumptions  # also of what was simplified before
    c, j, direction = random(rng, (3, 2)), repulsion(rng), random(rng, (3, 2))
    given = {"C": c, "J": j, "k": direction}
    values = [read_text(f"t[a,b] = {t}", given, {"t": (3, 2)})["t"] for t in found.terms]
    expected = [
        4 * np.einsum("pe,aspd,de,sb->ab", c.conj(), j, direction, c),
        4 * np.einsum("rapd,de,pe,rb->ab", j.conj(), direction.conj(), c, c),
        4 * np.einsum("rj,rsad,db,sj->ab", c.conj(), j, direction, c),
    ]
    for term in expected:
        assert sum(np.allclose(term, value, rtol=1e-10) for value in values) == 1

    def derivative(c):
        return np.asarray(tl.grad(lambda c: tnp.real(hartree_fock(c, tnp.asarray(j))))(c)).conj()

    h = 1e-5
    expected = (derivative(c + h * direction) - derivative(c - h * direction)) / (2 * h)  # the Hessian is symmetric
    np.testing.assert_allclose(found(c, j, direction), expected, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(run_source(found, c, j, direction), expected, rtol=1e-7, atol=1e-6)


def orbital_dependent(C, R, R2):
    occupied = tnp.diag(C.conj().T @ R @ C)
    return tnp.trace(C.conj().T @ R2 @ C).real - tnp.sum(tnp.abs(occupied) ** 2)


def test_diagonal_of_a_product(rng):
    """VD10: 2 R₂ C - 4 (R C)[d,e] (C† R C)[e,e]"""
    args = random(rng, (3, 2)), hermitian(rng, 3), hermitian(rng, 3)
    spaces = space("C", 3, 2), *[space(name, 3, 3, symmetries="hermitian") for name in ("R", "R2")]
    found = check(orbital_dependent, 0, args, spaces)
    assert sorted(t.text() for t in found.terms) == [
        "-4 * Σ[j,k,l] C[j,b] * C[k,b] * conj(C[l,b]) * R[a,j] * R[l,k]",
        "2 * Σ[j] C[j,b] * R2[a,j]",
    ]


def test_value_and_gradient(rng):
    """VD8: value and gradient together take at most twice the work of the value."""

    def energy(C, F):
        return tnp.trace(C.conj().T @ F @ C).real

    args = random(rng, (8, 5)), hermitian(rng, 8)
    found = check(energy, 0, args, (space("C", 8, 5), space("F", 8, 8, symmetries="hermitian")))
    assert found.matrix() == "2 * F @ C"
    both = work(lambda C, F: (energy(C, F), found(C, F)), *args)
    assert both <= 2 * work(energy, *args)


def test_masks(rng):
    """VD12: a pullback applies the mask again; that of a trace is the identity; a sum of one-hots is a range."""
    A, k = space("A", 4, 4, dtype=float), space("k", 4, 4, dtype=float)

    def checkered(A):
        return ix.build((4, 4), lambda i, j: ((i + j) % 2 == 0) * A[i, j])

    found, x = ix.pullback(checkered)(A, k), random(rng, (4, 4), False)
    assert found.text() == "[(a + b) % 2 = 0] * k[a,b]"
    np.testing.assert_array_equal(found(x, x), np.where(np.add.outer(range(4), range(4)) % 2 == 0, x, 0))
    assert ix.grad(tnp.trace)(space("A", 3, 3, dtype=float)).text() == "[a = b]"
    assert ix.grad(lambda A: ix.sum(3, lambda i: A[i, i]))(space("A", 3, 3, dtype=float)).text() == "[a = b]"

    def first_two(x):
        return ix.sum(3, lambda j: ix.sum(2, lambda i: (i == j) * x[j]))

    assert ix.grad(first_two)(space("x", 3, dtype=float)).text() == "[a < 2]"


def stencil(x, g):
    return ix.build(4, lambda i: ix.sum(3, lambda j: g[j] * x[i + j]))


def test_gradient_of_a_stencil_prints_as_two_stencils():
    """TL3: a convolution, then correlations with what it is; no scatter."""
    x, g = space("x", 6, dtype=float), space("g", 3, dtype=float)
    found = ix.grad(lambda x, g: ix.sum(4, lambda i: stencil(x, g)[i] ** 2), (0, 1), lets=True)(x, g)
    assert found.text().split("\n") == [
        "y[a<4] = Σ[j] x[a + j] * g[j]",
        "∇x[a] = 2 * Σ[j] [0 <= a - j < 3] * g[a - j] * y[j]",
        "∇g[a] = 2 * Σ[j] x[a + j] * y[j]",
    ]
    in_x, in_g = found(np.arange(1.0, 7), np.array([1.0, 2, 3]))
    np.testing.assert_array_equal(in_x, [28, 96, 216, 288, 284, 192])
    np.testing.assert_array_equal(in_g, [520, 704, 888])


def test_gradients_of_outer_products():
    """TL7, TL8, in array operations: what is printed, and costs for all sizes, as written and as they run."""

    def trace(x):
        return tnp.trace(x[:, None] * x)

    def row_times_column(x):
        outer = x[:, None] * x
        return outer[:, 0] @ outer[0]

    def cost(f, n, as_written=False):
        return ix.cost(f, space("x", n, dtype=float), as_written=as_written).at()

    def both(f):
        return lambda x: tl.value_and_grad(f)(x)

    assert ix.grad(trace)(space("x", 3, dtype=float)).text() == "2 * x[a]"
    for n in (5, 12):
        assert cost(trace, n, as_written=True) == n**2 + n - 1
        assert cost(both(trace), n, as_written=True) == n**2 + 2 * n - 1 <= n**2 + 4 * n - 1
        assert (cost(trace, n), cost(tl.grad(trace), n)) == (2 * n - 1, n)
    found = ix.grad(row_times_column)(space("x", 3, dtype=float)).simplify()
    assert found.text() == "2 * Σ[j] [a = 0] * x[0] * x[j]**2 + 2 * x[0]**2 * x[a]"
    np.testing.assert_array_equal(found(np.array([1.0, 2, 3])), [30, 4, 6])
    for f in (row_times_column, tl.grad(row_times_column), both(row_times_column)):
        assert cost(f, 32) <= 2 * cost(f, 16) < 2 * 16**2


def test_push_of_a_one_hot():
    """TL4: the derivative of a filter along x[k], with k free."""
    g = tnp.asarray([1.0, 2.0, 3.0])

    def f(x):
        return ix.build(4, lambda i: ix.sum(3, lambda j: g[j] * x[i + j]))

    found = ix.push(f, space("x", 6, dtype=float), along=lambda i: i == ix.free("k"))
    assert found.text() == "[0 <= k - a < 3] * g[k - a]"
    x = np.arange(6.0)
    for k in range(6):
        expected = tl.jvp(f, (x,), (np.eye(6)[k],))[1]
        np.testing.assert_array_equal(found(x, k=k), expected)
        np.testing.assert_array_equal(run_source(found, x, g=np.asarray(g), k=k), expected)


def test_terms_that_are_alike_at_each_element():
    found = ix.push(lambda x: tnp.convolve(x, x), space("x", 5, dtype=float), along=lambda i: i == ix.free("k"))
    assert found.simplify().text() == "2 * [0 <= a - k < 5] * x[a - k]"


def test_hessian_by_one_hots():
    """TL10"""
    A = tnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    slope = tl.grad(lambda x: ix.sum((2, 2), lambda i, j: x[i] * A[i, j] * x[j]))
    found = ix.push(slope, space("x", 2, dtype=float), along=lambda i: i == ix.free("k"))
    assert found.text() in ("A[a,k] + A[k,a]", "A[k,a] + A[a,k]")
    columns = [found(np.zeros(2), k=k) for k in range(2)]
    np.testing.assert_array_equal(np.stack(columns, 1), [[2, 5], [5, 8]])


def trace_of_products(A, B):
    return ix.sum((3, 3), lambda i, j: A[i, j] * B[j, i] + B[i, j] * A[j, i])


def misfit(T, X, Y, Z):
    residual = ix.build(T.shape, lambda i, j, k: T[i, j, k] - ix.sum(5, lambda n: X[i, n] * Y[j, n] * Z[k, n]))
    return ix.sum(T.shape, lambda i, j, k: residual[i, j, k] ** 2)


def orbitals_by_elements(C, R, R2):
    (n, m), conj = C.shape, tnp.conj
    occupied = ix.build(m, lambda i: ix.sum((n, n), lambda p, q: conj(C[p, i]) * R[p, q] * C[q, i]))
    energy = ix.sum((m, n, n), lambda i, p, q: conj(C[p, i]) * R2[p, q] * C[q, i])
    return energy.real - ix.sum(m, lambda i: tnp.abs(occupied[i]) ** 2)


def band_energy(C, F):
    n, m = C.shape
    return ix.sum((m, n, n), lambda i, p, q: tnp.conj(C[p, i]) * F[p, q] * C[q, i]).real


def test_the_same_by_elements(rng):
    """VD2, VD4, VD8, VD10 in the index language: the formulas are those of bulk operations, with the user's indices."""
    args = random(rng, (3, 3)), random(rng, (3, 3))
    found = check(trace_of_products, 0, args, (space("A", 3, 3), space("B", 3, 3)))
    assert found.text() == "2 * conj(B[b,a])"
    shapes = {"T": (2, 3, 4), "X": (2, 5), "Y": (3, 5), "Z": (4, 5)}
    args = [random(rng, shape, False) for shape in shapes.values()]
    found = check(misfit, 1, args, [space(name, *shape, dtype=float) for name, shape in shapes.items()])
    assert found.text().split("\n")[-1] == "-2 * Σ[j,k] y[a,j,k] * Y[j,b] * Z[k,b]"
    assert found.text().split("\n")[0] == "y[a,b,c] = T[a,b,c] - Σ[n] X[a,n] * Y[b,n] * Z[c,n]"
    args = random(rng, (3, 2)), hermitian(rng, 3), hermitian(rng, 3)
    spaces = space("C", 3, 2), *[space(name, 3, 3, symmetries="hermitian") for name in ("R", "R2")]
    found = check(orbitals_by_elements, 0, args, spaces)
    assert sorted(t.text() for t in found.terms) == [
        "-4 * Σ[p,q,p1] C[p,b] * C[q,b] * conj(C[p1,b]) * R[a,p] * R[p1,q]",
        "2 * Σ[p] C[p,b] * R2[a,p]",
    ]
    args = random(rng, (8, 5)), hermitian(rng, 8)
    found = check(band_energy, 0, args, (space("C", 8, 5), space("F", 8, 8, symmetries="hermitian")))
    assert found.matrix() == "2 * F @ C"
    assert work(lambda C, F: (band_energy(C, F), found(C, F)), *args) <= 2 * work(band_energy, *args)
