"""Index rows of sorting: functions of a whole axis."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, core, rows
from tapeless.tracer.primitives import sorting as s
from tapeless.tracer.types import ShapedArray


def _sort(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of a sort, which reads each operand whole along the axis, as all move with the keys."""
    along = {d: d for d in range(avals[0].ndim) if d != params["dimension"]}
    return core([(x.shape, along) for x in avals], *[x.shape for x in avals])


def _top_k(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    (x,) = avals
    shape = (*x.shape[:-1], params["k"])
    return core([(x.shape, {d: d for d in range(x.ndim - 1)})], shape, shape)


rows[s.sort_p], rows[s.top_k_p] = _sort, _top_k
