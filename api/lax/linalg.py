"""Decompositions and triangular systems, under the names of `jax.lax.linalg`."""

import typing as _typing

from tapeless.tracer.errors import missing_name as _missing_name
from tapeless.tracer.primitives.factorization import lu, qr
from tapeless.tracer.primitives.linalg import cholesky, triangular_solve
from tapeless.tracer.primitives.spectral import eigh, svd

__all__ = ["cholesky", "eigh", "lu", "qr", "svd", "triangular_solve"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there

    def __getattr__(name: str) -> _typing.NoReturn:
        raise _missing_name("tapeless.lax.linalg", name)
