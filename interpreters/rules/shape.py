"""Rules of reshape, transpose, pad, slice and their like: tangents move along, cotangents move back.

The cotangent of a slice's operand is an `Update`: added in place to the operand's running cotangent, and padded only
if there is none.
"""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.transpose import Update, is_linear
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.elementwise import add, select_n
from tapeless.tracer.primitives.indexing import dynamic_update_slice
from tapeless.tracer.primitives.operands import argsort
from tapeless.tracer.primitives.reduction import reduce_sum
from tapeless.tracer.types import aval_of, holds_keys


def _later(axes: Sequence[int]) -> tuple[int, ...]:
    """Shift axes by one, behind a new first axis."""
    return tuple([d + 1 for d in axes])


# ---- creation and broadcasting -------------------------------------------------------------------------------


def _broadcast_in_dim_transpose(cts: Any, x: Any, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    kept = [d for d, n in zip(dims, x.aval.shape) if n == shape[d]]
    summed = reduce_sum(cts[0], [d for d in range(len(shape)) if d not in kept])
    return (s.reshape(summed, x.aval.shape),)


jvp.linear(s.broadcast_in_dim_p)
transpose.rules[s.broadcast_in_dim_p] = _broadcast_in_dim_transpose
vmap.front(s.broadcast_in_dim_p, lambda size, *, shape, dims: {"shape": (size, *shape), "dims": (0, *_later(dims))})

jvp.zero(s.iota_p)
vmap.rules[s.iota_p] = lambda size, args, dims, **params: (s.iota_p.bind(**params), [None])

# ---- the same elements in another shape ----------------------------------------------------------------------


for _primitive in (s.reshape_p, s.transpose_p, s.rev_p):
    jvp.linear(_primitive)
transpose.unary(s.reshape_p, lambda ct, x, *, shape: s.reshape(ct, x.aval.shape))
transpose.unary(s.transpose_p, lambda ct, x, *, permutation: s.transpose(ct, argsort(permutation)))
transpose.unary(s.rev_p, lambda ct, x, *, dimensions: s.rev(ct, dimensions))
vmap.front(s.reshape_p, lambda size, *, shape: {"shape": (size, *shape)})
vmap.front(s.rev_p, lambda size, *, dimensions: {"dimensions": _later(dimensions)})


def _transpose_vmap(size: int, args: Any, dims: Any, *, permutation: tuple[int, ...]) -> Any:
    """Batch by one transposition, which also moves the mapped axis to the front."""
    (d,) = dims
    return (s.transpose(args[0], (d, *[k + (k >= d) for k in permutation])),), [0]


vmap.rules[s.transpose_p] = _transpose_vmap

# ---- joining -------------------------------------------------------------------------------------------------


def _concatenate_transpose(cts: Any, *xs: Any, dimension: int) -> Any:
    """Split the cotangent among several linear operands; slice it for a single one among constants (zeros)."""
    sizes = [aval_of(x).shape[dimension] for x in xs]
    if sum(map(is_linear, xs)) > 1:
        parts: Sequence[Any] = s.split(cts[0], sizes, dimension)
        return tuple(part if is_linear(x) else None for part, x in zip(parts, xs))
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return tuple(
        s.slice_in_dim(cts[0], end - n, end, axis=dimension) if is_linear(x) else None
        for x, n, end in zip(xs, sizes, ends)
    )


jvp.linear(s.concatenate_p)
transpose.rules[s.concatenate_p] = _concatenate_transpose
vmap.front(s.concatenate_p, lambda size, *, dimension: {"dimension": dimension + 1})


def _pad_transpose(cts: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    ct = cts[0]
    return (
        _unpad(ct, padding_config) if is_linear(x) else None,
        _sum_of_padding(ct, aval_of(x).shape, padding_config) if is_linear(value) else None,
    )


def _unpad(ct: Any, config: Any) -> Any:
    """Slice out of ct the elements that come from pad's operand: undo low and high, then take each (interior+1)st."""
    whole = s.pad(ct, 0, [(-low, -high, 0) for low, high, _ in config])
    shape = aval_of(whole).shape
    return s.slice(whole, (0,) * len(shape), shape, [gap + 1 for _, _, gap in config])


def _sum_of_padding(ct: Any, shape: tuple[int, ...], config: Any) -> Any:
    """Sum the elements of ct that belong to the padding value, not to the operand of `shape`."""
    zero = s.full((), 0, aval_of(ct).dtype)
    return reduce_sum(select_n(_from_operand(shape, config), ct, zero), range(len(shape)))


def _from_operand(shape: tuple[int, ...], config: Any) -> Any:
    """Make the mask of the elements of a padded array that come from the operand."""
    return s.pad(s.full(shape, True), s.full((), False), config)


def _pad_vmap(size: int, args: Any, dims: Any, *, padding_config: Any) -> Any:
    """Batch a pad; a padding value that differs between examples is selected in the place of zeros."""
    x, value = args
    shape = vmap.example_shape(x, dims[0])
    x, config = vmap.materialized(x, dims[0], size), ((0, 0, 0), *padding_config)
    if dims[1] is None:
        return (s.pad(x, value, config),), [0]
    zero = Zero(aval_of(x).update(shape=(), weak_type=False))
    padded = s.pad(x, instantiate(zero) if holds_keys(zero.aval) else 0, config)
    mask = vmap.materialized(_from_operand(shape, padding_config), None, size)
    return (select_n(mask, s.broadcast_in_dim(value, aval_of(padded).shape, (0,)), padded),), [0]


jvp.linear(s.pad_p)
transpose.rules[s.pad_p] = _pad_transpose
vmap.rules[s.pad_p] = _pad_vmap

# ---- slicing -------------------------------------------------------------------------------------------------


def place(ct: Any, starts: Sequence[int], shape: tuple[int, ...]) -> Any:
    """Pad ct with zeros to `shape`, so that it begins at `starts`."""
    ends = [n - start - k for n, start, k in zip(shape, starts, aval_of(ct).shape)]
    return s.pad(ct, 0, [(start, end, 0) for start, end in zip(starts, ends)])


def add_at(whole: Any, ct: Any, starts: Sequence[int]) -> Any:
    """Add ct to the window of `whole` that begins at `starts`, in place."""
    limits = [start + k for start, k in zip(starts, aval_of(ct).shape)]
    window = s.slice(whole, starts, limits)
    return dynamic_update_slice(whole, add(window, ct), starts, allow_negative_indices=False)


def _slice_transpose(cts: Any, x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    """Transpose a slice: spread a strided cotangent to its window, then update, so the work is that of the window."""
    ct = cts[0]
    if any(step > 1 for step in strides):
        ct = s.pad(ct, 0, [(0, 0, step - 1) for step in strides])
    dense, onto = lambda: place(ct, start_indices, x.aval.shape), lambda whole: add_at(whole, ct, start_indices)
    return (Update(dense, onto, (ct, start_indices)),)


jvp.linear(s.slice_p)
transpose.rules[s.slice_p] = transpose.ReadingPart(_slice_transpose)
vmap.front(
    s.slice_p,
    lambda size, *, start_indices, limit_indices, strides: {
        "start_indices": (0, *start_indices),
        "limit_indices": (size, *limit_indices),
        "strides": (1, *strides),
    },
)


def _split_transpose(cts: Any, x: Any, *, sizes: tuple[int, ...], axis: int) -> Any:
    """Concatenate the cotangents of all parts; if some are symbolic zeros, return an `Update` by the others."""
    starts = [tuple(sum(sizes[:k]) if d == axis else 0 for d in range(x.aval.ndim)) for k in range(len(sizes))]
    parts = [(ct, start) for ct, start in zip(cts, starts) if type(ct) is not Zero]

    def dense() -> Any:
        if len(parts) == 1:
            return place(*parts[0], x.aval.shape)
        return s.concatenate([instantiate(ct) for ct in cts], axis)

    def onto(whole: Any) -> Any:
        for ct, start in parts:
            whole = add_at(whole, ct, start)
        return whole

    return (dense() if len(parts) == len(cts) else Update(dense, onto),)


jvp.linear(s.split_p)
transpose.rules[s.split_p] = transpose.ReadingPart(_split_transpose)
vmap.front(s.split_p, lambda size, *, sizes, axis: {"sizes": sizes, "axis": axis + 1})
