"""Reports about factorizations, determinants, inverses and matrix functions, above all at degenerate points."""

import mpmath
import numpy as np
import scipy.linalg

import tapeless as tl
import tapeless.numpy as tnp
import tapeless.scipy.linalg as sla
from tapeless import lax
from tapeless.scipy.sparse.linalg import cg, gmres
from tests.public_reports.report import Report, drawn, f64

linalg = tnp.linalg
SYMMETRIC = f64([2, 0.3, 0.1], [0.3, 1, -0.4], [0.1, -0.4, 0.2])
GENERAL = f64([2, 1, 0.5], [0.3, 1, -0.4], [0.1, -0.6, 3])
WEIGHTS = drawn(3, 3, seed=5)
STEPS = np.diag(f64(1, 1, 2, 3))
ONES, POINT = np.ones((5, 5)), f64(1, 0.5, -1)
RANK1 = np.outer(f64(1, 2, -1), f64(0.5, 1, 2))
RANK2 = RANK1 + np.outer(f64(0, 1, 1), f64(1, 0, -1))
HOLLOW = np.ones((3, 3)) - np.eye(3)
BALANCED = f64([0, 1e-8, 0], [-(2e10 + 4e8 / 6), -3, 2e10], [200 / 3, 0, -200 / 3])


def first_triple(a):
    """The best approximation of rank 1, which does not care about the other singular vectors."""
    u, s, vh = linalg.svd(a)
    return s[0] * tnp.outer(u[:, 0], vh[0])


def approximated(a):
    u, s, vh = np.linalg.svd(a)
    return s[0] * np.outer(u[:, 0], vh[0])


def together(a):
    u, s, vh = linalg.svd(a, full_matrices=False)
    return linalg.norm((u * s) @ vh)


def rotation(a):
    u, _, vh = linalg.svd(a)
    return u @ vh


def matrix_exponential(a):
    return sla.expm(a, max_squarings=64)


def sines(a):
    return tnp.sin(sla.expm(a)).sum()


def exponential(a):
    """exp(a) to 60 digits."""
    with mpmath.workdps(60):
        return np.array(mpmath.expm(mpmath.matrix(a.tolist()), "taylor").tolist(), np.float64)


def cofactors(a):
    return np.array(
        [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)]
    )


def solved(a, b):
    return lax.custom_linear_solve(
        lambda x: a @ x, b, lambda _, b: linalg.solve(a, b), lambda _, b: linalg.solve(a.T, b)
    )


def root(c):
    """y with y ** 3 + y = c, whose tangents are solved by conjugate gradients."""

    def tangent(g, y):
        return cg(lambda x: tl.jvp(g, (tnp.zeros_like(y),), (x,))[1], y, rtol=1e-14, atol=0.0)[0]

    def newton(f, y):
        return lax.fori_loop(0, 40, lambda _, y: y - f(y) / (3 * y**2 + 1), y)

    return lax.custom_root(lambda y: y**3 + y - c, tnp.zeros_like(c), newton, tangent)


def real_root(c):
    return np.array([next(z.real for z in np.roots([1, 0, 1, -k]) if abs(z.imag) < 1e-9) for k in c])


def preconditioned(a, b):
    """GMRES with the inverse of a nearby matrix, whose transpose precondition the transposed system."""
    return gmres(lambda x: a @ x, b, M=lambda x: np.linalg.inv(GENERAL + 0.01) @ x, tol=1e-13, atol=0.0)[0]


def least(a, b):
    return np.linalg.lstsq(a, b, None)[0]


BY_ITSELF = {"mapped": False, "steps": False}
COMPLEX = GENERAL + 1j * WEIGHTS
TALL = drawn(4, 2, seed=3) + 1j * drawn(4, 2, seed=4)

ROWS = [
    Report(
        "jax-ml/jax#10877",
        "eigenvectors of a symmetric matrix, whatever their signs",
        lambda a: tnp.abs(linalg.eigh(a)[1]),
        (SYMMETRIC,),
        lambda a: np.abs(np.linalg.eigh((a + a.T) / 2)[1]),
    ),
    Report(
        "jax-ml/jax#2311",
        "the largest singular triple beside several that are 0",
        lambda a: (first_triple(a) * np.arange(25.0).reshape(5, 5)).sum(),
        (ONES,),
        lambda a: np.sum(approximated(a) * np.arange(25.0).reshape(5, 5)),
        rtol=1e-6,  # of values of some hundreds, which are differences
    ),
    Report("jax-ml/jax#8732", "a norm by way of equal singular values", together, (STEPS,), np.linalg.norm),
    Report(
        "tensorflow/tensorflow#17476",
        "the nearest rotation where all singular values are 1",
        rotation,
        (np.eye(3) * 1.0,),
        lambda a: scipy.linalg.polar(a)[0],
    ),
    Report(
        "invenia/Nabla.jl#183",
        "singular values of the identity",
        lambda a: (linalg.svdvals(a) ** 3).sum(),
        (np.eye(3),),
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 3),
    ),
    Report(
        "JuliaLang/julia#16608",
        "singular vectors of equal values are orthogonal",
        lambda a: (linalg.svd(a)[0].T @ linalg.svd(a)[0], linalg.svd(a)[2] @ linalg.svd(a)[2].T),
        (np.diag(f64(2, 2, 0, 0, 1)),),
        lambda a: (np.eye(5), np.eye(5)),
        slopes=None,
    ),
    Report(
        "jax-ml/jax#2380",
        "the determinant of a singular matrix of rank n - 1",
        linalg.det,
        (RANK2,),
        np.linalg.det,
        slopes=(cofactors(RANK2),),
        hessian=None,
    ),
    Report(
        "jax-ml/jax#1213",
        "signs of determinants of odd order",
        lambda a: linalg.slogdet(tnp.stack([-a, a])),
        (0.1 * np.eye(5),),
        lambda a: tuple(np.linalg.slogdet(np.stack([-a, a]))),
    ),
    Report("jax-ml/jax#646", "the inverse of a matrix with zeros as pivots", linalg.inv, (HOLLOW,), np.linalg.inv),
    Report(
        "jax-ml/jax#775",
        "the Cholesky factor of a matrix that is not definite",
        linalg.cholesky,
        (f64([0, 1, 2], [1, 4, 5], [2, 5, 8]),),
        np.where(np.tri(3) > 0, np.nan, 0),
        slopes=None,
        mapped=False,
    ),
    Report(
        "jax-ml/jax#1356",
        "the LU factors of singular matrices",
        lambda a: (lambda p, low, up: p @ low @ up)(*sla.lu(a)),
        (f64([0, 0, 0], [0, 0, 0], [0, 0, 3]),),
        lambda a: a,
        slopes=None,
    ),
    Report(
        "jax-ml/jax#25111",
        "the pseudoinverse of a matrix of tiny entries and zeros",
        linalg.pinv,
        (np.pad(f64([1.8e-7, 0, 0], [0, -2.7e-4, 2.7e-4], [0, 0, 7e-9]), ((0, 3), (0, 1))),),
        np.linalg.pinv,
        slopes=None,
    ),
    Report(
        "jax-ml/jax#24308",
        "eigenvalues of a general matrix",
        lambda a: (linalg.eigvals(a) ** 3).sum().real,
        (GENERAL,),
        lambda a: np.trace(a @ a @ a),
        hessian=True,
    ),
    Report(
        "sethaxen/CAGPJax#6",
        "a logarithmic determinant by repeated eigenvalues",
        lambda a: tnp.log(linalg.eigh(a)[0]).sum(),
        (np.diag(f64(2, 2, 2, 5)),),
        lambda a: np.linalg.slogdet((a + a.T) / 2)[1],
    ),
    Report("HIPS/autograd#83", "an inverse", linalg.inv, (GENERAL,), np.linalg.inv, hessian=True),
    Report(
        "HIPS/autograd#463",
        "the sign of a determinant of a negative Hessian",
        lambda a: (lambda sign, log: sign * log)(*linalg.slogdet(-tl.hessian(lambda x: (x @ a @ x) ** 2)(POINT))),
        (SYMMETRIC,),
        lambda a: (lambda sign, log: sign * log)(*np.linalg.slogdet(-quartic(a, POINT))),
    ),
    Report(
        "jax-ml/jax#2572",
        "complex systems by a solver that is given",
        solved,
        (COMPLEX, f64(1, 2, 3) + 1j),
        np.linalg.solve,
    ),
    Report(
        "jax-ml/jax#5552",
        "a root whose tangents conjugate gradients solve",
        root,
        (f64(0.5, 2, -1),),
        real_root,
        rtol=1e-7,
    ),
    Report(
        "jax-ml/jax#29449",
        "a transposed system with a preconditioner",
        preconditioned,
        (GENERAL, f64(1, -2, 0.5)),
        np.linalg.solve,
        mapped=False,
        rtol=1e-7,  # the solver stops there
    ),
    Report(
        "patrick-kidger/lineax#64",
        "least squares of complex numbers",
        lambda a, b: linalg.pinv(a) @ b,
        (TALL, f64(1, 2, 3, 4) + 1j),
        least,
    ),
    Report(
        "jax-ml/jax#2131", "the exponential of 0", matrix_exponential, (np.zeros((3, 3)),), np.eye(3), None, **BY_ITSELF
    ),
    Report(
        "jax-ml/jax#13985",
        "the exponential of a hugely negative matrix",
        matrix_exponential,
        (-1e6 * GENERAL @ GENERAL.T,),
        np.zeros((3, 3)),
        None,
        **BY_ITSELF,
    ),
    Report(
        "stan-dev/math#2615",
        "an exponential that vanishes after a long time",
        matrix_exponential,
        (800 * f64([-3.3228, 1.2242, 0], [0.533302, -4.04844, 0], [0, 0, -1]),),
        np.zeros((3, 3)),
        None,
        **BY_ITSELF,
    ),
    Report(
        "nelson-lang/nelson#1201",
        "the exponential of a badly scaled matrix",
        sla.expm,
        (BALANCED,),
        exponential,
        None,
        rtol=1e-6,  # the condition number is that large
        **BY_ITSELF,
    ),
    Report(
        "SciML/ExponentialUtilities.jl#111",
        "sines of an exponential at 0",
        sines,
        (np.zeros((3, 3)),),
        lambda a: np.sin(scipy.linalg.expm(a)).sum(),
        **BY_ITSELF,
    ),
    Report(
        "Theano/Theano#6379",
        "the exponential of a multiple of the identity",
        sines,
        (0.7 * np.eye(3),),
        lambda a: np.sin(scipy.linalg.expm(a)).sum(),
        **BY_ITSELF,
    ),
]


def quartic(a, x):
    """The Hessian of (x' a x)**2."""
    s, g = x @ a @ x, (a + a.T) @ x
    return 2 * np.outer(g, g) + 2 * s * (a + a.T)
