"""Index rows of reductions: sums are terms, other reductions monoids, with a variable for each reduced axis."""

from collections.abc import Callable, Sequence

from tapeless.interpreters.index_rows import Box, IndexRow, Params, core, monoid, rows, terms
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.terms.term import NotNegative, Read, Term
from tapeless.tracer.types import ShapedArray

Avals = Sequence[ShapedArray]
Row = Callable[[Params, Avals], IndexRow]


def _reduced(params: Params, avals: Avals) -> Term:
    box = Box()
    i = box.axes(avals[0].shape)
    return box.term(without(i, params["axes"]), Read(0, i))


def _cumulated(params: Params, avals: Avals) -> Term:
    """Make the term of a cumulative reduction: elements up to each position on `axis`, or from it on if `reverse`."""
    box, axis = Box(), params["axis"]
    out = box.axes(avals[0].shape)
    k = box.axis(avals[0].shape[axis])
    ahead = k - out[axis] if params["reverse"] else out[axis] - k
    access = tuple([k if d == axis else v for d, v in enumerate(out)])
    return box.term(out, Read(0, access), brackets=[NotNegative(ahead)])


def _monoid(operation: str, written: Callable[[Params, Avals], Term]) -> Row:
    return lambda params, avals: monoid(operation, written(params, avals))


def _reduce_or(params: Params, avals: Avals) -> IndexRow:
    found = _reduced(params, avals)
    return terms([found]) if dtypes.is_bool(avals[0].dtype) else monoid("or", found)


def _position(params: Params, avals: Avals) -> IndexRow:
    """Make the index row of argmax and argmin, which read the whole axis."""
    (x,), axis = avals, params["axis"]
    return core([(x.shape, {d: d - (d > axis) for d in range(x.ndim) if d != axis})], without(x.shape, (axis,)))


def _linear_recurrence(params: Params, avals: Avals) -> IndexRow:
    along = {d: d for d in range(avals[0].ndim) if d != params["axis"]}
    return core([(x.shape, along) for x in avals], avals[1].shape)


rows[r.reduce_sum_p] = lambda params, avals: terms([_reduced(params, avals)])
rows[r.cumsum_p] = lambda params, avals: terms([_cumulated(params, avals)])
rows[r.reduce_or_p] = _reduce_or
for _primitive, _operation in (
    (r.reduce_prod_p, "mul"), (r.reduce_max_p, "max"), (r.reduce_min_p, "min"), (r.reduce_and_p, "and"),
    (r.reduce_xor_p, "xor"),
):  # fmt: skip
    rows[_primitive] = _monoid(_operation, _reduced)
for _primitive, _operation in (
    (r.cumprod_p, "mul"), (r.cummax_p, "max"), (r.cummin_p, "min"), (r.cumlogsumexp_p, "logaddexp"),
):  # fmt: skip
    rows[_primitive] = _monoid(_operation, _cumulated)
rows[r.argmax_p] = rows[r.argmin_p] = _position
rows[r.linear_recurrence_p] = _linear_recurrence
