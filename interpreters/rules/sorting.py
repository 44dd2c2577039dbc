"""Rules of sort and top_k: tangents are gathered by the permutation that sorts the primals."""

from typing import Any

import numpy as np

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, rows
from tapeless.interpreters.zero import Zero, zero_of, zeros_of
from tapeless.tracer.primitives import sorting as s
from tapeless.tracer.primitives.shape import broadcasted_iota
from tapeless.tracer.primitives.sorting import take_along_axis
from tapeless.tracer.types import aval_of


def _permuted(t: Any, y: Any, places: Any, axis: int) -> Any:
    return zero_of(y) if type(t) is Zero else take_along_axis(t, places, axis)


def _sort_jvp(primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    if all(type(t) is Zero for t in tangents):
        outs = s.sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, zeros_of(outs)
    index = broadcasted_iota(np.int32, aval_of(primals[0]).shape, dimension)
    *outs, places = s.sort_p.bind(*primals, index, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return tuple(outs), tuple(_permuted(t, y, places, dimension) for t, y in zip(tangents, outs))


def _top_k_jvp(primals: Any, tangents: Any, *, k: int) -> Any:
    values, places = s.top_k_p.bind(*primals, k=k)
    t = _permuted(tangents[0], values, places, aval_of(values).ndim - 1)
    return (values, places), (t, zero_of(places))


def _sort_vmap(size: int, args: Any, dims: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    given, d = vmap.together(size, args, dims)
    moved = vmap.beside(dimension, d)
    return s.sort_p.bind(*given, dimension=moved, is_stable=is_stable, num_keys=num_keys), [d] * len(given)


def _top_k_vmap(size: int, args: Any, dims: Any, *, k: int) -> Any:
    """Batch top_k, which takes the last axis, with the mapped axis first."""
    (x,), (d,) = args, dims
    if d == aval_of(x).ndim - 1:
        x, d = vmap.to_front(x, d), 0
    return s.top_k_p.bind(x, k=k), [d, d]


jvp.rules[s.sort_p] = _sort_jvp
jvp.rules[s.top_k_p] = _top_k_jvp
vmap.rules[s.sort_p] = _sort_vmap
vmap.rules[s.top_k_p] = _top_k_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of a whole axis.


def _sort_row(params: Params, avals: Avals) -> IndexRow:
    """Make the row of a sort, which reads each operand whole along the axis, as all move with the keys."""
    along = {d: d for d in range(avals[0].ndim) if d != params["dimension"]}
    return core([(x.shape, along) for x in avals], *[x.shape for x in avals])


def _top_k_row(params: Params, avals: Avals) -> IndexRow:
    (x,) = avals
    shape = (*x.shape[:-1], params["k"])
    return core([(x.shape, {d: d for d in range(x.ndim - 1)})], shape, shape)


rows[s.sort_p], rows[s.top_k_p] = _sort_row, _top_k_row
