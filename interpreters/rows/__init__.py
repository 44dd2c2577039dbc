"""Index rows of primitives, by family: importing this package fills the tables of index_rows.py."""

from functools import lru_cache
from typing import Any

from tapeless.interpreters.index_rows import IndexRow, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.rules import fill
from tapeless.tracer.types import ShapedArray

fill(__name__)


def index_row(eqn: Equation) -> IndexRow | None:
    """Look up the index row of an equation; None if its primitive has none. Rows are remembered, as types are."""
    if eqn.primitive not in rows:
        return None
    return _remembered(eqn.primitive, tuple(eqn.params.items()), tuple([v.aval for v in eqn.invars]))


@lru_cache(maxsize=4096)
def _remembered(primitive: Primitive, params: Any, avals: tuple[ShapedArray, ...]) -> IndexRow:
    return rows[primitive](dict(params), avals)
