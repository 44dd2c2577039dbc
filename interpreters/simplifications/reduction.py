"""Sums of broadcasts, and sums of sums. Rows of rewrites.py name these functions."""

import math
from collections.abc import Sequence

from tapeless.interpreters.simplifications.constants import count
from tapeless.interpreters.writer import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray

Ints = tuple[int, ...]


def sum_of_repeated(w: Writer, aval: ShapedArray, x: Atom, shape: Ints, dims: Ints, axes: Ints) -> Atom | None:
    """Rewrite the sum along `axes` of the broadcast of `x` as a multiple of `x`, broadcast along the remaining axes.

    `x` is summed along its own axes among `axes`. None if one of these is repeated from length 1, if `x` is repeated 0
    times, or if the dtype does not hold the multiple.
    """
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
    return w.write(broadcast_in_dim_p, scaled, shape=aval.shape, dims=kept)


def together(axes: Sequence[int], inner: Ints, x: Atom) -> Ints:
    """Return all axes of `x` that are summed when its sum along `inner` is summed along `axes`."""
    kept = without(range(x.aval.ndim), inner)
    return tuple(sorted([*inner, *[kept[a] for a in axes]]))
