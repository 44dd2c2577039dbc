"""Lowering of reductions to StableHLO's reduce, of cumulative ones to windows, of recurrences to pairwise steps."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import emit, hlo
from tapeless.lowering.emit import in_float32, in_unsigned
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.types import ShapedArray

Operation = Callable[[Function, Value, Value], Value]
Reduction = tuple[Operation, Callable[[Any], Any]]  # with its neutral element, by dtype

# ---- operations and their neutral elements -------------------------------------------------------------------


def operation(name: str) -> Operation:
    """Return the function that emits a StableHLO operation on two values of one type."""
    return lambda f, a, b: f.op(name, [a, b], a.aval)


def extreme(name: str) -> Operation:
    """Return the function that emits maximum or minimum; complex numbers are ordered lexicographically, nan wins."""
    real, direction = operation(name), "GT" if name == "maximum" else "LT"

    def apply(f: Function, a: Value, b: Value) -> Value:
        if not dtypes.is_complex(a.aval.dtype):
            return real(f, a, b)
        truth = a.aval.update(dtype=np.dtype(bool))
        first = f.op("and", [_before(f, a, b, direction), f.compare(b, b, "EQ")], truth)
        return f.op("select", [f.op("or", [first, f.compare(a, a, "NE")], truth), a, b], a.aval)

    return apply


def _before(f: Function, a: Value, b: Value, direction: str) -> Value:
    (x, u), (y, v) = parts(f, a), parts(f, b)
    truth = a.aval.update(dtype=np.dtype(bool))
    return f.op("select", [f.compare(x, y, "EQ"), f.compare(u, v, direction), f.compare(x, y, direction)], truth)


def parts(f: Function, x: Value) -> tuple[Value, Value]:
    """Emit the real and imaginary parts of a complex value."""
    aval = x.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype))
    return f.op("real", [x], aval), f.op("imag", [x], aval)


def lowest(dtype: Any) -> Any:
    """Return the neutral element of max."""
    return _end(dtype, -np.inf, "min")


def highest(dtype: Any) -> Any:
    """Return the neutral element of min."""
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


SUM: Reduction = operation("add"), lambda dtype: 0
PROD: Reduction = operation("multiply"), lambda dtype: 1
MAX: Reduction = extreme("maximum"), lowest
MIN: Reduction = extreme("minimum"), highest


def is_narrow(dtype: Any) -> bool:
    """Tell whether sums of `dtype` are accumulated in float32: floating point of fewer than 32 bits."""
    return dtypes.is_float(dtype) and dtypes.bits_of(dtype) < 32


# ---- reductions ----------------------------------------------------------------------------------------------


def reduce(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int], out: ShapedArray) -> Value:
    """Emit the reduction of x over `axes` by an associative operation whose neutral element is `initial`."""
    if f.platform == "cpu" and x.aval.size > SMALL:
        return f.op("reshape", [_in_steps(f, x, combine, initial, axes)], out)
    return _reduced(f, x, combine, initial, axes, out)


def _reduced(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int], out: Any = None) -> Value:
    """Emit one reduction; the axes are left out of the type, which `out` only changes in what else it says."""
    scalar = x.aval.update(shape=())
    region = f.combination(combine, scalar)
    out = x.aval.update(shape=tuple([n for i, n in enumerate(x.aval.shape) if i not in axes])) if out is None else out
    return f.op("reduce", [x, f.constant(initial, scalar)], out, f"dimensions = {hlo.array(axes)}", region)


def _reduction(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, *, axes: tuple[int, ...]) -> Any:
        return (reduce(f, x, combine, initial(x.aval.dtype), axes, outs[0]),)

    return rule


emit.rules[r.reduce_sum_p] = in_float32(_reduction(*SUM))
emit.rules[r.reduce_prod_p] = in_unsigned(in_float32(_reduction(*PROD)))
emit.rules[r.reduce_max_p] = _reduction(*MAX)
emit.rules[r.reduce_min_p] = _reduction(*MIN)
emit.rules[r.reduce_and_p] = _reduction(operation("and"), _all_ones)
emit.rules[r.reduce_or_p] = _reduction(operation("or"), lambda dtype: 0)
emit.rules[r.reduce_xor_p] = _reduction(operation("xor"), lambda dtype: 0)

# ---- reductions of many elements, in steps -------------------------------------------------------------------
#
# XLA's pass for this on the CPU, tree_reduction_rewriter, makes a tree of windows of 32 elements of every reduction.
# They are not fused with the operations before them, and along rows they are not vectorised; `compile.py` turns the
# pass off. Without it XLA computes rows as fast as it reads them, together with the operations before; columns too, if
# they are so short that it unrolls their loop. (With an exponential in it, a loop of 16 elements is unrolled, one of 20
# seldom not; one of 30 is not, and takes two to three times as long.) So the first step reduces groups, a thousand
# neighbours in a row or some 16 elements of a column. It leaves few elements, and these are reduced by windows, as XLA
# would fuse a second reduction with the first. The error of a sum grows with the length of the groups, not with the
# number of elements.

SMALL = 1024  # elements; a reduction of fewer is one operation
_ROW, _COLUMN = 1024, 32  # elements of a group, or of a window
_AT_ONCE = 131_072  # elements of a row without whole groups; the error of their sum is some ten roundings of float32
_SHORT = 64  # shorter rows are joined with the axis before, if that is reduced, too
_FEW = 16_384  # elements, of which windows of two groups take no longer than two steps, that is, kernels


def _in_steps(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int]) -> Value:
    """Emit the reduction of x over `axes`; some of these may be left, with one element."""
    x, axes = _long_rows(f, x, [axis for axis in axes if x.aval.shape[axis] > 1])
    if not axes:
        return x
    shape, last = x.aval.shape, axes[-1]
    most = _group(shape, last)
    if shape[last] > 2 * most if most == _ROW else shape[last] > most:
        return _in_groups(f, x, combine, initial, axes, most)
    taken = [last]
    for axis in axes[-2::-1]:
        if np.prod([shape[i] for i in taken]) * shape[axis] > most:
            break
        taken.insert(0, axis)
    rest = [axis - sum(i < axis for i in taken) for axis in axes if axis not in taken]
    return _by_windows(f, _reduced(f, x, combine, initial, taken), combine, initial, rest)


def _group(shape: Sequence[int], axis: int) -> int:
    """Return how many elements along an axis are a group: of neighbours in memory, or of a column."""
    return _ROW if all(n == 1 for n in shape[axis + 1 :]) else _COLUMN


def _long_rows(f: Function, x: Value, axes: list[int]) -> tuple[Value, list[int]]:
    """Join the last axes of x, while they are reduced and short."""
    shape = x.aval.shape
    while axes and shape[axes[-1]] < _SHORT and axes[-1] - 1 in axes and all(n == 1 for n in shape[axes[-1] + 1 :]):
        *axes, last = axes
        shape = (*shape[: last - 1], shape[last - 1] * shape[last])
    return (x if shape == x.aval.shape else f.op("reshape", [x], x.aval.update(shape=shape))), axes


def _in_groups(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int], most: int) -> Value:
    """Reduce groups along the last of `axes`, and then what is left of all; a rest of no whole group by itself.

    A rest is a second reader of x: XLA then stores what it computes by exp, sin or log, and takes 10 to 20 times as
    long. So a row that has no whole groups is reduced at once, unless it is very long.
    """
    axis, shape = axes[-1], x.aval.shape
    n = shape[axis]
    size = next((k for k in _sizes(most) if n % k == 0), most)
    if n % size and most == _ROW and n <= _AT_ONCE:
        return _by_windows(f, _reduced(f, x, combine, initial, [axis]), combine, initial, axes[:-1])
    whole = x if n % size == 0 else _cut(f, x, axis, 0, n - n % size)
    grouped = x.aval.update(shape=(*shape[:axis], n // size, size, *shape[axis + 1 :]))
    groups = _reduced(f, f.op("reshape", [whole], grouped), combine, initial, [axis + 1])
    result = _by_windows(f, groups, combine, initial, axes)
    if n % size == 0:
        return result
    rest = _in_steps(f, _cut(f, x, axis, n - n % size, n), combine, initial, axes)
    return combine(f, result, f.op("reshape", [rest], result.aval))


def _sizes(most: int) -> Sequence[int]:
    """List sizes of groups, the best first: unrolled loops, but not so short that the sums of groups need memory."""
    if most == _ROW:
        return *range(most, most // 4, -1), *range(most + 1, 2 * most + 1)
    return *range(16, 11, -1), *range(20, 16, -1), *range(11, 4, -1), *range(most, 20, -1)


def _by_windows(f: Function, x: Value, combine: Operation, initial: Any, axes: Sequence[int]) -> Value:
    """Reduce `axes` to one element each, by windows side by side."""
    scalar = x.aval.update(shape=())
    region = f.combination(combine, scalar)
    for axis in axes:
        while (n := x.aval.shape[axis]) > 1:
            most = _group(x.aval.shape, axis)
            most = 2 * most if n <= 2 * most and x.aval.size <= _FEW else most
            size, left = min(n, most), -(-n // most)
            window = _along(x, axis, size, 1)
            padding = [(0, left * size - n if i == axis else 0) for i in range(x.aval.ndim)]
            attributes = window_attributes(window, window, padding)
            x = f.op("reduce_window", [x, f.constant(initial, scalar)], _resized(x, axis, left), attributes, region)
    return x


# ---- positions of extremes -----------------------------------------------------------------------------------


def _position(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the rule of argmax or argmin: the first position of the extreme or a nan, by two vectorised reductions."""

    def rule(f: Function, outs: Any, x: Value, *, axis: int, index_dtype: Any) -> Any:
        kept = [i for i in range(x.aval.ndim) if i != axis]
        best = reduce(f, x, combine, initial(x.aval.dtype), (axis,), outs[0].update(dtype=x.aval.dtype))
        hit = f.compare(x, f.broadcast(best, x.aval.shape, kept), "EQ")
        if dtypes.is_float(x.aval.dtype):
            hit = f.op("or", [hit, f.compare(x, x, "NE")], hit.aval)
        index = x.aval.update(dtype=index_dtype, weak_type=False)
        places = f.op("iota", [], index, f"iota_dimension = {axis} : i64")
        last = f.constant(x.aval.shape[axis] - 1, index)
        first = f.op("select", [hit, places, last], index)
        return (reduce(f, first, operation("minimum"), highest(index_dtype), (axis,), outs[0]),)

    return rule


emit.rules[r.argmax_p] = _position(*MAX)
emit.rules[r.argmin_p] = _position(*MIN)

# ---- cumulative ----------------------------------------------------------------------------------------------


def window_attributes(window: Sequence[int], strides: Sequence[int], padding: Sequence[Sequence[int]]) -> str:
    """Print the attributes that all of StableHLO's windowed operations have."""
    return (
        f"window_dimensions = {hlo.array(window)}, window_strides = {hlo.array(strides)}, "
        f"padding = {padding_attribute(padding)}"
    )


def padding_attribute(padding: Sequence[Sequence[int]]) -> str:
    """Print padding, as in `dense<[[1, 0]]> : tensor<1x2xi64>`."""
    return f"dense<{[list(pair) for pair in padding] or ''}> : tensor<{len(padding)}x2xi64>"


def _cumulated(f: Function, x: Value, combine: Operation, initial: Any, axis: int, reverse: bool) -> Value:
    """Emit the running reductions along an axis.

    XLA's defect `window_over_one_padded_element` (docs/xla_defects.md) needs an axis of odd length: the last element of
    such an axis, in the order of the operation, is combined on its own.
    """
    n = x.aval.shape[axis]
    if n <= 1 or not x.aval.size:
        return x
    if n % 2 == 0:
        return _running_window(f, x, combine, initial, axis, reverse)
    at, end = (1, 0) if reverse else (0, n - 1)
    running = _running_window(f, _cut(f, x, axis, at, at + n - 1), combine, initial, axis, reverse)
    before = _cut(f, running, axis, 0, 1) if reverse else _cut(f, running, axis, n - 2, n - 1)
    last = combine(f, before, _cut(f, x, axis, end, end + 1))
    return _joined(f, last, running, axis) if reverse else _joined(f, running, last, axis)


def _running_window(f: Function, x: Value, combine: Operation, initial: Any, axis: int, reverse: bool) -> Value:
    """Emit running reductions as windows as long as the axis, a form that XLA runs as a prefix scan."""
    n, rank, scalar = x.aval.shape[axis], x.aval.ndim, x.aval.update(shape=())
    along = [i == axis for i in range(rank)]
    padding = [((0, n - 1) if reverse else (n - 1, 0)) if here else (0, 0) for here in along]
    attributes = window_attributes([n if here else 1 for here in along], [1] * rank, padding)
    region = f.combination(combine, scalar)
    return f.op("reduce_window", [x, f.constant(initial, scalar)], x.aval, attributes, region)


def _cumulative(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, *, axis: int, reverse: bool) -> Any:
        return (_cumulated(f, x, combine, initial(x.aval.dtype), axis, reverse),)

    return rule


emit.rules[r.cumsum_p] = in_float32(_cumulative(*SUM))
emit.rules[r.cumprod_p] = in_unsigned(in_float32(_cumulative(*PROD)))
emit.rules[r.cummax_p] = _cumulative(*MAX)
emit.rules[r.cummin_p] = _cumulative(*MIN)


def _cumlogsumexp(f: Function, outs: Any, x: Value, *, axis: int, reverse: bool) -> Any:
    """Emit y = m + log s, with the running maximum m and s[i] = s[i-1] exp(m[i-1] - m[i]) + exp(x[i] - m[i])."""
    aval = x.aval
    if not aval.shape[axis] or not aval.size:
        return (x,)
    if reverse:
        return (_reversed(f, _cumlogsumexp(f, outs, _reversed(f, x, axis), axis=axis, reverse=False)[0], axis),)
    top = _cumulated(f, x, extreme("maximum"), lowest(aval.dtype), axis, False)
    finite = f.op("is_finite", [top], aval.update(dtype=np.dtype(bool)))
    zero = f.constant(0, aval)
    m = f.op("select", [finite, top, zero], aval)
    fall = f.op("subtract", [_shifted(f, m, axis, 0), m], aval)
    decay = f.op("exponential", [f.op("minimum", [fall, zero], aval)], aval)
    scaled = f.op("exponential", [f.op("subtract", [x, m], aval)], aval)
    total = f.op("log", [_recurrence(f, decay, scaled, axis)[1]], aval)
    return (f.op("add", [m, total], aval),)


emit.rules[r.cumlogsumexp_p] = in_float32(_cumlogsumexp)

# ---- linear recurrences --------------------------------------------------------------------------------------


def _linear_recurrence(f: Function, outs: Any, decay: Value, x: Value, *, axis: int, reverse: bool) -> Any:
    if not x.aval.size:
        return (x,)
    if reverse:
        decay, x = _reversed(f, decay, axis), _reversed(f, x, axis)
    decay = _padded(f, _padded(f, decay, axis, -1, 0, 1), axis, 1, 0, 1)  # the first is not used: it may be inf or nan
    z = _recurrence(f, decay, x, axis)[1]
    return (_reversed(f, z, axis) if reverse else z,)


emit.rules[r.linear_recurrence_p] = in_unsigned(in_float32(_linear_recurrence))


def _recurrence(f: Function, decay: Value, x: Value, axis: int) -> tuple[Value, Value]:
    """Emit a linear recurrence as an associative scan: pairs of steps first, recursively, then the steps between them.

    Returns: cumulative decays, and z. The composition of steps z -> decay z + x is associative; there are 2 n in all.
    """
    n = x.aval.shape[axis]
    if n == 1:
        return decay, x
    even, odd = ([_cut(f, v, axis, first, n, 2) for v in (decay, x)] for first in (0, 1))
    pairs = _composed(f, [_cut(f, v, axis, 0, n // 2) for v in even], odd)
    odd = _recurrence(f, *pairs, axis)
    between = [_cut(f, v, axis, 0, (n - 1) // 2) for v in odd], [_cut(f, v, axis, 1, (n + 1) // 2) for v in even]
    first = [_cut(f, v, axis, 0, 1) for v in even]
    even = [_joined(f, a, b, axis) for a, b in zip(first, _composed(f, *between))]
    decay, x = (_interleaved(f, a, b, axis, n) for a, b in zip(even, odd))
    return decay, x


def _composed(f: Function, before: Sequence[Value], after: Sequence[Value]) -> tuple[Value, Value]:
    (a, u), (b, v) = before, after
    return f.op("multiply", [a, b], b.aval), f.op("add", [f.op("multiply", [b, u], v.aval), v], v.aval)


def _along(x: Value, axis: int, value: int, others: int) -> list[int]:
    return [value if i == axis else others for i in range(x.aval.ndim)]


def _resized(x: Value, axis: int, n: int) -> ShapedArray:
    return x.aval.update(shape=(*x.aval.shape[:axis], n, *x.aval.shape[axis + 1 :]))


def _cut(f: Function, x: Value, axis: int, start: int, limit: int, stride: int = 1) -> Value:
    """Slice the elements from `start` to `limit` of an axis."""
    limits = [limit if i == axis else n for i, n in enumerate(x.aval.shape)]
    return f.slice(x, _along(x, axis, start, 0), limits, _along(x, axis, stride, 1))


def _padded(f: Function, x: Value, axis: int, before: int, after: int, fill: float, interior: int = 0) -> Value:
    """Pad an axis of x with `fill` before, after and between its elements; negative numbers remove elements."""
    n = x.aval.shape[axis]
    attributes = (
        f"edge_padding_low = {hlo.array(_along(x, axis, before, 0))}, "
        f"edge_padding_high = {hlo.array(_along(x, axis, after, 0))}, "
        f"interior_padding = {hlo.array(_along(x, axis, interior, 0))}"
    )
    out = _resized(x, axis, before + n + max(n - 1, 0) * interior + after)
    return f.op("pad", [x, f.constant(fill, x.aval.update(shape=()))], out, attributes)


def _joined(f: Function, x: Value, y: Value, axis: int) -> Value:
    n = x.aval.shape[axis] + y.aval.shape[axis]
    return f.op("concatenate", [x, y], _resized(x, axis, n), f"dimension = {axis} : i64") if n > 1 else x


def _interleaved(f: Function, even: Value, odd: Value, axis: int, n: int) -> Value:
    """Interleave elements: even[0], odd[0], even[1], .., by adding padded arrays, which XLA fuses best."""
    left = _padded(f, even, axis, 0, (n + 1) % 2, 0, 1)
    return f.op("add", [left, _padded(f, odd, axis, 1, n % 2, 0, 1)], left.aval)


def _reversed(f: Function, x: Value, axis: int) -> Value:
    return f.op("reverse", [x], x.aval, f"dimensions = {hlo.array([axis])}")


def _shifted(f: Function, x: Value, axis: int, fill: float) -> Value:
    """Move elements by one place towards the end of an axis; `fill` comes first."""
    return _padded(f, x, axis, 1, -1, fill)
