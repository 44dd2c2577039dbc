"""Compare backward errors of ours with those of SciPy."""

import warnings
from typing import Any

import numpy as np

import tapeless as tl
from tests.backward_errors.matrices import matrices
from tests.backward_errors.rows import ROWS

DTYPES = ("float64", "float32", "complex128", "complex64")
FACTOR = 10


def right_sides(n: int, dtype: str) -> Any:
    rng = np.random.default_rng(8)
    return np.stack([np.ones(n), rng.standard_normal(n), rng.standard_normal(n) * 1e4], 1).astype(dtype)


def excess(kind: str, n: int, dtype: str) -> list[str]:
    """List rows and matrices for which our error is more than ten times the reference's and a rounding error.

    The functions of a kind of matrices are one program; matrices of 32 bits are a batch of it.
    """
    rows = {name: row for name, row in ROWS.items() if row.kind == kind}
    given, b = matrices(kind, n, dtype), right_sides(n, dtype)

    def functions(a: Any, b: Any) -> Any:
        return {name: row.function(a, b) for name, row in rows.items()}

    found = (_together if np.finfo(dtype).bits == 32 else _each)(functions, given, b)
    judged = [
        _judged(row, a, b, found[key][name], f"{name} {dtype} {n} {key}")
        for name, row in rows.items()
        for key, a in given.items()
    ]
    return [*filter(None, judged)]


def _each(f: Any, given: dict[str, Any], b: Any) -> dict[str, Any]:
    run = tl.jit(f)
    return {key: tl.tree.map(np.asarray, run(a, b)) for key, a in given.items()}


def _together(f: Any, given: dict[str, Any], b: Any) -> dict[str, Any]:
    batch = tl.jit(tl.vmap(f, (0, None)))(np.stack(list(given.values())), b)
    parts = tl.tree.map(np.asarray, batch)
    return {key: tl.tree.map(lambda x, i=i: x[i], parts) for i, key in enumerate(given)}


def _judged(row: Any, a: Any, b: Any, found: Any, what: str) -> str:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = row.error(a, b, found)
        try:
            other = row.error(a, b, row.reference(a, b))
        except np.linalg.LinAlgError:  # NumPy refuses what it finds to be singular
            return ""
    eps = float(np.finfo(a.dtype).eps)
    return (
        "" if error <= FACTOR * max(other, eps) or not np.isfinite(other) else f"{what}: {error:.1e}, SciPy {other:.1e}"
    )
