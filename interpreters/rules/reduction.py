"""How reductions transform."""

from typing import Any

from tapeless.interpreters import jvp, transpose
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives.shape import broadcast_in_dim


def _reduce_sum_transpose(cts: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
    return (broadcast_in_dim(cts[0], x.aval.shape, kept),)


jvp.linear(r.reduce_sum_p)
transpose.rules[r.reduce_sum_p] = _reduce_sum_transpose
