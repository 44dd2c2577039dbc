"""Index rows of primitives, by family: importing this package fills the tables of index_rows.py."""

from functools import lru_cache
from typing import Any

from tapeless.interpreters.index_rows import IndexRow, rows
from tapeless.interpreters.rows import (
    bits,
    call,
    callback,
    checkpoint,
    collective,
    condensed_forms,
    contraction,
    control_flow,
    custom,
    custom_vmap,
    elementwise,
    error_functions,
    factorization,
    fourier,
    gamma_functions,
    indexing,
    integrals,
    linalg,
    linear_solve,
    platform,
    random,
    reduction,
    shape,
    sorting,
    special,
    spectral,
    tridiagonal_systems,
    windows,
)
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.types import ShapedArray


def index_row(eqn: Equation) -> IndexRow | None:
    """Look the row of an equation up; None if its primitive has none. Rows are remembered, as types are."""
    if eqn.primitive not in rows:
        return None
    return _remembered(eqn.primitive, tuple(eqn.params.items()), tuple([v.aval for v in eqn.invars]))


@lru_cache(maxsize=4096)
def _remembered(primitive: Primitive, params: Any, avals: tuple[ShapedArray, ...]) -> IndexRow:
    return rows[primitive](dict(params), avals)


__all__ = [
    "bits",
    "call",
    "callback",
    "checkpoint",
    "collective",
    "condensed_forms",
    "contraction",
    "control_flow",
    "custom",
    "custom_vmap",
    "elementwise",
    "error_functions",
    "factorization",
    "fourier",
    "gamma_functions",
    "indexing",
    "integrals",
    "linalg",
    "linear_solve",
    "platform",
    "random",
    "reduction",
    "shape",
    "sorting",
    "special",
    "spectral",
    "tridiagonal_systems",
    "windows",
    "index_row",
]
