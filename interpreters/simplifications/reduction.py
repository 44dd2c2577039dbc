"""Sums: of what is broadcast along them, of sums, over axes of length 1."""

import math
from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.constants import count
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p


def _reduce_sum(w: Writer, x: Atom, *, axes: tuple[int, ...]) -> Atom | None:
    if not axes:
        return x
    if all(x.aval.shape[a] == 1 for a in axes):
        return w.write(reshape_p, x, shape=without(x.aval.shape, axes))
    before = w.made_by(x, broadcast_in_dim_p)
    if before is not None:
        return _sum_of_broadcast(w, before, axes)
    before = w.made_by(x, reduce_sum_p)
    if before is not None:
        kept = without(range(before.invars[0].aval.ndim), before.params["axes"])
        joined = tuple(sorted([*before.params["axes"], *[kept[a] for a in axes]]))
        return w.write(reduce_sum_p, before.invars[0], axes=joined)
    return None


def _sum_of_broadcast(w: Writer, before: Any, axes: tuple[int, ...]) -> Atom | None:
    """n times what is repeated n times."""
    (x,), shape, dims = before.invars, before.params["shape"], before.params["dims"]
    own = tuple([k for k, d in enumerate(dims) if d in axes])
    if any(x.aval.shape[k] != shape[dims[k]] for k in own):
        return None
    n = math.prod([shape[a] for a in axes if a not in dims])
    times = count(w, n, x.aval) if n != 1 else None
    if n == 0 or (times is None and n != 1):
        return None
    summed = w.write(reduce_sum_p, x, axes=own) if own else x
    scaled = w.write(mul_p, times, summed) if times is not None else summed
    left = without(range(len(shape)), axes)
    kept = tuple([left.index(d) for d in dims if d not in axes])
    return w.write(broadcast_in_dim_p, scaled, shape=tuple([shape[d] for d in left]), dims=kept)


simplify.rules[reduce_sum_p] = _reduce_sum
