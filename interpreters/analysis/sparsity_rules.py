"""Where results of primitives may differ from zero, by primitive: rows for the tables of `supports`."""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from operator import and_
from typing import Any

import numpy as np

from tapeless.interpreters.analysis import strict_form
from tapeless.interpreters.analysis.sparsity import LIMIT, Known, Support, binary, meanings, moves, supports
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives import bits, checkpoint, contraction, linalg, special, windows
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.dimension_numbers import DimensionNumbers, window_sizes
from tapeless.tracer.types import ShapedArray

# ---- what moves ----------------------------------------------------------------------------------------------


def _broadcast(eqn: Equation, x: Any) -> Sequence[Any]:
    shape = eqn.params["shape"]
    return (np.broadcast_to(_spread(x, eqn.params["dims"], len(shape)), shape),)


def _spread(x: Any, axes: Sequence[int], rank: int) -> Any:
    """`x`, its axes at these places among `rank`."""
    return x.reshape([x.shape[axes.index(d)] if d in axes else 1 for d in range(rank)])


def _slice(eqn: Equation, x: Any) -> Sequence[Any]:
    p = eqn.params
    return (x[tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"]))],)


def _pad(eqn: Equation, x: Any, value: Any) -> Sequence[Any]:
    """All that is not cut, written into what is filled."""
    out = np.full(eqn.outvars[0].aval.shape, value)
    ends, starts = [], []
    for n, (low, _, gap), size in zip(x.shape, eqn.params["padding_config"], out.shape):
        places = np.arange(n) * (gap + 1) + low
        inside = np.flatnonzero((places >= 0) & (places < size))
        starts.append(inside)
        ends.append(places[inside])
    out[np.ix_(*ends)] = x[np.ix_(*starts)]
    return (out,)


def _split(eqn: Equation, x: Any) -> Sequence[Any]:
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


moves[s.broadcast_in_dim_p] = _broadcast
moves[s.reshape_p] = lambda eqn, x: (x.reshape(eqn.params["shape"]),)
moves[s.transpose_p] = lambda eqn, x: (x.transpose(eqn.params["permutation"]),)
moves[s.rev_p] = lambda eqn, x: (np.flip(x, eqn.params["dimensions"]),)
moves[s.concatenate_p] = lambda eqn, *xs: (np.concatenate(xs, eqn.params["dimension"]),)
moves[s.slice_p], moves[s.pad_p], moves[s.split_p] = _slice, _pad, _split
for _primitive in (e.copy_p, e.stop_gradient_p, e.convert_element_type_p, e.real_p):
    moves[_primitive] = lambda eqn, x: (x,)
moves[checkpoint.name_p] = moves[checkpoint.move_p] = lambda eqn, x: (x,)
moves[checkpoint.optimization_barrier_p] = lambda eqn, *xs: xs
moves[strict_form.lit] = lambda eqn, x: (x,)
moves[strict_form.dup] = lambda eqn, x: (x, x)

# ---- what is known of constants ------------------------------------------------------------------------------


def _elementwise(primitive: Primitive, f: Callable[..., Any]) -> None:
    meanings[primitive] = lambda eqn, *xs: (f(*xs),)


def _remainder(x: Any, y: Any) -> Any:
    """Of the sign of x; by 0 it is x."""
    if not np.issubdtype(x.dtype, np.integer):
        return np.fmod(x, y)
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


def _chosen(which: Any, *cases: Any) -> Any:
    return np.choose(which.astype(np.int32), np.broadcast_arrays(*cases))


def _iota(eqn: Equation) -> Sequence[Any]:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    counted = np.arange(shape[axis]).astype(eqn.params["dtype"])
    return (np.broadcast_to(_spread(counted, (axis,), len(shape)), shape),)


meanings[s.iota_p] = _iota
for _primitive, _f in (
    (e.add_p, np.add), (e.sub_p, np.subtract), (e.mul_p, np.multiply), (e.neg_p, np.negative),
    (e.max_p, np.maximum), (e.min_p, np.minimum), (e.rem_p, _remainder), (e.select_n_p, _chosen),
    (e.eq_p, np.equal), (e.ne_p, np.not_equal), (e.lt_p, np.less), (e.le_p, np.less_equal), (e.gt_p, np.greater),
    (e.ge_p, np.greater_equal), (e.clamp_p, lambda low, x, high: np.clip(x, low, high)), (bits.not_p, np.invert),
    (bits.and_p, np.bitwise_and), (bits.or_p, np.bitwise_or), (bits.xor_p, np.bitwise_xor),
):  # fmt: skip
    _elementwise(_primitive, _f)

# ---- element by element --------------------------------------------------------------------------------------


def _choice(eqn: Equation, which: Known, *cases: Known) -> Support:
    """Of the case that is known to be chosen, or of any."""
    if which.value is not None:
        return _chosen(which.value, *[np.asarray(k.support) for k in cases])
    return _any(eqn, *cases)


def _any(eqn: Equation, *given: Known) -> Support:
    found: Support = False
    for k in given:
        found = found | k.support
    return found


def _both(eqn: Equation, x: Known, y: Known) -> Support:
    return x.support & y.support


def _first(eqn: Equation, x: Known, *others: Known) -> Support:
    return x.support


def _quotient(eqn: Equation, x: Known, y: Known) -> Support:
    """Integers are not always zero by zero."""
    return x.support if dtypes.is_inexact(x.aval.dtype) else True


def _power(eqn: Equation, x: Known) -> Support:
    return x.support if eqn.params["y"] > 0 else True


supports[e.select_n_p], supports[e.integer_pow_p], supports[e.div_p] = _choice, _power, _quotient
for _primitive in (e.mul_p, bits.and_p):
    supports[_primitive] = _both
for _primitive in (e.add_p, e.sub_p, e.max_p, e.min_p, e.complex_p, bits.or_p, bits.xor_p):
    supports[_primitive] = _any
# What is zero where its first operand is. 0 / 0 is the zero of a linear program, not a nan.
for _primitive in (
    e.neg_p, e.conj_p, e.imag_p, e.rem_p, e.sign_p, e.abs_p, e.floor_p, e.ceil_p, e.round_p, e.square_p,
    e.sqrt_p, e.cbrt_p, e.expm1_p, e.log1p_p, e.sin_p, e.tan_p, e.asin_p, e.atan_p, e.sinh_p, e.tanh_p, e.asinh_p,
    e.atanh_p, special.erf_p, special.erf_inv_p, bits.reduce_precision_p, bits.shift_left_p,
    bits.shift_right_logical_p, bits.shift_right_arithmetic_p, bits.population_count_p,
):  # fmt: skip
    supports[_primitive] = _first

# ---- where zeros and ones are made of such -------------------------------------------------------------------


def _never(k: Known) -> Any:
    """Where a value is zero."""
    return np.logical_not(k.support)


def _all_binary(*given: Known) -> Support:
    return reduce(and_, [k.binary for k in given])


def _sum_with_zero(eqn: Equation, x: Known, y: Known) -> Support:
    return (x.binary & _never(y)) | (y.binary & _never(x))


binary[e.mul_p] = lambda eqn, *given: _all_binary(*given)
binary[e.select_n_p] = lambda eqn, which, *cases: _all_binary(*cases)
binary[e.add_p] = _sum_with_zero
binary[e.sub_p] = lambda eqn, x, y: x.binary & _never(y)
for _primitive in (e.abs_p, e.square_p, e.copy_p):
    binary[_primitive] = lambda eqn, x: x.binary
# What is one at zero.
for _primitive in (e.exp_p, e.exp2_p, e.cos_p, e.cosh_p, special.erfc_p, special.bessel_i0e_p):
    binary[_primitive] = lambda eqn, x: _never(x)

# ---- what sums -----------------------------------------------------------------------------------------------


def _reduced(some: Any) -> Callable[..., Support]:
    def row(eqn: Equation, x: Known) -> Support:
        if not x.aval.size:  # the neutral element, whatever that is
            return True
        return x.support if isinstance(x.support, bool) else some(x.mask, eqn.params["axes"])

    return row


def running(eqn: Equation, x: Known) -> Any:
    """How many elements that may not be zero there are along the axis up to each, as an array."""
    axis, ahead = eqn.params["axis"], x.mask
    ahead = np.flip(ahead, axis) if eqn.params["reverse"] else ahead
    counts = np.cumsum(ahead, axis, dtype=np.int64)
    return np.flip(counts, axis) if eqn.params["reverse"] else counts


def _cumulated(eqn: Equation, x: Known) -> Support:
    return x.support if isinstance(x.support, bool) else running(eqn, x) > 0


def contracted(eqn: Equation, x: Known, y: Known) -> Any:
    """How many pairs that may not be zero meet in every result of a contraction, batch and free axes in a row each."""
    (of_x, of_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    left, right = _as_matrices(x, batch_x, of_x), _as_matrices(y, batch_y, of_y)
    return left @ right.transpose(0, 2, 1)


def _as_matrices(k: Known, batch: tuple[int, ...], contracted: tuple[int, ...]) -> Any:
    """[batch, free, contracted], of numbers that BLAS multiplies."""
    shape = k.aval.shape
    free = [d for d in range(len(shape)) if d not in (*batch, *contracted)]
    groups = [prod([shape[d] for d in axes]) for axes in (batch, free, contracted)]
    return k.mask.transpose([*batch, *free, *contracted]).reshape(groups).astype(np.float64)


def _sum(eqn: Equation, x: Known) -> Support:
    """Of no terms it is zero."""
    return x.aval.size > 0 and _reduced(np.any)(eqn, x)


def _dot(eqn: Equation, x: Known, y: Known) -> Support:
    if not x.aval.size or not y.aval.size:
        return False
    if isinstance(x.support, bool) and isinstance(y.support, bool):
        return x.support and y.support
    return (contracted(eqn, x, y) > 0).reshape(eqn.outvars[0].aval.shape)


def _zero_if(*positions: int) -> Callable[..., Support]:
    """Zero where one of these operands is zero everywhere."""
    return lambda eqn, *given: all(given[k].support is not False for k in positions)


supports[r.reduce_sum_p] = _sum
for _primitive in (r.reduce_max_p, r.reduce_min_p, r.reduce_or_p, r.reduce_xor_p):
    supports[_primitive] = _reduced(np.any)
for _primitive in (r.reduce_prod_p, r.reduce_and_p):
    supports[_primitive] = _reduced(np.all)
supports[r.cumsum_p], supports[contraction.dot_general_p] = _cumulated, _dot
for _primitive in (
    r.cumprod_p, windows.reduce_window_sum_p, windows.select_and_gather_add_p, windows.select_and_scatter_add_p,
):  # fmt: skip
    supports[_primitive] = _zero_if(0)
for _primitive in (r.linear_recurrence_p, linalg.triangular_solve_p):
    supports[_primitive] = _zero_if(1)
supports[contraction.conv_general_dilated_p] = _zero_if(0, 1)
supports[strict_form.lzero] = lambda eqn: False

# ---- what is read and written at places ----------------------------------------------------------------------


def _window(starts: Sequence[Known], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...] | None:
    """A window that is moved inside, if its place is known."""
    if any(k.value is None for k in starts):
        return None
    first = [min(max(int(k.value), 0), n - size) for k, n, size in zip(starts, shape, sizes)]
    return tuple([slice(a, a + size) for a, size in zip(first, sizes)])


def _dynamic_slice(eqn: Equation, x: Known, *starts: Known) -> Support:
    window = _window(starts, x.aval.shape, eqn.params["slice_sizes"])
    return x.support if isinstance(x.support, bool) else window is None or x.mask[window]


def _dynamic_update_slice(eqn: Equation, x: Known, update: Known, *starts: Known) -> Support:
    window = _window(starts, x.aval.shape, update.aval.shape)
    if window is None or x.aval.size > LIMIT:
        return x.support is not False or update.support is not False
    written = x.mask.copy()
    written[window] = update.mask
    return written


def places(operand: ShapedArray, indices: Known, read: ShapedArray, sizes: Sequence[int], params: Any) -> Any:
    """Where in the flat operand every element of the windows that are `read` or written is, as an array like them.

    Args:
      sizes: of a window, one per axis of the operand.
      params: those of the gather or scatter.
    Returns: -1 for what is outside; None if it is not known.
    Source: StableHLO spec, gather and scatter.
    """
    if indices.value is None or max(operand.size, read.size) > LIMIT:
        return None
    d = params["dimension_numbers"]
    grid = np.indices(read.shape, sparse=True)
    starts = _starts(operand, indices, grid, d)
    last = [n - size for n, size in zip(operand.shape, sizes)]
    if params["mode"] is i.GatherScatterMode.CLIP:
        starts = [np.clip(a, 0, n) for a, n in zip(starts, last)]
    inside = np.asarray(True)
    for a, n in zip(starts, last):
        inside = inside & (a >= 0) & (a <= n)
    flat, window = np.zeros((), np.int64), iter(d[0])
    for axis, (n, a) in enumerate(zip(operand.shape, starts)):
        within = 0 if axis in (*d[1], *d[3]) else grid[next(window)]
        flat = flat * n + np.where(inside, a, 0) + within
    return np.broadcast_to(np.where(inside, flat, -1), read.shape)


def _starts(operand: ShapedArray, indices: Known, grid: Any, d: DimensionNumbers) -> list[Any]:
    """Where windows begin, one array per axis of the operand."""
    batch = [axis for axis in range(len(grid)) if axis not in d[0]]
    found: list[Any] = [np.zeros((), np.int64)] * operand.ndim
    for k, axis in enumerate(d[2]):
        found[axis] = _spread(indices.value[..., k].astype(np.int64), batch, len(grid))
    for axis, k in zip(d[3], d[4]):
        found[axis] = grid[batch[k]]
    return found


def written(eqn: Equation, operand: Known, indices: Known, updates: Known) -> Any:
    """The places of updates."""
    sizes = window_sizes(operand.aval, updates.aval, eqn.params["dimension_numbers"])
    return places(operand.aval, indices, updates.aval, sizes, eqn.params)


def _gather(eqn: Equation, x: Known, indices: Known) -> Support:
    p = eqn.params
    fills = p["mode"] is i.GatherScatterMode.FILL_OR_DROP and p["fill_value"] != 0  # None is a nan
    if x.support is True:
        return True
    flat = places(x.aval, indices, eqn.outvars[0].aval, p["slice_sizes"], p)
    if flat is None or not x.aval.size:
        return x.support is not False or fills
    return np.where(flat >= 0, x.mask.reshape(-1)[flat], fills)


def _scatter(eqn: Equation, x: Known, indices: Known, updates: Known) -> Support:
    """What updates replace is theirs only if they do not overlap; what they are added to stays."""
    if x.support is True or updates.support is False:
        return x.support
    flat = written(eqn, x, indices, updates)
    if flat is None:
        return True
    found = x.mask.copy().reshape(-1)
    found[flat[(flat >= 0) & updates.mask]] = True
    return found.reshape(x.aval.shape)


supports[i.dynamic_slice_p], supports[i.dynamic_update_slice_p] = _dynamic_slice, _dynamic_update_slice
supports[i.gather_p] = _gather
for _primitive in (i.scatter_p, i.scatter_add_p):
    supports[_primitive] = _scatter
supports[i.scatter_mul_p] = _zero_if(0)
