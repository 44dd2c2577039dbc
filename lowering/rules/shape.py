"""Lowering of reshape, transpose, pad, slice and their like: one StableHLO operation each; split is slices."""

from collections.abc import Sequence
from typing import Any

from tapeless.lowering import emit, hlo, physical
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.physical import WordWriter, and_then, and_words
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.types import ShapedArray


def _broadcast_in_dim(f: Function, outs: Any, x: Value, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return (f.broadcast(x, shape, dims),)


def _iota(f: Function, outs: Any, *, dtype: Any, shape: tuple[int, ...], dimension: int) -> Any:
    return (f.op("iota", [], outs[0], f"iota_dimension = {dimension} : i64"),)


def _reshape(f: Function, outs: Any, x: Value, *, shape: tuple[int, ...]) -> Any:
    return (f.op("reshape", [x], outs[0]),)


def _transpose(f: Function, outs: Any, x: Value, *, permutation: tuple[int, ...]) -> Any:
    return (f.op("transpose", [x], outs[0], f"permutation = {hlo.array(permutation)}"),)


MOST_ROWS = 32  # LLVM errs at 24 rows, and not at 40, where it does not unroll the reduction (jaxlib 0.10.2)


def _rev(f: Function, outs: Any, x: Value, *, dimensions: tuple[int, ...]) -> Any:
    """Emit a reverse, of rows cut from a padded array by slices: docs/xla_defects.md, `reversed_rows`."""
    if f.platform == "cpu" and f.may_be_padded_rows(x):
        for d in [d for d in dimensions if x.aval.shape[d] <= MOST_ROWS]:
            x = _of_reversed_slices(f, x, d)
        dimensions = tuple([d for d in dimensions if x.aval.shape[d] > MOST_ROWS])
    return (f.op("reverse", [x], outs[0], f"dimensions = {hlo.array(dimensions)}") if dimensions else x,)


def _of_reversed_slices(f: Function, x: Value, d: int) -> Value:
    """Reverse an axis by concatenating its slices."""
    n = x.aval.shape[d]
    if n < 2:
        return x
    low, high = [0] * x.aval.ndim, list(x.aval.shape)
    parts = [f.slice(x, [*low[:d], k, *low[d + 1 :]], [*high[:d], k + 1, *high[d + 1 :]]) for k in reversed(range(n))]
    return f.op("concatenate", parts, x.aval, f"dimension = {d} : i64")


def _concatenate(f: Function, outs: Any, *xs: Value, dimension: int) -> Any:
    return (f.op("concatenate", xs, outs[0], f"dimension = {dimension} : i64"),)


def _pad(f: Function, outs: Any, x: Value, value: Value, *, padding_config: Any) -> Any:
    """Emit a pad, and negative padding as a slice of its own: docs/xla_defects.md, `window_over_less_than_nothing`."""
    if any(low < 0 or high < 0 for low, high, _ in padding_config):
        return (_cut(f, _padded(f, x, value, padding_config), padding_config),)
    return (_padded(f, x, value, padding_config),)


def _padded(f: Function, x: Value, value: Value, config: Sequence[Sequence[int]]) -> Value:
    """Pad x around and between its elements, by the padding that is not negative."""
    config = [(max(low, 0), max(high, 0), between) for low, high, between in config]
    shape = [n + low + high + max(n - 1, 0) * gap for n, (low, high, gap) in zip(x.aval.shape, config)]
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    sizes = zip(*config) if config else ((), (), ())
    attributes = ", ".join(f"{name} = {hlo.array(n)}" for name, n in zip(names, sizes))
    return f.op("pad", [x, value], x.aval.update(shape=tuple(shape)), attributes)


def _cut(f: Function, x: Value, config: Sequence[Sequence[int]]) -> Value:
    """Slice off the elements of x that negative padding removes."""
    starts = [max(-low, 0) for low, _, _ in config]
    return f.slice(x, starts, [n - max(-high, 0) for n, (_, high, _) in zip(x.aval.shape, config)])


def _slice(f: Function, outs: Any, x: Value, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return (f.slice(x, start_indices, limit_indices, strides),)


def _split(f: Function, outs: Any, x: Value, *, sizes: tuple[int, ...], axis: int) -> Any:
    def part(start: int, out: ShapedArray) -> Value:
        starts = [start if d == axis else 0 for d in range(out.ndim)]
        limits = [a + n for a, n in zip(starts, out.shape)]
        return f.slice(x, starts, limits)

    return [part(sum(sizes[:k]), out) for k, out in enumerate(outs)]


emit.rules[s.broadcast_in_dim_p] = _broadcast_in_dim
emit.rules[s.iota_p] = _iota
emit.rules[s.reshape_p] = _reshape
emit.rules[s.transpose_p] = _transpose
emit.rules[s.rev_p] = _rev
emit.rules[s.concatenate_p] = _concatenate
emit.rules[s.pad_p] = _pad
emit.rules[s.slice_p] = _slice
emit.rules[s.split_p] = _split

# ---- keys, as words along a last axis ------------------------------------------------------------------------


def _broadcast_words(w: WordWriter, x: Atom, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return w.write(s.broadcast_in_dim_p, x, shape=(*shape, x.aval.shape[-1]), dims=(*dims, len(shape)))


def _pad_words(w: WordWriter, x: Atom, value: Atom, *, padding_config: Any) -> Any:
    """Pad keys word by word, as a pad takes one scalar."""
    padded = [
        w.write(s.pad_p, *[_word(w, y, k) for y in (x, value)], padding_config=padding_config)[0]
        for k in range(x.aval.shape[-1])
    ]
    shape = (*padded[0].aval.shape, 1)
    return w.write(
        s.concatenate_p, *[w.write(s.reshape_p, y, shape=shape)[0] for y in padded], dimension=len(shape) - 1
    )


def _word(w: WordWriter, x: Atom, k: int) -> Atom:
    """Slice word k of every key."""
    shape = x.aval.shape[:-1]
    cut = {"start_indices": (*[0] * len(shape), k), "limit_indices": (*shape, k + 1), "strides": (1,) * x.aval.ndim}
    return w.write(s.reshape_p, w.write(s.slice_p, x, **cut)[0], shape=shape)[0]


physical.rules[s.broadcast_in_dim_p] = _broadcast_words
physical.rules[s.pad_p] = _pad_words
physical.moves(s.reshape_p, shape=and_words)
physical.moves(s.transpose_p, permutation=lambda axes, _: (*axes, len(axes)))
physical.moves(s.slice_p, start_indices=and_then(0), limit_indices=and_words, strides=and_then(1))
physical.moves(s.rev_p)
physical.moves(s.concatenate_p)
physical.moves(s.split_p)
