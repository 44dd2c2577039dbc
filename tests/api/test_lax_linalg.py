"""The functions of `lax.linalg` beyond the decompositions of NumPy: condensed forms, reflections, updates, systems."""

import numpy as np
import pytest
import scipy.linalg

import tapeless as tl
from tapeless.lax import linalg
from tests.close import factorizations, fused_single_precision

pytestmark = pytest.mark.usefixtures("eager_by_steps")

DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture
def random(rng):
    """A function that draws arrays of a shape, by a test's own generator."""

    def draw(*shape, dtype="float64"):
        x = rng.normal(size=shape)
        return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)

    return draw


def close(x, y, dtype="float64"):
    (fused_single_precision if dtype in ("float32", "complex64") else factorizations)(x, y)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


# ---- condensed forms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_condensed_forms_are_similar_to_their_matrices(dtype, random):
    """Of batches, and also without elements."""
    a = random(2, 4, 4, dtype=dtype)
    form, taus = linalg.hessenberg(a)
    q = np.broadcast_to(np.eye(4, dtype=dtype), a.shape).copy()
    q[:, 1:, 1:] = linalg.householder_product(form[:, 1:, :-1], taus)
    close(q @ np.triu(form, -1) @ adjoint(q), a, dtype)
    t, q = (np.asarray(x) for x in linalg.schur(a))
    close(q @ t @ adjoint(q), a, dtype)
    close(q @ adjoint(q), np.broadcast_to(np.eye(4), a.shape), dtype)
    assert not np.tril(t, -1 if "complex" in dtype else -2).any()
    close(linalg.schur(a, compute_schur_vectors=False)[0], t, dtype)
    for lower in (True, False):
        hermitian = a + adjoint(a)
        _, d, e, _ = linalg.tridiagonal(hermitian, lower=lower)
        found = [scipy.linalg.eigh_tridiagonal(*x, eigvals_only=True) for x in zip(np.asarray(d), np.asarray(e))]
        close(found, np.linalg.eigvalsh(hermitian), dtype)
    assert [x.shape for x in linalg.schur(a[:, :0, :0])] == [(2, 0, 0)] * 2
    assert [x.shape for x in linalg.hessenberg(a[:0])] == [(0, 4, 4), (0, 3)]


def test_what_is_not_read_may_be_nan(random):
    a = random(4, 4)
    a = a + a.T
    for lower, other in ((True, np.triu), (False, np.tril)):
        k = 1 if lower else -1
        spoilt = np.where(other(np.ones((4, 4)), k) != 0, np.nan, a)
        for x, y in zip(linalg.tridiagonal(spoilt, lower=lower)[1:], linalg.tridiagonal(a, lower=lower)[1:]):
            np.testing.assert_array_equal(x, y)
    both = np.stack([np.full((3, 3), np.nan), np.eye(3)])
    found = np.asarray(linalg.schur(both)[0])
    assert np.isnan(found[0]).all() and (found[1] == np.eye(3)).all()


@pytest.mark.parametrize("name", ["hessenberg", "tridiagonal", "schur"])
def test_condensed_forms_have_no_derivative(name):
    with pytest.raises(NotImplementedError, match=rf"^{name} has no derivative: .*\n  Differentiate a function"):
        tl.grad(lambda x: getattr(linalg, name)(x)[0].sum())(np.eye(3))


def test_eigenvalues_of_schurs_form_have_no_order():
    with pytest.raises(NotImplementedError, match="schur: eigenvalues are not ordered"):
        linalg.schur(np.eye(2), sort_eig_vals=True)


# ---- reflections -----------------------------------------------------------------------------------------------


def reflections(matrix):
    """Vectors below a diagonal, and factors, by LAPACK; above stands what is not read."""
    (qr, taus), _ = scipy.linalg.qr(matrix, mode="raw")
    return np.asarray(qr), np.asarray(taus)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_reflections(dtype, random):
    for m, n, k in ((4, 4, 4), (5, 3, 2), (3, 1, 0), (1, 1, 1)):
        a, taus = reflections(random(m, n, dtype=dtype))
        whole = scipy.linalg.get_lapack_funcs("ungqr" if "complex" in dtype else "orgqr", (a,))
        square = np.concatenate([a, np.full((m, m - n), np.nan, dtype)], 1)  # columns without a factor are not read
        c, eye = random(m, 2, dtype=dtype), np.eye(m, dtype=dtype)

        @tl.jit
        def products(a, square, taus, c):
            on_sides = {
                (left, turned): linalg.ormqr(square, taus, c if left else c.T, left=left, transpose=turned)
                for left in (True, False)
                for turned in (True, False)
            }
            return linalg.householder_product(a, taus), linalg.ormqr(a, taus, eye), on_sides  # noqa: B023

        product, q, on_sides = tl.tree.map(np.asarray, products(a, square, taus[:k], c))
        close(product, whole(a, taus[:k])[0] if k else np.eye(m, n), dtype)
        close(q[:, :n], product, dtype)
        for (left, turned), found in on_sides.items():
            by = adjoint(q) if turned else q
            close(found, by @ c if left else c.T @ by, dtype)


def test_derivatives_of_reflections(random):
    a, taus = reflections(random(4, 3))
    tl.testing.check_grads(linalg.householder_product, (a, taus), 2)
    tl.testing.check_grads(linalg.householder_product, (a, 0 * taus), 1)  # of factors that are 0
    tl.testing.check_grads(lambda a, taus, c: linalg.ormqr(a, taus, c, transpose=True), (a, taus, random(4, 2)), 1)
    batch = tl.vmap(linalg.householder_product)(np.stack([a, 2 * a]), np.stack([taus, taus]))
    close(batch[1], linalg.householder_product(2 * a, taus))


def test_reflections_that_do_not_fit(random):
    a, taus = reflections(random(4, 3))
    cases = [
        (lambda: linalg.householder_product(a.T, taus), r"there are more columns than rows: float64\[3,4\]"),
        (lambda: linalg.householder_product(a[:, :2], taus), r"more factors .*: float64\[4,2\] and float64\[3\]"),
        (lambda: linalg.householder_product(a, taus[None]), r"leading axes: float64\[4,3\] and float64\[1,3\]"),
        (lambda: linalg.ormqr(a, taus, a.T), r"axis -2 of float64\[3,4\] must have 4 elements"),
    ]
    for call, message in cases:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match=r"operands differ in dtype: float64.* and float32"):
        linalg.householder_product(a, taus.astype(np.float32))


# ---- permutations, updates, products -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 4), (2, 0), (0, 2)])
def test_permutations_of_exchanges(shape, random):
    x = random(*shape)
    _, pivots, permutation = linalg.lu(x)
    found = linalg.lu_pivots_to_permutation(pivots, shape[-2])
    np.testing.assert_array_equal(found, permutation)
    assert found.dtype == np.int32
    jitted = tl.jit(lambda p: linalg.lu_pivots_to_permutation(p, shape[-2] + 2))(pivots)
    np.testing.assert_array_equal(jitted[..., : shape[-2]], permutation)


def test_permutations_that_are_refused():
    with pytest.raises(TypeError, match=r"pivots must be int32\[.., k\], not int64\[2\]"):
        linalg.lu_pivots_to_permutation(np.array([0, 1]), 2)
    with pytest.raises(ValueError, match=r"2 exchanges of 1 rows, of int32\[2\]"):
        linalg.lu_pivots_to_permutation(np.array([0, 1], np.int32), 1)


@pytest.mark.parametrize("w", [[0.3, -2.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1e-200, -3.0], [1e200, 0.0, 1.0]])
def test_updates_of_cholesky_factors(w, random):
    w, r = np.array(w), np.linalg.cholesky(np.cov(random(3, 9))).T
    found = np.asarray(linalg.cholesky_update(r, w))
    scale = max(np.abs(w).max(), 1)
    full = np.linalg.qr(np.vstack([r, w]) / scale, mode="r")
    close(np.abs(found / scale), np.abs(full))
    assert (np.diag(found) > 0).all() and not np.tril(found, -1).any()
    both = tl.vmap(linalg.cholesky_update)(np.stack([r, 2 * r]), np.stack([w, w]))
    close(both[0] / scale, found / scale)


def test_derivatives_of_updates(random):
    """Also where there is nothing to rotate, of second order too."""
    r = np.linalg.cholesky(np.cov(random(3, 9))).T
    for w in (random(3), np.zeros(3)):
        tl.testing.check_grads(tl.jit(linalg.cholesky_update), (r, w), 2)


def test_symmetric_products(random):
    a, c = random(2, 3, 4), random(2, 3, 3)
    close(linalg.symmetric_product(a, c), a @ adjoint(a))
    wanted = 2 * a @ adjoint(a) - 3 * c
    close(linalg.symmetric_product(a, c, alpha=2.0, beta=-3.0), wanted)
    found = linalg.symmetric_product(a, c, alpha=2.0, beta=-3.0, symmetrize_output=True)
    close(found, np.tril(wanted) + adjoint(np.tril(wanted, -1)))
    tl.testing.check_grads(lambda a, c: linalg.symmetric_product(a, c, beta=2.0), (a, c), 1)
    with pytest.raises(ValueError, match=r"not float64\[2,3,4\] and float64\[2,3,4\]"):
        linalg.symmetric_product(a, a)
    with pytest.raises(TypeError, match="the matrices must be real"):
        linalg.symmetric_product(a + 0j, c + 0j)


# ---- tridiagonal systems -------------------------------------------------------------------------------------


def test_tridiagonal_systems_under_vmap(random):
    """One matrix and many right sides are one call; matrices of their own are a batch."""
    dl, d, du, b = random(4), random(4) + 4, random(4), random(3, 4, 2)
    found = np.asarray(tl.vmap(linalg.tridiagonal_solve, (None, None, None, 0))(dl, d, du, b))
    for x, y in zip(found, b):
        close(x, linalg.tridiagonal_solve(dl, d, du, y))
    text = str(tl.make_jaxpr(tl.vmap(linalg.tridiagonal_solve, (None, None, None, 0)))(dl, d, du, b))
    assert "f64[4,6]" in text
    batch = tl.vmap(linalg.tridiagonal_solve, (None, 0, None, 1))(dl, np.stack([d, 2 * d]), du, random(4, 2, 1))
    assert batch.shape == (2, 4, 1)
    tl.testing.check_grads(linalg.tridiagonal_solve, (dl, d, du, b[0]), 2)


def test_singular_tridiagonal_systems():
    """nan, or finite if it is moved: the solution is large along the null vector."""
    d = np.stack([np.array([1.0, 2.0, 1.0]), np.ones(3)])
    off = np.broadcast_to(-1.0, d.shape)
    b = np.ones((2, 3, 1))
    found = np.asarray(linalg.tridiagonal_solve(off, d, off, b))
    assert not np.isfinite(found[0]).any() and np.isfinite(found[1]).all()
    moved = np.asarray(linalg.tridiagonal_solve(off, d, off, b, perturb_singular=True))
    assert np.isfinite(moved).all() and np.abs(moved[0]).min() > 1e12
    close(moved[0] / moved[0].max(), np.ones((3, 1)))
    close(moved[1], found[1])


# ---- keywords of decompositions ------------------------------------------------------------------------------


def test_parts_of_spectra(random):
    a = random(2, 4, 3)
    h = a @ adjoint(a)
    v, w = linalg.eigh(h)
    some_v, some_w = linalg.eigh(h, subset_by_index=(1, 3), implementation=linalg.EighImplementation.QR)
    np.testing.assert_array_equal(some_v, v[..., 1:3])
    np.testing.assert_array_equal(some_w, w[..., 1:3])
    u, s, vh = linalg.svd(a, full_matrices=False)
    for x, y in zip(linalg.svd(a, full_matrices=False, subset_by_index=(0, 2)), (u[..., :2], s[..., :2], vh[:, :2])):
        np.testing.assert_array_equal(x, y)
    only = linalg.svd(a, full_matrices=False, compute_uv=False, subset_by_index=(1, 2))
    close(only, s[..., 1:2])
    for subset in ((0, 4), (2, 1), (-1, 2)):
        with pytest.raises(ValueError, match=r"svd: subset_by_index=.*: there are 3 values"):
            linalg.svd(a, full_matrices=False, subset_by_index=subset)
    with pytest.raises(ValueError, match="leaves no bases: pass full_matrices=False"):
        linalg.svd(a, subset_by_index=(0, 2))


def test_algorithms(random):
    a = random(4, 3)
    for algorithm in ("DEFAULT", "QR", "DIVIDE_AND_CONQUER"):
        u, s, vh = linalg.svd(a, full_matrices=False, algorithm=linalg.SvdAlgorithm[algorithm])
        close((u * s) @ vh, a)
    message = r"svd: algorithm=SvdAlgorithm.JACOBI: LAPACK has None, SvdAlgorithm.DEFAULT, .*, SvdAlgorithm.QR\."
    with pytest.raises(NotImplementedError, match=message):
        linalg.svd(a, algorithm=linalg.SvdAlgorithm.JACOBI)
    with pytest.raises(NotImplementedError, match=r"eigh: implementation=EighImplementation.QDWH: LAPACK has None, "):
        linalg.eigh(a @ a.T, implementation=linalg.EighImplementation.QDWH)
    with pytest.raises(NotImplementedError, match="qr: use_magma=True: there is LAPACK only"):
        linalg.qr(a, use_magma=True)


def test_vectors_as_right_sides(random):
    """Of triangular systems, on either side."""
    a, b = np.tril(random(2, 3, 3)) + 3 * np.eye(3), random(2, 3)
    close(np.squeeze(a @ linalg.triangular_solve(a, b, left_side=True, lower=True)[..., None], -1), b)
    close(np.squeeze(linalg.triangular_solve(a, b, lower=True)[:, None] @ a, 1), b)


# ---- polar decomposition -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_decompositions(dtype, random):
    for shape in ((4, 4), (5, 3), (1, 1), (3, 0)):
        x = random(*shape, dtype=dtype)
        u, h, steps, converged = tl.jit(linalg.qdwh)(x)
        assert (u.dtype, h.dtype, bool(converged)) == (x.dtype, x.dtype, True)
        for found, wanted in zip((u, h), scipy.linalg.polar(x) if x.size else (x, np.zeros((0, 0)))):
            close(found, wanted, dtype)
        assert int(steps) <= 7


def test_polar_decompositions_of_parts(random):
    """Rows and columns that do not count are not read, also where their number is traced."""
    x = random(5, 4)
    x[3:], x[:, 2:] = np.nan, np.nan
    u, h, _, converged = tl.jit(lambda x, m, n: linalg.qdwh(x, dynamic_shape=(m, n)))(x, 3, 2)
    wanted = scipy.linalg.polar(x[:3, :2])
    for found, part, rows in zip((u, h), wanted, (3, 2)):
        close(np.asarray(found)[:rows, :2], part)
        assert np.count_nonzero(found) == part.size
    assert converged
    assert not linalg.qdwh(x)[3]
    assert linalg.qdwh(random(3, 3), max_iterations=2)[2] == 2


def test_derivatives_of_polar_decompositions(random):
    near = np.eye(3, 2) + random(3, 2) / 10  # far from singular, where third derivatives are large
    tl.testing.check_grads(lambda x: linalg.qdwh(x)[:2], (near,), 2, rtol=1e-4)
    tl.testing.check_grads(lambda x: linalg.qdwh(x)[:2], (random(3, 2, dtype="complex128"),), 1)
    tl.testing.check_grads(lambda x: linalg.qdwh(x, dynamic_shape=(3, 1))[:2], (random(4, 2),), 1)


@pytest.mark.parametrize("left_side", [True, False])
def test_right_sides_of_one_matrix_are_solved_together(left_side):
    """The matrix is not repeated under vmap, and a least-squares problem is not decomposed again."""
    r = np.random.default_rng(0)
    a, b = np.tril(r.normal(size=(3, 3))) + 4 * np.eye(3), r.normal(size=(5, 3, 3, 2))

    def solve(b):
        return linalg.triangular_solve(a, b if left_side else b.T, left_side=left_side, lower=True)

    both = tl.vmap(tl.vmap(solve, 1, 1))
    inverse = np.linalg.inv(a)
    wanted = [[inverse @ b[i, :, j] if left_side else b[i, :, j].T @ inverse for j in range(3)] for i in range(5)]
    np.testing.assert_allclose(both(b), np.moveaxis(np.array(wanted), 1, 2), atol=1e-14)
    fit = tl.vmap(lambda b: tl.numpy.linalg.lstsq(a[:, :2], b)[0])
    np.testing.assert_allclose(fit(b[:, :, 0]), np.linalg.pinv(a[:, :2]) @ b[:, :, 0], atol=1e-14)
    names = ("triangular_solve", "least_squares")
    for f, x in ((both, b), (fit, b[:, :, 0])):
        decomposed = [eqn for eqn in tl.make_jaxpr(f)(x).jaxpr.eqns if eqn.primitive.name in names]
        assert [eqn.invars[0].aval.ndim for eqn in decomposed] == [2]
