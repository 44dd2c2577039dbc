"""Rules of collectives. The `vmap` that binds their axis name turns them into operations on the mapped axis; under any
other, the mapped axis is one more axis of their operands.

All but pmax, pmin and axis_index are linear in the values of all examples jointly: the cotangent of a sum, of which
every example has a copy, is the sum of the cotangents of the copies.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.vmap import Dim
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import collective as c
from tapeless.tracer.primitives.checkpoint import materialize
from tapeless.tracer.primitives.elementwise import convert_element_type, div, eq, mul
from tapeless.tracer.primitives.indexing import index_take
from tapeless.tracer.primitives.reduction import reduce_max, reduce_min, reduce_sum
from tapeless.tracer.primitives.shape import iota, pad, reshape
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.types import aval_of, exact, weak_number

# ---- derivatives ---------------------------------------------------------------------------------------------

Permutation = tuple[tuple[int, int], ...]


def _all_to_all_back(ct: Any, x: Any, *, split_axis: int, concat_axis: int, **params: Any) -> Any:
    return c.all_to_all(ct, split_axis=concat_axis, concat_axis=split_axis, **params)


def _ppermute_back(ct: Any, x: Any, *, perm: Permutation, **params: Any) -> Any:
    return c.ppermute(ct, perm=tuple([(to, start) for start, to in perm]), **params)


for _primitive, _row in {
    c.psum_p: lambda ct, x, **params: c.psum(ct, **params),
    c.all_gather_p: lambda ct, x, **params: c.psum_scatter(ct, **params),
    c.psum_scatter_p: lambda ct, x, **params: c.all_gather(ct, **params),
    c.all_to_all_p: _all_to_all_back,
    c.ppermute_p: _ppermute_back,
}.items():
    jvp.linear(_primitive)
    transpose.unary(_primitive, _row)


def _extreme_jvp(primitive: Primitive) -> None:
    """Register the rule of pmax and pmin: it averages the tangents of the examples that attain the extreme."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        x, t = materialize(primals[0]), tangents[0]
        (y,) = primitive.bind(x, **params)
        at = convert_element_type(eq(x, y), aval_of(x).dtype)
        return (y,), (div(c.psum(mul(t, at), **params), c.psum(at, **params)),)

    jvp.rules[primitive] = rule


_extreme_jvp(c.pmax_p)
_extreme_jvp(c.pmin_p)
jvp.zero(c.axis_index_p)

# ---- vmap over another axis ----------------------------------------------------------------------------------


def _shifted(primitive: Primitive, *axes: str) -> None:
    """Register a vmap rule that leaves the mapped axis where it is, and counts the params `axes` past it."""

    def rule(size: int, args: Any, dims: Any, **params: Any) -> Any:
        (d,) = dims
        moved = {name: vmap.beside(params[name], d) for name in axes}
        return primitive.bind(args[0], **{**params, **moved}), [d]

    vmap.rules[primitive] = rule


for _primitive in (c.psum_p, c.pmax_p, c.pmin_p, c.ppermute_p):
    _shifted(_primitive)
_shifted(c.all_gather_p, "axis")
_shifted(c.psum_scatter_p, "axis")
_shifted(c.all_to_all_p, "split_axis", "concat_axis")
vmap.rules[c.axis_index_p] = lambda size, args, dims, **params: (c.axis_index_p.bind(**params), [None])

# ---- vmap over the axis itself -------------------------------------------------------------------------------

Resolve = Callable[..., tuple[Any, Dim]]


def _resolved(primitive: Primitive) -> Callable[[Resolve], Resolve]:
    """Register `resolve(size, x, d, **params) -> (result, its mapped axis)`, a collective within one group."""

    def register(resolve: Resolve) -> Resolve:
        def rule(size: int, args: Any, dims: Any, **params: Any) -> Any:
            (x,), (d,) = args, dims
            primitive.type((aval_of(x).update(shape=vmap.example_shape(x, d)),), params)
            groups, names = params.pop("groups", None), params.pop("axis_names")
            params["others"] = tuple([name for name in names if name != vmap.axis_name()])
            if groups is None:
                y, d = resolve(size, x, d, **params)
            else:
                y, d = _in_groups(resolve, size, vmap.move_mapped_axis_first(x, d, size), groups, params)
            return (y,), [d]

        vmap.collectives[primitive] = rule
        return resolve

    return register


def _in_groups(resolve: Resolve, size: int, x: Any, groups: Sequence[Any], params: Any) -> tuple[Any, Dim]:
    """Resolve a collective in each group, with the groups as one more mapped axis."""
    order = np.asarray(groups, np.int32).reshape(-1)
    n = size // len(groups)
    rows = reshape(_rows(x, order), (len(groups), n, *aval_of(x).shape[1:]))
    (y,) = vmap.vmap_to_front(
        lambda one: [vmap.move_mapped_axis_first(*resolve(n, one, 0, **params), n)], [rows], [0], len(groups)
    )
    return _rows(reshape(y, (size, *aval_of(y).shape[2:])), np.argsort(order).astype(np.int32)), 0


def _rows(x: Any, order: Any) -> Any:
    return index_take(x, [order], [0], mode="promise_in_bounds")


@_resolved(c.psum_p)
def _psum(size: int, x: Any, d: Dim, others: c.Names) -> tuple[Any, Dim]:
    return c.psum(_sum(size, x, d), others), None


def _sum(size: int, x: Any, d: Dim) -> Any:
    if d is not None:
        return reduce_sum(x, (d,))
    number = exact(np.asarray(size).astype(aval_of(x).dtype))  # wraps, as the sum would
    return mul(x, weak_number(number) if aval_of(x).weak_type else number)


@_resolved(c.pmax_p)
def _pmax(size: int, x: Any, d: Dim, others: c.Names) -> tuple[Any, Dim]:
    return c.pmax(x if d is None else reduce_max(x, (d,)), others), None


@_resolved(c.pmin_p)
def _pmin(size: int, x: Any, d: Dim, others: c.Names) -> tuple[Any, Dim]:
    return c.pmin(x if d is None else reduce_min(x, (d,)), others), None


@_resolved(c.all_gather_p)
def _all_gather(size: int, x: Any, d: Dim, axis: int, **_: Any) -> tuple[Any, Dim]:
    return _joined(vmap.move_mapped_axis(x, d, axis, size), axis), None


@_resolved(c.psum_scatter_p)
def _psum_scatter(size: int, x: Any, d: Dim, axis: int, **_: Any) -> tuple[Any, Dim]:
    return _cut(_sum(size, x, d), axis, size), axis


@_resolved(c.all_to_all_p)
def _all_to_all(size: int, x: Any, d: Dim, split_axis: int, concat_axis: int, **_: Any) -> tuple[Any, Dim]:
    """Cut `split_axis` into a part for each example; the parts' axis becomes the mapped one, that one concatenated."""
    parts = _cut(vmap.move_mapped_axis_first(x, d, size), 1 + split_axis, size)
    own = [i for i in range(aval_of(parts).ndim) if i not in (0, 1 + split_axis)]
    order = [1 + split_axis, *own[:concat_axis], 0, *own[concat_axis:]]
    return _joined(permute(parts, order), 1 + concat_axis), 0


def _joined(x: Any, axis: int) -> Any:
    """Merge `axis` of x with the next axis."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _cut(x: Any, axis: int, n: int) -> Any:
    """Split `axis` of x into two axes, the first of length n."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:axis], n, shape[axis] // n, *shape[axis + 1 :]))


@_resolved(c.ppermute_p)
def _ppermute(size: int, x: Any, d: Dim, perm: Permutation, **_: Any) -> tuple[Any, Dim]:
    sender = {to: start for start, to in perm}
    if d is None and len(sender) == size:
        return x, None
    rows = vmap.move_mapped_axis_first(x, d, size)
    if len(sender) < size:  # row `size` is of zeros
        zero = exact(0, aval_of(x).dtype)
        rows = pad(rows, zero, [(0, 1, 0), *[(0, 0, 0)] * (aval_of(rows).ndim - 1)])
    return _rows(rows, np.asarray([sender.get(to, size) for to in range(size)], np.int32)), 0


def _axis_index_over_itself(size: int, args: Any, dims: Any, **_: Any) -> Any:
    return (iota(np.int32, size),), [0]


vmap.collectives[c.axis_index_p] = _axis_index_over_itself

# ---- index rows ----------------------------------------------------------------------------------------------

without_row(
    "it reads other examples or devices, which no axis of an array is",
    *(c.psum_p, c.pmax_p, c.pmin_p, c.all_gather_p, c.psum_scatter_p, c.all_to_all_p, c.ppermute_p, c.axis_index_p),
)
