"""Factors, determinants, inverses, eigenvalues and singular values of batches of matrices.

Eigenvectors and singular vectors are determined up to phases only (and up to rotations where values are equal), columns
that complete a basis up to more: `NOT_UNIQUE`. Programs with them can be compared by what does not depend on that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values, kind_of

# Results that two correct implementations may have differently.
NOT_UNIQUE = {"eig": (0, 1, 2), "eigh": (0,), "svd": (0, 2), "qr": (0, 1), "schur": (0, 1)}


def _each(f: Callable[..., Any], *xs: Values) -> list[Values]:
    """f of every matrix of a batch; its results, stacked."""
    batch = xs[0].shape[:-2]
    rows = [f(*[x[i] for x in xs]) for i in np.ndindex(batch)]
    if not rows:  # of one more matrix, to know the shapes
        one = f(*[np.ones(x.shape[-2:], x.dtype) for x in xs])
        return [np.zeros((*batch, *np.shape(y)), np.asarray(y).dtype) for y in one]
    return [np.stack(ys).reshape(*batch, *np.shape(ys[0])) for ys in zip(*rows)]


def _is_complex(eqn: Any) -> bool:
    return kind_of(eqn.invars[0].aval.dtype) == "c"


def _refuse_steps(eqn: Any, *xs: Values) -> None:
    if not _is_complex(eqn) and is_stepped(*xs):
        raise NotHolomorphicError(eqn.primitive.name)


# ---- triangular ------------------------------------------------------------------------------------------------


@meaning("cholesky")
def _cholesky(run: Run, eqn: Any, x: Values) -> Any:
    """By columns, without conjugation for complex steps; the upper triangle is not read."""
    adjoint = np.conj if _is_complex(eqn) else np.asarray
    return _each(lambda one: (_lower_factor(one, adjoint),), x)[0]


def _lower_factor(x: Values, adjoint: Callable[[Any], Any]) -> Values:
    n = len(x)
    out = np.zeros_like(x)
    for j in range(n):
        rest = x[j, j] - np.sum(out[j, :j] * adjoint(out[j, :j]))
        if not rest.real > 0:
            return np.full_like(x, np.nan)
        out[j, j] = np.sqrt(rest if adjoint is np.asarray else rest.real)
        out[j + 1 :, j] = (x[j + 1 :, j] - out[j + 1 :, :j] @ adjoint(out[j, :j])) / out[j, j]
    return out


@meaning("triangular_solve")
def _triangular_solve(run: Run, eqn: Any, a: Values, b: Values) -> Any:
    """By substitution: divisions by zeros of the diagonal are not refused."""
    p = eqn.params
    a = np.tril(a) if p["lower"] else np.triu(a)
    lower = p["lower"] != p["transpose_a"]
    a = np.swapaxes(a, -1, -2) if p["transpose_a"] else a
    if not p["left_side"]:
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower

    def one(a: Values, b: Values) -> tuple[Values]:
        return (_substituted(a, b, lower, p["unit_diagonal"]),)

    out = _each(one, a, b)[0]
    return out if p["left_side"] else np.swapaxes(out, -1, -2)


def _substituted(a: Values, b: Values, lower: bool, unit: bool) -> Values:
    n, out = len(a), np.zeros(b.shape, np.result_type(a, b))
    order = range(n) if lower else range(n - 1, -1, -1)
    for i in order:
        done = slice(0, i) if lower else slice(i + 1, n)
        rest = b[i] - a[i, done] @ out[done]
        out[i] = rest if unit else rest / a[i, i]
    return out


@meaning("tridiagonal_solve")
def _tridiagonal_solve(run: Run, eqn: Any, dl: Values, d: Values, du: Values, b: Values) -> Any:
    """As a dense system."""
    n = d.shape[-1]
    i = np.arange(n)
    a = np.zeros((*d.shape, n), np.result_type(dl, d, du))
    a[..., i, i] = d
    a[..., i[1:], i[:-1]], a[..., i[:-1], i[1:]] = dl[..., 1:], du[..., :-1]
    return np.linalg.solve(a, b)


# ---- general ---------------------------------------------------------------------------------------------------


@meaning("lu")
def _lu(run: Run, eqn: Any, x: Values) -> Any:
    """Gaussian elimination, by the largest element of a column: |re| + |im| of a complex number, as LAPACK's."""
    wide = _is_complex(eqn)

    def size(v: Values) -> Values:
        return np.abs(v.real) + np.abs(v.imag) if wide else np.abs(v.real)

    return tuple(_each(lambda one: _eliminated(one, size), x))


def _eliminated(x: Values, size: Callable[[Values], Values]) -> tuple[Values, Values, Values]:
    x, (m, n) = np.array(x), x.shape
    pivots, rows = np.zeros(min(m, n), int), np.arange(m)
    for i in range(min(m, n)):
        p = pivots[i] = i + int(np.argmax(size(x[i:, i])))
        x[[i, p]], rows[[i, p]] = x[[p, i]], rows[[p, i]]
        if x[i, i] != 0:
            x[i + 1 :, i] = x[i + 1 :, i] / x[i, i]
        x[i + 1 :, i + 1 :] = x[i + 1 :, i + 1 :] - np.outer(x[i + 1 :, i], x[i, i + 1 :])
    return x, pivots, rows


@meaning("qr")
def _qr(run: Run, eqn: Any, x: Values) -> Any:
    """LAPACK's signs, by NumPy."""
    _refuse_steps(eqn, x)
    full = eqn.params["full_matrices"]
    if eqn.params["pivoting"]:
        return _each(lambda one: scipy.linalg.qr(one, mode="full" if full else "economic", pivoting=True), x)
    mode = "complete" if full else "reduced"
    return _each(lambda one: tuple(np.linalg.qr(one, mode)), x)


@meaning("det")
def _det(run: Run, eqn: Any, x: Values) -> Any:
    return np.linalg.det(x)


@meaning("adjugate")
def _adjugate(run: Run, eqn: Any, x: Values) -> Any:
    """By determinants of the minors, which a singular matrix has, too."""
    return _each(lambda one: (_cofactors(one).T,), x)[0]


def _cofactors(x: Values) -> Values:
    out = np.ones_like(x)
    for i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


@meaning("least_squares")
def _least_squares(run: Run, eqn: Any, x: Values, b: Values, rtol: Values) -> Any:
    _refuse_steps(eqn, x)
    inverse = np.linalg.pinv(x, rtol[..., 0, 0])
    return inverse @ b, inverse


@meaning("pinv")
def _pinv(run: Run, eqn: Any, x: Values, rtol: Values) -> Any:
    _refuse_steps(eqn, x)
    return np.linalg.pinv(x, rtol[..., 0, 0], eqn.params["hermitian"])


# ---- spectral --------------------------------------------------------------------------------------------------


@meaning("eigh")
def _eigh(run: Run, eqn: Any, x: Values) -> Any:
    _refuse_steps(eqn, x)
    triangle = "L" if eqn.params["lower"] else "U"

    def one(x: Values) -> tuple[Values, ...]:
        if not np.all(np.isfinite(x)):
            return np.full_like(x, np.nan), np.full(len(x), np.nan)
        w, v = np.linalg.eigh(x, triangle)
        return v, w

    v, w = _each(one, x)
    return (v, w) if eqn.params["compute_v"] else w


@meaning("eig")
def _eig(run: Run, eqn: Any, x: Values) -> Any:
    _refuse_steps(eqn, x)

    def one(x: Values) -> tuple[Values, ...]:
        if not np.all(np.isfinite(x)):
            return np.full(len(x), np.nan + 0j), np.full_like(x, np.nan + 0j, complex), np.full_like(x, np.nan, complex)
        w, v = np.linalg.eig(x)
        duals = np.linalg.inv(v).conj().T
        return w, duals / np.linalg.norm(duals, axis=0), v

    w, vl, vr = _each(one, x)
    found = [w, *[vl] * eqn.params["left"], *[vr] * eqn.params["right"]]
    return tuple(found) if len(found) > 1 else w


@meaning("svd")
def _svd(run: Run, eqn: Any, x: Values) -> Any:
    _refuse_steps(eqn, x)
    full = eqn.params["full_matrices"]

    def one(x: Values) -> tuple[Values, ...]:
        found = np.linalg.svd(np.where(np.isfinite(x), x, 0), full)
        return tuple(found if np.all(np.isfinite(x)) else [np.full_like(y, np.nan) for y in found])

    u, s, vh = _each(one, x)
    return (u, s, vh) if eqn.params["compute_uv"] else s


@meaning("geqrf")
def _geqrf(run: Run, eqn: Any, x: Values) -> Any:
    """LAPACK's reflections, by NumPy."""
    _refuse_steps(eqn, x)
    packed, taus = np.linalg.qr(x, "raw")
    return np.swapaxes(packed, -1, -2), taus


# ---- condensed forms -------------------------------------------------------------------------------------------


def _by_lapack(name: str, x: Values, **options: Any) -> list[Values]:
    return _each(lambda one: scipy.linalg.get_lapack_funcs(name, (one,))(one, **options)[:-1], x)


@meaning("hessenberg")
def _hessenberg(run: Run, eqn: Any, x: Values) -> Any:
    """LAPACK's reflections, by SciPy."""
    _refuse_steps(eqn, x)
    return _by_lapack("gehrd", x)


@meaning("tridiagonal")
def _tridiagonal(run: Run, eqn: Any, x: Values) -> Any:
    """LAPACK's reflections, by SciPy."""
    _refuse_steps(eqn, x)
    return _by_lapack("hetrd" if _is_complex(eqn) else "sytrd", x, lower=eqn.params["lower"])


@meaning("schur")
def _schur(run: Run, eqn: Any, x: Values) -> Any:
    """In the dtype that is declared: roundings decide on the order in which eigenvalues are found."""
    _refuse_steps(eqn, x)

    def one(x: Values) -> tuple[Values, ...]:
        x = x.astype(eqn.invars[0].aval.dtype)
        if not np.all(np.isfinite(x)):
            return np.full_like(x, np.nan), np.full_like(x, np.nan)
        return scipy.linalg.schur(x)

    return _each(one, x)[: len(eqn.outvars)]
