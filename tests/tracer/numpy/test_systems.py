"""Systems, inverses, determinants, ranks, powers, decompositions: against NumPy, with derivatives and errors."""

import itertools
import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

linalg = tnp.linalg
RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 4, 4))
C = A + 1j * RNG.normal(size=(2, 4, 4))
B = RNG.normal(size=(2, 4, 3))
SINGULAR = A[0] * np.array([0.0, 1.0, 1.0, 1.0])  # of rank 3; its first column is 0


def check(name, *args, **options):
    found, wanted = getattr(linalg, name)(*args, **options), getattr(np.linalg, name)(*args, **options)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("a", [A, C, A[0]], ids=["batch", "complex", "single"])
def test_against_numpy(a):
    for name in "inv det pinv matrix_rank svdvals cond matrix_transpose trace diagonal".split():
        check(name, a)
    for n in (5, 1, 0, -3):
        check("matrix_power", a, n)
    for p in (2, -2, 1, "fro"):
        check("cond", a, p)
    for found, wanted in zip(linalg.slogdet(a), np.linalg.slogdet(a)):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("b", [B, B[0], B[0, :, 0], RNG.normal(size=(5, 1, 4, 2))], ids=lambda b: str(b.shape))
def test_solve(b):
    for a in (A, C[0]):
        check("solve", a, b)


def test_decompositions():
    h = C @ np.conj(np.swapaxes(C, -1, -2))
    np.testing.assert_allclose(linalg.cholesky(h, upper=True), np.linalg.cholesky(h, upper=True), atol=1e-12)
    np.testing.assert_allclose(linalg.eigvalsh(h, "U"), np.linalg.eigvalsh(h, "U"))
    w, v = linalg.eigh(h)
    np.testing.assert_allclose(h @ v, v * w[:, None, :], atol=1e-10)
    for mode in ("reduced", "complete"):
        for found, wanted in zip(linalg.qr(B, mode), np.linalg.qr(B, mode)):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(linalg.qr(B, "r"), np.linalg.qr(B, "r"), atol=1e-12)
    indefinite = h - 3 * np.eye(4)
    u, s, vh = linalg.svd(indefinite, hermitian=True)
    np.testing.assert_allclose(u * s[:, None, :] @ vh, indefinite, atol=1e-10)
    np.testing.assert_allclose(s, np.linalg.svd(indefinite, compute_uv=False))
    np.testing.assert_allclose(linalg.svd(indefinite, compute_uv=False, hermitian=True), s)
    ties = np.diag([2.0, 1.0, -2.0])
    for found, wanted in zip(linalg.svd(ties, hermitian=True), np.linalg.svd(ties, hermitian=True)):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(linalg.pinv(indefinite, hermitian=True), np.linalg.inv(indefinite), rtol=1e-8)


def test_pseudo_inverses_with_a_bound_for_each():
    """The derivative is that of each matrix, and there is none in the bounds, which may be traced."""
    bounds = np.array([1e-9, 0.2])
    np.testing.assert_allclose(linalg.pinv(A, bounds), np.linalg.pinv(A, bounds), rtol=1e-9)
    np.testing.assert_allclose(tl.jit(linalg.pinv)(A[0], bounds), np.linalg.pinv(A[[0, 0]], bounds), rtol=1e-9)
    np.testing.assert_allclose(tl.vmap(linalg.pinv)(A, bounds), np.linalg.pinv(A, bounds), rtol=1e-9)
    pushed, bound_pushed = (tl.jvp(linalg.pinv, (A, bounds), t)[1] for t in ((C.imag, 0 * bounds), (0 * A, bounds)))
    for i in range(2):
        alone = tl.jvp(lambda a, rtol=float(bounds[i]): linalg.pinv(a, rtol), (A[i],), (C.imag[i],))[1]
        np.testing.assert_allclose(pushed[i], alone, rtol=1e-9)
    assert not np.any(bound_pushed)
    with raises(ValueError, "pinv: rtol and matrices: shapes (3,) and (2,) do not broadcast."):
        linalg.pinv(A, np.ones(3))


def test_least_squares_and_tensors(rng: np.random.Generator):
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    for right in (b, b[:, 0]):
        for found, wanted in zip(linalg.lstsq(a, right), np.linalg.lstsq(a, right, rcond=None)):
            np.testing.assert_allclose(found, wanted, rtol=1e-9)
    t = rng.normal(size=(2, 3, 6))
    check("tensorinv", t, 2)
    check("tensorsolve", t, t[:, :, 0])
    check("multi_dot", [a[0], a.T, b, b.T, a[:, 0]])
    check("cross", a[:, :3], a[::-1])
    assert linalg.matrix_rank(np.zeros(3)) == 0
    assert linalg.matrix_rank(np.diag([1.0, 0.0, -1.0]), hermitian=True) == 2
    assert linalg.matrix_rank(np.ones((2, 3, 3))).tolist() == [1, 1]
    np.testing.assert_array_equal(
        linalg.matrix_rank(np.stack([np.eye(2), np.diag([1, 0.1])]), np.array([0.5, 0.5])), [2, 1]
    )


def test_factors_are_not_differentiated_and_shared():
    """Reverse mode of a solution solves with the transposed factors: there is one lu in the program."""
    text = str(tl.make_jaxpr(tl.grad(lambda a, b: linalg.solve(a, b).sum(), (0, 1)))(A[0], B[0]))
    assert text.count(" lu ") == 1


def test_gradients_of_systems():
    inverse, g = np.linalg.inv(A[0]), np.ones((4, 3))
    da, db = tl.grad(lambda a, b: linalg.solve(a, b).sum(), (0, 1))(A[0], B[0])
    np.testing.assert_allclose(db, inverse.T @ g, rtol=1e-9)
    np.testing.assert_allclose(da, -(inverse.T @ g) @ (inverse @ B[0]).T, rtol=1e-9)
    np.testing.assert_allclose(tl.grad(lambda a: linalg.slogdet(a)[1])(A[0]), inverse.T, rtol=1e-9)
    np.testing.assert_allclose(tl.grad(linalg.det)(A[0]), np.linalg.det(A[0]) * inverse.T, rtol=1e-9)
    mapped = tl.vmap(tl.grad(lambda a, b: linalg.solve(a, b).sum()), (0, None))(A, B[0])
    np.testing.assert_allclose(mapped[0], da, rtol=1e-9)


def test_gradients_of_determinants_of_singular_matrices():
    def cofactor(i, j):
        return (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(SINGULAR, i, 0), j, 1))

    wanted = [[cofactor(i, j) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(tl.grad(linalg.det)(SINGULAR), wanted, atol=1e-12)
    pushed = tl.jvp(linalg.det, (SINGULAR,), (A[1],))[1]
    np.testing.assert_allclose(pushed, np.sum(wanted * A[1]), rtol=1e-9)
    np.testing.assert_array_equal(tl.grad(linalg.det)(np.zeros((4, 4))), 0)
    np.testing.assert_allclose(tl.grad(linalg.det)(np.eye(4)), np.eye(4), atol=1e-14)
    shift = np.eye(4, k=1)  # of rank 3, and all pivots are 0
    np.testing.assert_allclose(tl.grad(linalg.det)(shift), -np.eye(4, k=-3), atol=1e-14)


def polynomial(a):
    """The determinant as the sum over all permutations, whose derivatives are exact."""
    n = a.shape[-1]
    products = [math.prod([a[i, j] for i, j in enumerate(p)]) * parity(p) for p in itertools.permutations(range(n))]
    return sum(products)


def parity(p):
    return (-1) ** sum(p[i] > p[j] for i in range(len(p)) for j in range(i + 1, len(p)))


def of_rank(n, rank):
    rng = np.random.default_rng((n, rank))
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))


SECOND, SECOND_REVERSE = tl.jit(tl.hessian(linalg.det)), tl.jit(tl.jacrev(tl.jacrev(linalg.det)))
SECOND_OF_POLYNOMIAL = tl.jit(tl.hessian(polynomial))
THIRD, THIRD_OF_POLYNOMIAL = (
    tl.jit(lambda x, t, f=f: tl.jvp(tl.hessian(f), (x,), (t,))[1]) for f in (linalg.det, polynomial)
)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((1, 1)),
        np.zeros((2, 2)),
        np.zeros((3, 3)),
        np.eye(3),
        np.arange(1.0, 10.0).reshape(3, 3),  # singular, with a pivot of 1e-16
        np.diag([1.0, 1.0, 1e-9, 0.0]),
        of_rank(2, 1),
        of_rank(3, 2),
        of_rank(3, 1),
        of_rank(4, 3),
        of_rank(4, 2),
        of_rank(4, 3) + 1e-9 * A[0],
        A[0],
    ],
    ids=map(str, range(13)),
)
def test_second_derivatives_of_determinants(x):
    wanted = np.asarray(SECOND_OF_POLYNOMIAL(x))
    np.testing.assert_allclose(SECOND(x), wanted, atol=1e-12)
    np.testing.assert_allclose(SECOND_REVERSE(x), wanted, atol=1e-12)


@pytest.mark.parametrize("x", [np.zeros((3, 3)), np.eye(3), of_rank(3, 1), of_rank(3, 2)], ids="0123")
def test_third_derivatives_of_determinants(x):
    """Errors are as roundings beside the square of the circle's radius."""
    t = A[0, :3, :3]
    np.testing.assert_allclose(THIRD(x, t), THIRD_OF_POLYNOMIAL(x, t), atol=1e-10)


@pytest.mark.parametrize("rank", range(4))
def test_second_derivatives_of_complex_determinants(rank):
    x = (1 + 2j) * of_rank(3, rank) * np.exp(1j * np.arange(3))
    t = C[0, :3, :3]

    def real(f):
        return lambda a: tnp.real(f(a) * (1 + 2j))

    def derivatives(f):
        forward = tl.jvp(tl.grad(f), (x,), (t,))[1]
        return forward, tl.grad(lambda a: tnp.real((tl.grad(f)(a) * t).sum()))(x)

    for found, wanted in zip(derivatives(real(linalg.det)), derivatives(real(polynomial))):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_second_derivatives_of_batches_of_determinants():
    """Some of which are singular: none disturbs another."""
    x = np.stack([np.zeros((3, 3)), np.eye(3), of_rank(3, 1), A[0, :3, :3]])
    wanted = np.stack([SECOND_OF_POLYNOMIAL(one) for one in x])
    np.testing.assert_allclose(tl.jit(tl.vmap(tl.hessian(linalg.det)))(x), wanted, atol=1e-12)
    found = np.asarray(tl.hessian(lambda x: linalg.det(x).sum())(x))
    np.testing.assert_allclose([found[i, :, :, i] for i in range(4)], wanted, atol=1e-12)


def test_the_pseudo_inverse_within_a_rank(rng: np.random.Generator):
    """Between matrices of rank 1 its derivative is that of differences."""
    u, v, du, dv = rng.normal(size=(4, 3, 1))

    def outer(h):
        return (u + h * du) @ (v + h * dv).T

    h = 1e-6
    difference = (np.linalg.pinv(outer(h)) - np.linalg.pinv(outer(-h))) / (2 * h)
    pushed = tl.jvp(linalg.pinv, (outer(0),), (du @ v.T + u @ dv.T,))[1]
    np.testing.assert_allclose(pushed, difference, rtol=1e-6)


def test_errors():
    wide, square = np.ones((2, 3)), np.eye(3)
    with raises(ValueError, "solve: the matrix must be square, [.., n, n]: float64[2,3] and float64[3]."):
        linalg.solve(wide, np.ones(3))
    message = "solve: the right side must be [.., n, m], or [n], with n = 3: float64[3,3] and float64[2,3]."
    with raises(ValueError, message):
        linalg.solve(square, wide)
    message = "solve: the leading axes of float64[2,4,4] and float64[3,4,1] do not broadcast: (2,) and (3,)."
    with raises(ValueError, message):
        linalg.solve(A, np.ones((3, 4, 1)))
    with raises(ValueError, "eigh: the matrix must be square, [.., n, n]: float64[2,3]."):
        linalg.eigh(wide)
    message = "eigh: the matrix must be of 32-bit or 64-bit floating point, or complex: float16[3,3]."
    with raises(TypeError, message):
        linalg.eigh(square.astype(np.float16))
    with raises(ValueError, "svd: a matrix has at least two axes, [.., m, n]: float64[3]."):
        linalg.svd(square[0])
    with raises(ValueError, "eigvalsh: UPLO must be 'L', 'U' or None, not 'l'."):
        linalg.eigvalsh(square, "l")
    with raises(ValueError, "qr: mode must be 'reduced', 'complete', 'r' or 'raw', not 'full'."):
        linalg.qr(square, "full")
    with raises(TypeError, "matrix_power: n must be an integer, not 0.5."):
        linalg.matrix_power(square, 0.5)
    with raises(TypeError, "tensorinv: ind must be an integer, not 1.5."):
        linalg.tensorinv(square, 1.5)
    with raises(ValueError, "cond: a matrix without elements has no condition number: float64[2,0]."):
        linalg.cond(wide[:, :0])
    with raises(tl.errors.AxisError, "cross: axis 1 is out of range for an array of 1 axes. The array is float64[3]."):
        linalg.cross(square[0], square[0], axis=1)
    with raises(tl.errors.AxisError, "vecdot: axis -1 is out of range for an array of 0 axes. The array is float64[]."):
        linalg.vecdot(square[0, 0], square[0])
    with raises(ValueError, "slogdet: method must be 'lu', 'qr' or None, not 'svd'."):
        linalg.slogdet(square, method="svd")
    with raises(ValueError, "lstsq: a matrix [m, n] and a right side [m, k] or [m], not float64[3,3] and float64[2]."):
        linalg.lstsq(square, np.ones(2))


@pytest.mark.parametrize("shape", [(4, 3), (2, 4), (3, 3), (2, 4, 3), (0, 3), (2, 0)])
def test_qr_as_reflections(shape):
    """As NumPy has it; `ormqr` and `householder_product` take the transposed one."""
    a = np.random.default_rng(0).normal(size=shape)
    packed, taus = linalg.qr(a, "raw")
    for mine, expected in zip((packed, taus), np.linalg.qr(a, "raw"), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-12)
    if a.size:
        k = min(shape[-2:])
        h = tnp.matrix_transpose(packed)
        r = tl.lax.linalg.ormqr(h, taus, a, transpose=True)
        np.testing.assert_allclose(r, np.triu(h), atol=1e-12)
        np.testing.assert_allclose(tl.lax.linalg.householder_product(h[..., :k], taus), linalg.qr(a).Q, atol=1e-12)
    with pytest.raises(NotImplementedError, match="geqrf has no derivative"):
        tl.grad(lambda a: linalg.qr(a, "raw")[1].sum())(np.eye(2))


def test_one_number_under_two_names_is_refused():
    with pytest.raises(ValueError, match=r"rtol, 0\.1, and rcond, 0\.2, are two names of one number"):
        linalg.pinv(np.eye(2), 0.1, rcond=0.2)
