"""Look up the index rows of equations."""

from functools import lru_cache
from typing import Any

from tapeless.interpreters.index_rows import IndexRow, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.types import ShapedArray


def index_row(eqn: Equation) -> IndexRow | None:
    """Look up the index row of an equation; None if its primitive has none. Rows are remembered, as types are."""
    if eqn.primitive not in rows:
        return None
    return _remembered(eqn.primitive, tuple(eqn.params.items()), tuple([v.aval for v in eqn.invars]))


@lru_cache(maxsize=4096)
def _remembered(primitive: Primitive, params: Any, avals: tuple[ShapedArray, ...]) -> IndexRow:
    return rows[primitive](dict(params), avals)
