"""`scipy.linalg` against SciPy: real and complex matrices, wide and tall ones, many at once, derivatives, bad input."""

import inspect
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.scipy import linalg
from tests.close import other_algorithms as close

pytestmark = pytest.mark.usefixtures("eager_by_steps")

N = 4
RNG = np.random.default_rng(0)
REAL = RNG.normal(size=(N, N))
COMPLEX = REAL + 1j * RNG.normal(size=(N, N))


@pytest.mark.parametrize("a", [REAL, COMPLEX], ids=["real", "complex"])
def test_systems(a: Any):
    sl = pytest.importorskip("scipy.linalg")
    h, b = a @ a.conj().T + np.eye(N), a[:, :2] + 1
    sides = b, b[:, 0]

    @tl.jit
    def found() -> Any:
        factors = [linalg.cho_factor(h, lower) for lower in (False, True)]
        positive = [linalg.cho_solve(f, y) for f in factors for y in sides]
        positive += [linalg.solve(h, y, lower=lower, assume_a="pos") for lower in (False, True) for y in sides]
        turned = [linalg.lu_solve(linalg.lu_factor(a), y, t) for t in (0, 1, 2) for y in sides]
        upper = [linalg.solve_triangular(a, y, t) for t in (0, "T", 2) for y in sides]
        lower = [linalg.solve_triangular(a, y, t, lower=True, unit_diagonal=True) for t in "NTC" for y in sides]
        return positive, turned, upper, lower, linalg.cholesky(h), linalg.inv(a), linalg.det(a), linalg.solve(a, b)

    positive, turned, upper, lower, factor, inverse, determinant, solution = found()
    for x, y in zip(positive, sides * 4, strict=True):
        close(x, np.linalg.solve(h, y))
    for x, (t, y) in zip(turned, [(t, y) for t in (0, 1, 2) for y in sides], strict=True):
        close(x, sl.lu_solve(sl.lu_factor(a), y, t))
    for x, (t, y) in zip(upper, [(t, y) for t in (0, 1, 2) for y in sides], strict=True):
        close(x, sl.solve_triangular(a, y, t))
    for x, (t, y) in zip(lower, [(t, y) for t in (0, 1, 2) for y in sides], strict=True):
        close(x, sl.solve_triangular(a, y, t, lower=True, unit_diagonal=True))
    close(factor, sl.cholesky(h))
    close(inverse @ a, np.eye(N))
    close(determinant, np.linalg.det(a))
    close(solution, np.linalg.solve(a, b))


@pytest.mark.parametrize("columns", [2, N, 6])
def test_factorizations(columns: int):
    sl = pytest.importorskip("scipy.linalg")
    a = np.concatenate([COMPLEX, REAL], 1)[:, :columns]
    k = min(N, columns)
    left, right = REAL[:k, :2], REAL[:2]
    modes = [(m, p) for m in ("full", "economic", "r") for p in (False, True)]

    @tl.jit
    def found() -> Any:
        products = [linalg.qr_multiply(a, left, "left", conjugate=c) for c in (False, True)]
        products += [linalg.qr_multiply(a, right, conjugate=c) for c in (False, True)]
        return (
            (linalg.lu(a), linalg.lu(a, permute_l=True)),
            [linalg.qr(a, mode=m, pivoting=p) for m, p in modes],
            products,
            linalg.qr_multiply(a, left[:, 0], "left")[0],
            (linalg.polar(a), linalg.polar(a, "left")),
            linalg.svd(a, full_matrices=False),
        )

    lus, qrs, products, vector, polars, parts = found()
    for mine, theirs in zip(lus, (sl.lu(a), sl.lu(a, permute_l=True)), strict=True):
        for x, y in zip(mine, theirs, strict=True):
            close(x, y)
    for mine, (m, p) in zip(qrs, modes, strict=True):
        theirs = sl.qr(a, mode=m, pivoting=p)
        assert len(mine) == len(theirs)
        for x, y in zip(mine, theirs, strict=True):
            close(np.abs(x), np.abs(y))
    q = np.asarray(qrs[2][0])
    for (x, r), wanted in zip(products, (q @ left, q.conj() @ left, right @ q, right @ q.conj()), strict=True):
        close(x, wanted)
        close(r, qrs[2][1])
    close(vector, q @ left[:, 0])
    for mine, side in zip(polars, ("right", "left"), strict=True):
        for x, y in zip(mine, sl.polar(a, side), strict=True):
            close(x, y)
    u, s, vh = map(np.asarray, parts)
    close(u * s @ vh, a)


def test_spectra():
    sl = pytest.importorskip("scipy.linalg")
    h, g = COMPLEX @ COMPLEX.conj().T + np.eye(N), REAL @ REAL.T + np.eye(N)
    d, e = COMPLEX[0].real + 0j, COMPLEX[1, 1:]

    @tl.jit
    def found() -> Any:
        pairs = [linalg.eigh(h, g, type=t) for t in (1, 2, 3)]
        return linalg.eigh(h), linalg.eigh(h, eigvals_only=True), pairs, linalg.eigh_tridiagonal(d, e)

    (w, v), values, pairs, (u, vectors) = found()
    close(h @ np.asarray(v), np.asarray(v) * np.asarray(w))
    close(values, w)
    for t, (w, v) in enumerate(pairs, 1):
        close(w, sl.eigh(h, g, type=t, eigvals_only=True))
        v, norms = np.asarray(v), g if t < 3 else np.linalg.inv(g)
        close(v.conj().T @ norms @ v, np.eye(N))
        close({1: h @ v - g @ v * w, 2: h @ g @ v - v * w, 3: g @ h @ v - v * w}[t], 0 * v, 1e-7, 1e-7)
    matrix = np.diag(d) + np.diag(e, 1) + np.diag(e.conj(), -1)
    close(matrix @ np.asarray(vectors), np.asarray(vectors) * np.asarray(u))
    part = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2))
    close(part, np.linalg.eigvalsh(matrix)[1:3])


@pytest.mark.parametrize("a", [REAL, COMPLEX], ids=["real", "complex"])
def test_functions(a: Any):
    sl = pytest.importorskip("scipy.linalg")
    sizes = a * np.array([1e-3, 0.5, 5, 100])[:, None, None] / np.linalg.norm(a, 1)
    g, direction = REAL @ REAL.T + np.eye(N), REAL[::-1] + 0 * a

    @tl.jit
    def found() -> Any:
        real = linalg.schur(a)
        forms = real, linalg.rsf2csf(*real), linalg.schur(a, "complex"), linalg.hessenberg(a, calc_q=True)
        slopes = [linalg.expm_frechet(a, direction, method=m) for m in ("SPS", "blockEnlarge")]
        upper = linalg.expm(tnp.triu(a), upper_triangular=True)
        sylvester = linalg.solve_sylvester(a + 5 * np.eye(N), g[:2, :2], a[:, :2])
        return forms, linalg.expm(sizes), upper, slopes, linalg.sqrtm(a), linalg.funm(a, tnp.exp), sylvester

    forms, exponentials, upper, slopes, root, function, sylvester = found()
    for form, q in forms:
        form, q = np.asarray(form), np.asarray(q)
        close(q @ form @ q.conj().T, a)
        close(q @ q.conj().T, np.eye(N))
        close(np.tril(form, -2), 0 * form)
    for form, _ in forms[1:3]:
        close(np.tril(form, -1), np.zeros((N, N)))
    for x, y in zip(exponentials, sizes, strict=True):
        right = sl.expm(y)
        close(x / np.abs(right).max(), right / np.abs(right).max())
    close(upper, sl.expm(np.triu(a)))
    for mine in slopes:
        for x, y in zip(mine, sl.expm_frechet(a, direction), strict=True):
            close(x, y)
    close(root @ root, a)
    close(function, sl.expm(a), 1e-8, 1e-8)
    close((a + 5 * np.eye(N)) @ sylvester + sylvester @ g[:2, :2], a[:, :2])


def test_exponentials_of_matrices_far_from_normal():
    """Powers whose norms are far below those of the norm: few squarings, each of which would double the errors."""
    for dtype in (np.float32, np.float64, np.complex128):
        close(linalg.expm(np.array([[0, 1e30], [0, 0]], dtype)), np.array([[1, 1e30], [0, 1]], dtype), 1e-6, 1e-6)
    a = np.array([[1.0, 1e8], [0, 2]])
    slope = np.asarray(tl.grad(lambda a: linalg.expm(a)[0, 0])(a))
    close(slope / np.array([[np.e, 1], [1e8 * (np.e**2 - 2 * np.e), 1]]), np.array([[1.0, 0], [1, 0]]))


def test_what_has_no_root_and_no_solution():
    jordan = np.array([[0.0, 1], [0, 0]])
    assert not np.isfinite(linalg.sqrtm(jordan)).all() and not np.isfinite(linalg.funm(jordan, tnp.sin)).any()
    close(linalg.sqrtm(np.zeros((2, 2))), np.zeros((2, 2)))
    identity, error = linalg.funm(np.eye(2), tnp.exp, disp=False)
    close(identity, np.e * np.eye(2))
    assert float(error) == np.finfo(float).eps
    assert np.isnan(linalg.solve_sylvester(np.eye(2), -np.eye(2), np.eye(2))).all()
    assert np.isnan(linalg.expm(np.eye(2) * 1e30)).all()


def test_no_elements_and_many_matrices():
    none, many = np.zeros((0, 0)), np.stack([REAL, REAL + 1])
    for f in (linalg.expm, linalg.sqrtm, linalg.inv, linalg.cholesky, linalg.hessenberg):
        assert f(none).shape == (0, 0)
    found = *linalg.schur(none), *linalg.lu(none), *linalg.qr(none), *linalg.polar(none)
    assert [x.shape for x in found] == [(0, 0)] * 9
    every = tl.jit(lambda: (linalg.lu(many), linalg.sqrtm(many), linalg.hessenberg(many), linalg.polar(many)))()
    one = tl.jit(lambda: (linalg.lu(REAL), linalg.sqrtm(REAL), linalg.hessenberg(REAL), linalg.polar(REAL)))()
    for x, y in zip(tl.tree.leaves(every), tl.tree.leaves(one), strict=True):
        close(x[0], y)


def test_derivatives():
    p = REAL[:3, :3] @ REAL[:3, :3].T + np.eye(3)
    cases: list[tuple[Any, Any]] = [
        (linalg.expm, (REAL[:3, :3],)),
        (lambda x: linalg.sqrtm(x).real, (p,)),
        (linalg.solve_sylvester, (p, p[:2, :2], REAL[:3, :2])),
        (lambda x: linalg.polar(x)[0], (REAL[:3, :3],)),
        (lambda x, b: linalg.lu_solve(linalg.lu_factor(x), b), (p, REAL[:3, 0])),
        (lambda x, b: linalg.eigh(x, b)[0], (p, p @ p)),
        (lambda d, e: linalg.eigh_tridiagonal(d, e)[0], (REAL[0], REAL[1, 1:])),
        (linalg.fiedler_companion, (REAL[0],)),
    ]
    for f, args in cases:
        tl.testing.check_grads(tl.jit(f), args, 1, rtol=1e-5, eps=1e-5)
    with pytest.raises(NotImplementedError, match="schur has no derivative"):
        tl.jvp(lambda x: linalg.funm(x, tnp.exp), (REAL,), (REAL,))


# ---- special matrices


def test_special_matrices(rng: np.random.Generator):
    sl = pytest.importorskip("scipy.linalg")
    cases: list[tuple[str, Any]] = []
    for n in (1, 2, 4):
        x = rng.normal(size=n)
        cases += [(f, (x,)) for f in ("toeplitz", "hankel", "circulant", "fiedler")]
        cases += [(f, (x,)) for f in ("companion", "fiedler_companion") if n > 1]
        cases += [("leslie", (x, x[1:]))] if n > 1 else []
        cases += [("convolution_matrix", (x, k, m)) for k in (1, 4) for m in ("full", "same", "valid")]
        cases += [("dft", (n, s)) for s in (None, "n", "sqrtn")] + [(f, (n,)) for f in ("hilbert", "invhilbert")]
        cases += [(f, (n, k)) for f in ("pascal", "invpascal") for k in ("symmetric", "lower", "upper")]
        cases += [("helmert", (n, True)), *([("helmert", (n,))] if n > 1 else [])]
    x, y = COMPLEX[0], REAL[1, :3]
    cases += [("toeplitz", (x, y)), ("toeplitz", (x,)), ("hankel", (x, y)), ("hadamard", (8,)), ("toeplitz", (3,))]
    cases += [("block_diag", (REAL, x, 3, np.zeros((0, 2))))]
    every = tl.jit(lambda: [getattr(linalg, name)(*args) for name, args in cases])()
    for found, (name, args) in zip(every, cases, strict=True):
        right = getattr(sl, name)(*args)
        assert found.shape == right.shape
        np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-6, err_msg=f"{name}{args}")
    assert linalg.toeplitz(np.ones((4, 1, 3)), np.ones((2, 6))).shape == (4, 2, 3, 6)
    assert [linalg.circulant(np.zeros((2, 0))).shape, linalg.block_diag().shape] == [(2, 0, 0), (1, 0)]
    assert linalg.hadamard(2).dtype == np.int32 and linalg.toeplitz(np.ones(2, np.int8)).dtype == np.int8
    assert linalg.invhilbert(200).dtype == np.float32  # infinite elements, not errors


def test_bad_input():
    square = "the matrix must be square"
    for f in (linalg.expm, linalg.sqrtm, linalg.cholesky, linalg.hessenberg, linalg.inv, linalg.det, linalg.eigh):
        with pytest.raises(ValueError, match=square):
            f(np.ones((2, 3)))
        with pytest.raises(TypeError, match="32-bit or 64-bit"):
            f(np.ones((2, 2), np.float16))
    for message, call in {
        r"cho_solve: the right side must be \[.., n, m\]": lambda: linalg.cho_solve((np.eye(2), True), np.ones(3)),
        "solve: assume_a must be": lambda: linalg.solve(REAL, REAL, assume_a="other"),
        "solve_triangular: trans must be": lambda: linalg.solve_triangular(REAL, REAL, 3),
        "qr_multiply: c must have 4 rows": lambda: linalg.qr_multiply(REAL, np.ones(3), "left"),
        "eigh: type must be": lambda: linalg.eigh(REAL, REAL, type=4),
        "eigh_tridiagonal: diagonals": lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)),
        r"select_range \(1, 3\) is not within the 3": lambda: linalg.eigh_tridiagonal(
            np.ones(3), np.ones(2), select="i", select_range=(1, 3)
        ),
        "hadamard: n must be a power of 2": lambda: linalg.hadamard(3),
        "leslie: f": lambda: linalg.leslie(np.ones(3), np.ones(3)),
        "hankel: c and r must be vectors": lambda: linalg.hankel(1),
        "block_diag: argument 1 must have": lambda: linalg.block_diag(1, np.ones((1, 1, 1))),
        r"solve_sylvester: A \[.., m, m\]": lambda: linalg.solve_sylvester(REAL, REAL, np.ones((2, 4))),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="polar: singular values are computed at once"):
        linalg.polar(REAL, eps=1e-3)


def test_parameters_are_those_of_jax():
    theirs = pytest.importorskip("jax.scipy.linalg")
    names = [n for n in dir(theirs) if not n.startswith("_")]
    assert set(names) <= set(linalg.__all__)
    for name in names:
        wanted = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(linalg, name)).parameters)[: len(wanted)] == wanted, name
