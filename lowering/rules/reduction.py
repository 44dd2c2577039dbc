"""How reductions run: StableHLO's reduce with the operation in its region; cumulative forms as windows or in blocks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, hlo
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.types import ShapedArray

Operation = Callable[[Function, Value, Value], Value]

# ---- operations and what they start from ---------------------------------------------------------------------


def operation(name: str) -> Operation:
    """An operation of StableHLO's on two values of one type."""
    return lambda f, a, b: f.op(name, [a, b], a.aval)


def extreme(name: str) -> Operation:
    """maximum or minimum: StableHLO's for real numbers; complex ones are ordered lexicographically, nan wins."""
    real, direction = operation(name), "GT" if name == "maximum" else "LT"

    def apply(f: Function, a: Value, b: Value) -> Value:
        if not dtypes.is_complex(a.aval.dtype):
            return real(f, a, b)
        first = f.op("or", [_before(f, a, b, direction), f.compare(a, a, "NE")], a.aval.update(dtype=np.dtype(bool)))
        return f.op("select", [first, a, b], a.aval)

    return apply


def _before(f: Function, a: Value, b: Value, direction: str) -> Value:
    (x, u), (y, v) = parts(f, a), parts(f, b)
    truth = a.aval.update(dtype=np.dtype(bool))
    return f.op("select", [f.compare(x, y, "EQ"), f.compare(u, v, direction), f.compare(x, y, direction)], truth)


def parts(f: Function, x: Value) -> tuple[Value, Value]:
    """Real and imaginary part of a complex value."""
    aval = x.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype))
    return f.op("real", [x], aval), f.op("imag", [x], aval)


def lowest(dtype: Any) -> Any:
    """What changes no maximum."""
    return _end(dtype, -np.inf, "min")


def highest(dtype: Any) -> Any:
    """What changes no minimum."""
    return _end(dtype, np.inf, "max")


def _end(dtype: Any, infinity: float, end: str) -> Any:
    if dtypes.is_bool(dtype):
        return end == "max"
    if dtypes.is_integer(dtype):
        return getattr(dtypes.iinfo(dtype), end)
    if dtypes.is_complex(dtype):
        return complex(infinity, infinity)
    return infinity if np.isinf(np.asarray(infinity).astype(dtype)) else getattr(dtypes.finfo(dtype), end)


def _all_ones(dtype: Any) -> Any:
    return True if dtypes.is_bool(dtype) else -1 if dtypes.is_signed(dtype) else dtypes.iinfo(dtype).max


SUM = operation("add"), lambda dtype: 0
PROD = operation("multiply"), lambda dtype: 1
MAX = extreme("maximum"), lowest
MIN = extreme("minimum"), highest

# ---- reductions ----------------------------------------------------------------------------------------------


def reduce(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int], out: ShapedArray) -> Value:
    """x reduced over `axes` by an operation, from `initial`."""
    scalar = x.aval.update(shape=())
    region = f.block([scalar, scalar], lambda a, b: [combine(f, a, b)])
    return f.op("reduce", [x, f.constant(initial, scalar)], out, f"dimensions = {hlo.array(axes)}", region)


def _reduction(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, *, axes: tuple[int, ...]) -> Any:
        return (reduce(f, x, combine, initial(x.aval.dtype), axes, outs[0]),)

    return rule


emit.rules[r.reduce_sum_p] = _reduction(*SUM)
emit.rules[r.reduce_prod_p] = _reduction(*PROD)
emit.rules[r.reduce_max_p] = _reduction(*MAX)
emit.rules[r.reduce_min_p] = _reduction(*MIN)
emit.rules[r.reduce_and_p] = _reduction(operation("and"), _all_ones)
emit.rules[r.reduce_or_p] = _reduction(operation("or"), lambda dtype: 0)
emit.rules[r.reduce_xor_p] = _reduction(operation("xor"), lambda dtype: 0)

# ---- positions of extremes -----------------------------------------------------------------------------------


def _position(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    """The least position of an element equal to the extreme, or of a nan: two reductions, both of them vectorised."""

    def rule(f: Function, outs: Any, x: Value, *, axis: int, index_dtype: Any) -> Any:
        kept = [i for i in range(x.aval.ndim) if i != axis]
        best = reduce(f, x, combine, initial(x.aval.dtype), (axis,), outs[0].update(dtype=x.aval.dtype))
        hit = f.compare(x, f.broadcast(best, x.aval.shape, kept), "EQ")
        if dtypes.is_float(x.aval.dtype):
            hit = f.op("or", [hit, f.compare(x, x, "NE")], hit.aval)
        index = x.aval.update(dtype=index_dtype, weak_type=False)
        places = f.op("iota", [], index, f"iota_dimension = {axis} : i64")
        last = f.broadcast(f.constant(x.aval.shape[axis] - 1, index.update(shape=())), index.shape)
        first = f.op("select", [hit, places, last], index)
        return (reduce(f, first, operation("minimum"), highest(index_dtype), (axis,), outs[0]),)

    return rule


emit.rules[r.argmax_p] = _position(*MAX)
emit.rules[r.argmin_p] = _position(*MIN)

# ---- cumulative ----------------------------------------------------------------------------------------------


def window_attributes(window: Sequence[int], strides: Sequence[int], padding: Sequence[Sequence[int]]) -> str:
    """The attributes that all of StableHLO's windowed operations have."""
    return (
        f"window_dimensions = {hlo.array(window)}, window_strides = {hlo.array(strides)}, "
        f"padding = {padding_attribute(padding)}"
    )


def padding_attribute(padding: Sequence[Sequence[int]]) -> str:
    """`dense<[[1, 0]]> : tensor<1x2xi64>`."""
    return f"dense<{[list(pair) for pair in padding] or ''}> : tensor<{len(padding)}x2xi64>"


def _cumulated(f: Function, x: Value, combine: Operation, initial: Any, axis: int, reverse: bool) -> Value:
    """A window as long as the axis: XLA knows that form and runs it as a prefix scan."""
    n, rank, scalar = x.aval.shape[axis], x.aval.ndim, x.aval.update(shape=())
    if n <= 1 or not x.aval.size:
        return x
    along = [i == axis for i in range(rank)]
    padding = [((0, n - 1) if reverse else (n - 1, 0)) if here else (0, 0) for here in along]
    attributes = window_attributes([n if here else 1 for here in along], [1] * rank, padding)
    region = f.block([scalar, scalar], lambda a, b: [combine(f, a, b)])
    return f.op("reduce_window", [x, f.constant(initial, scalar)], x.aval, attributes, region)


def _cumulative(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, *, axis: int, reverse: bool) -> Any:
        return (_cumulated(f, x, combine, initial(x.aval.dtype), axis, reverse),)

    return rule


emit.rules[r.cumsum_p] = _cumulative(*SUM)
emit.rules[r.cumprod_p] = _cumulative(*PROD)
emit.rules[r.cummax_p] = _cumulative(*MAX)
emit.rules[r.cummin_p] = _cumulative(*MIN)


def _cumlogsumexp(f: Function, outs: Any, x: Value, *, axis: int, reverse: bool) -> Any:
    """y = m + log s, where m is the running maximum and s[i] = s[i-1] exp(m[i-1] - m[i]) + exp(x[i] - m[i])."""
    aval = x.aval
    if not aval.shape[axis] or not aval.size:
        return (x,)
    if reverse:
        return (_reversed(f, _cumlogsumexp(f, outs, _reversed(f, x, axis), axis=axis, reverse=False)[0], axis),)
    top = _cumulated(f, x, extreme("maximum"), lowest(aval.dtype), axis, False)
    finite = f.op("is_finite", [top], aval.update(dtype=np.dtype(bool)))
    zero = f.broadcast(f.constant(0, aval.update(shape=())), aval.shape)
    m = f.op("select", [finite, top, zero], aval)
    fall = f.op("subtract", [_shifted(f, m, axis, 1, 0), m], aval)
    decay = f.op("exponential", [f.op("minimum", [fall, zero], aval)], aval)
    scaled = f.op("exponential", [f.op("subtract", [x, m], aval)], aval)
    total = f.op("log", [_recurrence(f, decay, scaled, axis)[1]], aval)
    return (f.op("add", [m, total], aval),)


emit.rules[r.cumlogsumexp_p] = _cumlogsumexp

# ---- linear recurrences --------------------------------------------------------------------------------------

_BLOCK = 32  # of 8 to 64 the fastest on a CPU, by a little


def _linear_recurrence(f: Function, outs: Any, decay: Value, x: Value, *, axis: int, reverse: bool) -> Any:
    if not x.aval.size:
        return (x,)
    if reverse:
        decay, x = _reversed(f, decay, axis), _reversed(f, x, axis)
    decay = _padded(f, _padded(f, decay, axis, -1, 0, 1), axis, 1, 0, 1)  # the first may be inf or nan: it has no say
    z = _recurrence(f, decay, x, axis)[1]
    return (_reversed(f, z, axis) if reverse else z,)


emit.rules[r.linear_recurrence_p] = _linear_recurrence


def _recurrence(f: Function, decay: Value, x: Value, axis: int) -> tuple[Value, Value]:
    """Products of the decays so far, and the solution: blocks by log-steps, then their ends by the same rule.

    The step that composes z -> a z + b with the one before it is associative.
    """
    n = x.aval.shape[axis]
    if n <= _BLOCK:
        return _by_log_steps(f, decay, x, axis)
    blocks = -(-n // _BLOCK)
    decay, x = [_blocked(f, v, axis, blocks) for v in (decay, x)]
    decay, x = _by_log_steps(f, decay, x, axis + 1)
    ends = _recurrence(f, _last(f, decay, axis), _last(f, x, axis), axis)
    before = [_spread(f, _shifted(f, v, axis, 1, k), axis, x.aval.shape) for v, k in zip(ends, (1, 0))]
    decay, x = _composed(f, before, decay, x)
    return _unblocked(f, decay, axis, n), _unblocked(f, x, axis, n)


def _by_log_steps(f: Function, decay: Value, x: Value, axis: int) -> tuple[Value, Value]:
    step = 1
    while step < x.aval.shape[axis]:
        before = _shifted(f, decay, axis, step, 1), _shifted(f, x, axis, step, 0)
        decay, x = _composed(f, before, decay, x)
        step *= 2
    return decay, x


def _composed(f: Function, before: Sequence[Value], decay: Value, x: Value) -> tuple[Value, Value]:
    carried = f.op("multiply", [decay, before[1]], x.aval)
    return f.op("multiply", [before[0], decay], x.aval), f.op("add", [carried, x], x.aval)


def _reversed(f: Function, x: Value, axis: int) -> Value:
    return f.op("reverse", [x], x.aval, f"dimensions = {hlo.array([axis])}")


def _shifted(f: Function, x: Value, axis: int, by: int, fill: float) -> Value:
    """Elements moved `by` places towards the end of an axis."""
    return _padded(f, x, axis, by, -by, fill)


def _padded(f: Function, x: Value, axis: int, before: int, after: int, fill: float) -> Value:
    low, high = ([n if i == axis else 0 for i in range(x.aval.ndim)] for n in (before, after))
    shape = [n + a + b for n, a, b in zip(x.aval.shape, low, high)]
    attributes = (
        f"edge_padding_low = {hlo.array(low)}, edge_padding_high = {hlo.array(high)}, "
        f"interior_padding = {hlo.array([0] * x.aval.ndim)}"
    )
    initial = f.constant(fill, x.aval.update(shape=()))
    return f.op("pad", [x, initial], x.aval.update(shape=tuple(shape)), attributes)


def _blocked(f: Function, x: Value, axis: int, blocks: int) -> Value:
    """[.., n, ..] -> [.., blocks, _BLOCK, ..]."""
    shape = x.aval.shape
    full = _padded(f, x, axis, 0, blocks * _BLOCK - shape[axis], 0)
    return f.op("reshape", [full], x.aval.update(shape=(*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])))


def _unblocked(f: Function, x: Value, axis: int, n: int) -> Value:
    shape = x.aval.shape
    flat = x.aval.update(shape=(*shape[:axis], shape[axis] * _BLOCK, *shape[axis + 2 :]))
    return _padded(f, f.op("reshape", [x], flat), axis, 0, n - flat.shape[axis], 0)


def _last(f: Function, x: Value, axis: int) -> Value:
    """The last of each block."""
    shape = x.aval.shape
    out = x.aval.update(shape=(*shape[: axis + 1], *shape[axis + 2 :]))
    end = _padded(f, x, axis + 1, 1 - _BLOCK, 0, 0)
    return f.op("reshape", [end], out)


def _spread(f: Function, x: Value, axis: int, shape: tuple[int, ...]) -> Value:
    return f.broadcast(x, shape, [i for i in range(len(shape)) if i != axis + 1])
