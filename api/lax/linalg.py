"""Decompositions, and systems of linear equations, under the names of `jax.lax.linalg`."""

import typing as _typing

from tapeless.lax.own_primitive_names import FUNCTIONS_IN_LINALG as _FUNCTIONS
from tapeless.lax.own_primitive_names import IN_LINALG as _PRIMITIVES
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.primitives.factorization import lu, qr
from tapeless.tracer.primitives.linalg import cholesky, triangular_solve, tridiagonal_solve
from tapeless.tracer.primitives.spectral import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    eig,
    eigh,
    hessenberg,
    schur,
    svd,
    tridiagonal,
)

if _typing.TYPE_CHECKING:
    from tapeless.lax.householder import householder_product, ormqr
    from tapeless.lax.matrix_functions import cholesky_update, lu_pivots_to_permutation, symmetric_product
    from tapeless.lax.qdwh import qdwh

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_update", "eig", "eigh",
    "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh", "qr", "schur", "svd",
    "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip

_LATE = {
    "lax.householder": "householder_product ormqr",
    "lax.matrix_functions": "cholesky_update lu_pivots_to_permutation symmetric_product",
    "lax.qdwh": "qdwh",
}  # fmt: skip
# ---- end of what is written

if not _typing.TYPE_CHECKING:
    __all__.extend([*_FUNCTIONS, *_PRIMITIVES])
    _LATE |= {"like_jax.function_primitives": " ".join(_FUNCTIONS), "like_jax.own_primitives": " ".join(_PRIMITIVES)}
    _complete_namespace(globals(), _LATE)
