"""How operations that move elements transform: tangents move along, cotangents move back."""

from typing import Any

from tapeless.interpreters import jvp, transpose
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.reduction import reduce_sum


def _broadcast_in_dim_transpose(cts: Any, x: Any, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    kept = [d for d, n in zip(dims, x.aval.shape) if n == shape[d]]
    summed = reduce_sum(cts[0], [d for d in range(len(shape)) if d not in kept])
    return (s.reshape(summed, x.aval.shape),)


jvp.linear(s.broadcast_in_dim_p)
transpose.rules[s.broadcast_in_dim_p] = _broadcast_in_dim_transpose

jvp.linear(s.reshape_p)
transpose.unary(s.reshape_p, lambda ct, x, *, shape: s.reshape(ct, x.aval.shape))


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


jvp.linear(s.transpose_p)
transpose.unary(s.transpose_p, lambda ct, x, *, permutation: s.transpose(ct, _inverse(permutation)))

jvp.zero(s.iota_p)
