"""One row for each solver and factorization: ours, SciPy's, and the backward error of either.

SciPy's compute in the dtype of the matrix; NumPy's compute in 64 bits. Functions
take a matrix [n, n] and a right side [n, 3], which some do not read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.backward_errors import measures as m
from tests.backward_errors.measures import adjoint, eigenpairs, least_squares, orthonormal, product, residual, times

ours, scipy_like, by_lax = tnp.linalg, tl.scipy.linalg, lax.linalg
Function = Callable[[Any, Any], Any]


class Row(NamedTuple):
    """A function, the kind of its matrices, and its backward error: (matrix, right side, result) -> number."""

    kind: str
    function: Function
    reference: Function
    error: Callable[[Any, Any, Any], float]


def system(turn: Callable[[Any], Any] = lambda a: a) -> Any:
    return lambda a, b, x: residual(turn(a), x, b)


def inverse(a: Any, _: Any, x: Any) -> float:
    return residual(a, x, np.eye(len(a)))


def factors(a: Any, _: Any, found: Any) -> float:
    """Of a unitary factor and others."""
    return max(product(a, *found), orthonormal(found[0]))


def triple(a: Any, _: Any, found: Any) -> float:
    u, s, vh = found
    return max(product(a, u * s, vh), orthonormal(u), orthonormal(adjoint(vh)))


def similar(a: Any, _: Any, found: Any) -> float:
    """Of t and z with a = z t z^H."""
    t, z = found
    return max(product(a, z, t, adjoint(z)), orthonormal(z))


def spectrum(a: Any, _: Any, found: Any) -> float:
    w, v = found
    return max(eigenpairs(a, w, v), orthonormal(v))


def apart(f: Callable[[Any], Any]) -> Any:
    """|x - f(a)| relative to |a|, for f in 64 bits: of values that move by no more than the matrix does."""
    return lambda a, b, x: m.relative(np.asarray(x) - f(_double(a)), m.size(a))


def _double(a: Any) -> Any:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def of_determinant(a: Any, b: Any, found: Any) -> float:
    """Error of a determinant, relative to |inverse| |a|, which bounds how fast it moves with the matrix."""
    with np.errstate(all="ignore"):
        sign, log = np.linalg.slogdet(_double(a))
        slope = m.size(np.linalg.inv(_double(a))) * m.size(a)
        error = abs(found[0] * np.exp(found[1] - log) / sign - 1)
    return float(error / slope)


def exponential(a: Any, b: Any, found: Any) -> float:
    """The error relative to |exp(a)| max(|a|, 1), by Taylor's series and 20 squarings in extended precision."""
    x = m.wide(a) / 2**20
    term = total = np.eye(len(a), dtype=x.dtype)
    for k in range(1, 5):
        term = times(term, x) / k
        total = total + term
    rest = total - np.eye(len(a))  # of which squares are precise: (1 + r)^2 = 1 + r (2 + r)
    for _ in range(20):
        rest = 2 * rest + times(rest, rest)
    exact = rest + np.eye(len(a))
    return m.relative(m.wide(found) - exact, m.size(exact) * max(m.size(a), 1))


def root(a: Any, b: Any, x: Any) -> float:
    return m.relative(times(x, x) - m.wide(a), m.size(x) ** 2)


def sylvester(a: Any, b: Any, x: Any) -> float:
    other, right = _of_sylvester(a, b)
    a, other, right, x = map(m.wide, (a, other, right, x))
    scale = (m.size(a) + m.size(other)) * m.size(x) + m.size(right)
    return m.relative(times(a, x) + times(x, other) - right, scale)


def _of_sylvester(a: Any, b: Any) -> tuple[Any, Any]:
    return (np.diag(np.arange(1.0, 4)) + np.triu(np.ones((3, 3)))).astype(a.dtype), b


def polar(a: Any, b: Any, found: Any) -> float:
    u, p = found[:2]
    return max(product(a, u, p), orthonormal(u), m.relative(p - adjoint(p), m.size(p)))


def pseudo(a: Any, b: Any, p: Any) -> float:
    """|a p a - a| / (|a|^2 |p|)."""
    return m.relative(times(times(a, p), a) - m.wide(a), m.size(a) ** 2 * m.size(p))


def _diagonals(a: Any) -> Any:
    below, main, above = (np.diag(np.asarray(a), k) for k in (-1, 0, 1))
    return np.r_[0, below].astype(a.dtype), main, np.r_[above, 0].astype(a.dtype)


def _tridiagonal(a: Any) -> Any:
    return np.triu(np.tril(np.asarray(a), 1), -1)


def _banded(a: Any, b: Any) -> Any:
    below, main, above = _diagonals(a)
    return sl.solve_banded((1, 1), np.stack([np.r_[0, above[:-1]], main, np.r_[below[1:], 0]]), b)


def _solve(a: Any, b: Any) -> Any:
    """SciPy's, which computes in the dtype of the matrix; NumPy computes in 64 bits."""
    return sl.solve(a, b, assume_a="gen")


def _qr(a: Any, _: Any) -> Any:
    return sl.qr(a, mode="economic")


def _hermitian_svd(a: Any) -> Any:
    """By eigenvectors, as NumPy's, in the dtype of the matrix."""
    w, v = sl.eigh(a)
    order = np.argsort(-np.abs(w))
    w, v = w[order], v[:, order]
    return v * np.where(w < 0, -1, 1), np.abs(w), adjoint(v)


def _pinv(a: Any) -> Any:
    """SciPy's, with our bound of singular values."""
    return sl.pinv(a, rtol=10 * len(a) * np.finfo(a.dtype).eps)


def _lstsq(a: Any, b: Any) -> Any:
    """SciPy's, which computes in the dtype of the matrix, with our bound of singular values."""
    return sl.lstsq(a, b, cond=len(a) * np.finfo(a.dtype).eps)[0]


def _diagonals_of(a: Any) -> Any:
    n = a.shape[-1]
    pad = tnp.zeros(1, a.dtype)
    below, main, above = (tnp.diagonal(a, k) for k in (-1, 0, 1))
    return tnp.concatenate([pad, below]), main[:n], tnp.concatenate([above, pad])


TURNS = {0: lambda a: a, 1: lambda a: a.T, 2: adjoint}
SYSTEMS = {
    "solve": Row("general", lambda a, b: ours.solve(a, b), _solve, system()),
    "solve a vector": Row(
        "general",
        lambda a, b: ours.solve(a, b[:, 0])[:, None],
        lambda a, b: _solve(a, b[:, 0])[:, None],
        lambda a, b, x: residual(a, x, b[:, :1]),
    ),
    "solve a positive system": Row(
        "positive",
        lambda a, b: scipy_like.solve(a, b, assume_a="pos"),
        lambda a, b: sl.solve(a, b, assume_a="pos"),
        system(),
    ),
    "jvp of solve": Row(
        "general", lambda a, b: tl.jvp(lambda b: ours.solve(a, b), (0 * b,), (b,))[1], _solve, system()
    ),
    "vjp of solve": Row(
        "general",
        lambda a, b: tl.vjp(lambda b: ours.solve(a, b), b)[1](b)[0],
        lambda a, b: _solve(a.T, b),
        system(lambda a: a.T),
    ),
    "inv": Row("general", lambda a, b: ours.inv(a), lambda a, b: sl.inv(a), inverse),
    "cho_solve": Row(
        "positive",
        lambda a, b: scipy_like.cho_solve(scipy_like.cho_factor(a), b),
        lambda a, b: sl.cho_solve(sl.cho_factor(a), b),
        system(),
    ),
    "tridiagonal_solve": Row(
        "positive",
        lambda a, b: by_lax.tridiagonal_solve(*_diagonals_of(a), b),
        _banded,
        system(_tridiagonal),
    ),
    "lstsq": Row(
        "general",
        lambda a, b: ours.lstsq(a[:, :-1], b)[0],
        lambda a, b: _lstsq(a[:, :-1], b),
        lambda a, b, x: least_squares(a[:, :-1], x, b),
    ),
    "lstsq of a square matrix": Row(
        "general",
        lambda a, b: ours.lstsq(a, b)[0],
        _lstsq,
        lambda a, b, x: least_squares(a, x, b),
    ),
    "solve_sylvester": Row(
        "small",
        lambda a, b: scipy_like.solve_sylvester(a, *_of_sylvester(a, b)),
        lambda a, b: sl.solve_sylvester(a, *_of_sylvester(a, b)),
        sylvester,
    ),
    **{
        f"lu_solve(trans={k})": Row(
            "general",
            lambda a, b, k=k: scipy_like.lu_solve(scipy_like.lu_factor(a), b, trans=k),
            lambda a, b, k=k: sl.lu_solve(sl.lu_factor(a), b, trans=k),
            system(turn),
        )
        for k, turn in TURNS.items()
    },
    **{
        f"solve_triangular(trans={k})": Row(
            "triangular",
            lambda a, b, k=k: scipy_like.solve_triangular(a, b, trans=k),
            lambda a, b, k=k: sl.solve_triangular(a, b, trans=k),
            system(turn),
        )
        for k, turn in TURNS.items()
    },
    "solve_triangular(lower)": Row(
        "triangular",
        lambda a, b: scipy_like.solve_triangular(a.T, b, lower=True),
        lambda a, b: sl.solve_triangular(a.T, b, lower=True),
        system(lambda a: a.T),
    ),
    "triangular_solve on the right": Row(
        "triangular",
        lambda a, b: by_lax.triangular_solve(a, b.T).T,
        lambda a, b: sl.solve_triangular(a, b, trans=1),
        system(lambda a: a.T),
    ),
    "vjp of triangular_solve": Row(
        "triangular",
        lambda a, b: tl.vjp(lambda b: by_lax.triangular_solve(a, b, left_side=True), b)[1](b)[0],
        lambda a, b: sl.solve_triangular(a, b, trans=1),
        system(lambda a: a.T),
    ),
    "vmap over right sides": Row(
        "triangular",
        lambda a, b: tl.vmap(lambda b: by_lax.triangular_solve(a, b, left_side=True), 1, 1)(b),
        lambda a, b: sl.solve_triangular(a, b),
        system(),
    ),
}

FACTORIZATIONS = {
    "cholesky": Row(
        "positive",
        lambda a, b: ours.cholesky(a),
        lambda a, b: sl.cholesky(a, lower=True),
        lambda a, b, x: product(a, x, adjoint(x)),
    ),
    "lu": Row("general", lambda a, b: scipy_like.lu(a), lambda a, b: sl.lu(a), lambda a, b, x: product(a, *x)),
    "qr": Row("general", lambda a, b: ours.qr(a), _qr, factors),
    "qr, complete": Row(
        "general",
        lambda a, b: ours.qr(a[:, :-2], "complete"),
        lambda a, b: sl.qr(a[:, :-2]),
        lambda a, b, x: factors(a[:, :-2], b, x),
    ),
    "qr(pivoting)": Row(
        "general",
        lambda a, b: scipy_like.qr(a, pivoting=True),
        lambda a, b: sl.qr(a, pivoting=True),
        lambda a, b, x: factors(a[:, np.asarray(x[2])], b, x[:2]),
    ),
    "qr_multiply": Row(
        "general",
        lambda a, b: scipy_like.qr_multiply(a, tnp.eye(len(a), dtype=a.dtype)),
        lambda a, b: sl.qr_multiply(a, np.eye(len(a), dtype=a.dtype)),
        factors,
    ),
    "householder_product": Row(
        "general",
        lambda a, b: (by_lax.householder_product(*_reflections(a)), tnp.triu(_reflections(a)[0])),
        _qr,
        factors,
    ),
    "ormqr": Row(
        "general",
        lambda a, b: (by_lax.ormqr(*_reflections(a), tnp.eye(len(a), dtype=a.dtype)), tnp.triu(_reflections(a)[0])),
        _qr,
        factors,
    ),
    "svd": Row("general", lambda a, b: ours.svd(a), lambda a, b: sl.svd(a), triple),
    "svdvals": Row(
        "general",
        lambda a, b: ours.svdvals(a),
        lambda a, b: sl.svd(a, compute_uv=False),
        apart(lambda a: np.linalg.svd(a, compute_uv=False)),
    ),
    "svd of a Hermitian matrix": Row(
        "hermitian", lambda a, b: ours.svd(a, hermitian=True), lambda a, b: _hermitian_svd(a), triple
    ),
    "pinv": Row("general", lambda a, b: ours.pinv(a), lambda a, b: _pinv(a), pseudo),
    "eigh": Row("hermitian", lambda a, b: ours.eigh(a), lambda a, b: sl.eigh(a), spectrum),
    "eigvalsh": Row("hermitian", lambda a, b: ours.eigvalsh(a), lambda a, b: sl.eigvalsh(a), apart(np.linalg.eigvalsh)),
    "eigh of two": Row(
        "positive",
        lambda a, b: scipy_like.eigh(tnp.diag(tnp.arange(1.0, len(a) + 1)).astype(a.dtype), a),
        lambda a, b: sl.eigh(np.diag(np.arange(1.0, len(a) + 1)).astype(a.dtype), a),
        # LAPACK's bound for this reduction has the condition number of the second matrix.
        lambda a, b, x: eigenpairs(np.diag(np.arange(1.0, len(a) + 1)), *x, b=a) / np.linalg.cond(a),
    ),
    "eigh_tridiagonal": Row(
        "hermitian",
        lambda a, b: scipy_like.eigh_tridiagonal(tnp.diagonal(a), tnp.diagonal(a, 1)),
        lambda a, b: sl.eigh(_tridiagonal(a)),
        lambda a, b, x: spectrum(_tridiagonal(a), b, x),
    ),
    "eig": Row("general", lambda a, b: ours.eig(a), lambda a, b: sl.eig(a), lambda a, b, x: eigenpairs(a, *x)),
    "schur": Row("general", lambda a, b: scipy_like.schur(a), lambda a, b: sl.schur(a), similar),
    "schur, complex": Row(
        "general", lambda a, b: scipy_like.schur(a, "complex"), lambda a, b: sl.schur(a, "complex"), similar
    ),
    "rsf2csf": Row(
        "general", lambda a, b: scipy_like.rsf2csf(*scipy_like.schur(a)), lambda a, b: sl.rsf2csf(*sl.schur(a)), similar
    ),
    "hessenberg": Row(
        "general",
        lambda a, b: scipy_like.hessenberg(a, calc_q=True),
        lambda a, b: sl.hessenberg(a, calc_q=True),
        similar,
    ),
    "tridiagonal": Row(
        "hermitian",
        lambda a, b: by_lax.tridiagonal(a)[1:3],
        lambda a, b: sl.eigh_tridiagonal,
        lambda a, b, x: apart(np.linalg.eigvalsh)(a, b, _values_of(x)),
    ),
    "polar": Row("general", lambda a, b: scipy_like.polar(a), lambda a, b: sl.polar(a), polar),
    "qdwh": Row("positive", lambda a, b: by_lax.qdwh(a)[:2], lambda a, b: sl.polar(a), polar),
}

FUNCTIONS = {
    "slogdet": Row("positive", lambda a, b: ours.slogdet(a), lambda a, b: np.linalg.slogdet(a), of_determinant),
    "expm": Row("small", lambda a, b: scipy_like.expm(a), lambda a, b: sl.expm(a), exponential),
    "sqrtm": Row("positive", lambda a, b: scipy_like.sqrtm(a), lambda a, b: sl.sqrtm(a), root),
}


def _reflections(a: Any) -> Any:
    packed, taus = ours.qr(a, "raw")
    return tnp.matrix_transpose(packed), taus


def _values_of(x: Any) -> Any:
    if callable(x):
        return np.nan
    d, e = map(np.asarray, x)
    return np.linalg.eigvalsh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1))


ROWS = {**SYSTEMS, **FACTORIZATIONS, **FUNCTIONS}
