"""Decompositions, and systems of linear equations, under the names of `jax.lax.linalg`."""

import typing as _typing

from tapeless.custom.own_primitive_names import IN_LINALG as _PRIMITIVES
from tapeless.late_names import imported_late as _imported_late
from tapeless.tracer.primitives.condensed_forms import hessenberg, schur, tridiagonal
from tapeless.tracer.primitives.factorization import lu, qr
from tapeless.tracer.primitives.linalg import cholesky, triangular_solve
from tapeless.tracer.primitives.spectral import EighImplementation, EigImplementation, SvdAlgorithm, eig, eigh, svd
from tapeless.tracer.primitives.tridiagonal_systems import tridiagonal_solve

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]

if _typing.TYPE_CHECKING:
    from tapeless.lax.matrix_functions import cholesky_update, lu_pivots_to_permutation, symmetric_product
    from tapeless.lax.qdwh import qdwh
    from tapeless.tracer.householder import householder_product, ormqr
else:
    _LATE = {
        "cholesky_update": "lax.matrix_functions",
        "householder_product": "tracer.householder",
        "lu_pivots_to_permutation": "lax.matrix_functions",
        "ormqr": "tracer.householder",
        "qdwh": "lax.qdwh",
        "symmetric_product": "lax.matrix_functions",
    }
    __all__.extend(_PRIMITIVES)
    __getattr__ = _imported_late(globals(), {**_LATE, **dict.fromkeys(_PRIMITIVES, "custom.own_primitives")})
