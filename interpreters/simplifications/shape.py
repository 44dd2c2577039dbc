"""Operations that move elements: two in a row are one, and one that changes nothing is none."""

from typing import Any

from tapeless.interpreters import residual_provenance, simplify
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.operands import argsort


def _broadcast_in_dim(w: Writer, x: Atom, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Atom | None:
    if x.aval.shape == shape:
        return x if type(x) is not Literal or shape == () else None
    before = w.made_by(x, s.broadcast_in_dim_p)
    if before is not None and not _stretched(x.aval.shape, shape, dims):
        inner = before.params["dims"]
        return w.write(s.broadcast_in_dim_p, before.invars[0], shape=shape, dims=tuple([dims[d] for d in inner]))
    before = w.made_by(x, s.reshape_p)
    if before is not None and 1 not in before.invars[0].aval.shape and _ones_apart(x, before.invars[0]):
        kept = tuple([d for d, n in zip(dims, x.aval.shape) if n != 1])
        return w.write(s.broadcast_in_dim_p, before.invars[0], shape=shape, dims=kept)
    return None


def _stretched(inner: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    """Whether a broadcast repeats along an axis that is there already, with length 1."""
    return any(n != shape[d] for n, d in zip(inner, dims))


def _ones_apart(x: Atom, y: Atom) -> bool:
    """Whether shapes are the same but for axes of length 1."""
    return [n for n in x.aval.shape if n != 1] == [n for n in y.aval.shape if n != 1]


def _reshape(w: Writer, x: Atom, *, shape: tuple[int, ...]) -> Atom | None:
    if x.aval.shape == shape:
        return x
    before = w.made_by(x, s.reshape_p)
    if before is not None:
        return w.write(s.reshape_p, before.invars[0], shape=shape)
    before = w.made_by(x, s.broadcast_in_dim_p)
    if before is None:
        return None
    inner, dims = before.invars[0], before.params["dims"]
    if not inner.aval.shape:
        return w.write(s.broadcast_in_dim_p, inner, shape=shape, dims=())
    moved = after_ones(x.aval.shape, shape)
    if moved is None or 1 in inner.aval.shape:
        return None
    return w.write(s.broadcast_in_dim_p, inner, shape=shape, dims=tuple([moved[d] for d in dims]))


def after_ones(shape: tuple[int, ...], new: tuple[int, ...]) -> dict[int, int] | None:
    """Where axes are after a reshape that adds and drops axes of length 1; None if it does more."""
    before, after = ([d for d, n in enumerate(sizes) if n != 1] for sizes in (shape, new))
    same = [shape[d] for d in before] == [new[d] for d in after]
    return dict(zip(before, after)) if same else None


def _transpose(w: Writer, x: Atom, *, permutation: tuple[int, ...]) -> Atom | None:
    if permutation == tuple(range(len(permutation))):
        return x
    before = w.made_by(x, s.transpose_p)
    if before is not None:
        composed = tuple([before.params["permutation"][i] for i in permutation])
        return w.write(s.transpose_p, before.invars[0], permutation=composed)
    before = w.made_by(x, s.broadcast_in_dim_p)
    if before is None:
        return None
    dims = [permutation.index(d) for d in before.params["dims"]]
    inner = w.write(s.transpose_p, before.invars[0], permutation=argsort(dims))
    return w.write(s.broadcast_in_dim_p, inner, shape=_moved(x, permutation), dims=tuple(sorted(dims)))


def _moved(x: Atom, permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([x.aval.shape[i] for i in permutation])


def _rev(w: Writer, x: Atom, *, dimensions: tuple[int, ...]) -> Atom | None:
    if all(x.aval.shape[d] == 1 for d in dimensions):
        return x
    before = w.made_by(x, s.rev_p)
    if before is None:
        return None
    rest = tuple(sorted(set(dimensions) ^ set(before.params["dimensions"])))
    return w.write(s.rev_p, before.invars[0], dimensions=rest) if rest else before.invars[0]


def _concatenate(w: Writer, *xs: Atom, dimension: int) -> Atom | None:
    return xs[0] if len(xs) == 1 else None


def _pad(w: Writer, x: Atom, value: Atom, *, padding_config: Any) -> Atom | None:
    """Of nothing, it is none; that only cuts off, a slice."""
    if all(triple == (0, 0, 0) for triple in padding_config):
        return x
    if any(lo > 0 or hi > 0 or between for lo, hi, between in padding_config):
        return None
    starts = tuple([-lo for lo, _, _ in padding_config])
    limits = tuple([n + hi for n, (_, hi, _) in zip(x.aval.shape, padding_config)])
    return w.write(s.slice_p, x, start_indices=starts, limit_indices=limits, strides=(1,) * len(starts))


def _slice(w: Writer, x: Atom, *, start_indices: Any, limit_indices: Any, strides: Any) -> Atom | None:
    (aval,) = s.slice_p.type(
        (x.aval,), {"start_indices": start_indices, "limit_indices": limit_indices, "strides": strides}
    )
    if aval is x.aval:
        return x
    before = w.made_by(x, s.slice_p)
    if before is None or not aval.size:
        return None
    inner = before.params
    starts = [a + i * n for a, i, n in zip(inner["start_indices"], start_indices, inner["strides"])]
    steps = [i * n for i, n in zip(strides, inner["strides"])]
    limits = [start + step * (n - 1) + 1 for start, step, n in zip(starts, steps, aval.shape)]
    params = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(steps)}
    return w.write(s.slice_p, before.invars[0], **params)


def _split(w: Writer, x: Atom, *, sizes: tuple[int, ...], axis: int) -> Any:
    return (x,) if len(sizes) == 1 else None


simplify.rules[s.broadcast_in_dim_p] = _broadcast_in_dim
simplify.rules[s.reshape_p] = _reshape
simplify.rules[s.transpose_p] = _transpose
simplify.rules[s.rev_p] = _rev
simplify.rules[s.concatenate_p] = _concatenate
simplify.rules[s.pad_p] = _pad
simplify.rules[s.slice_p] = _slice
simplify.rules[s.split_p] = _split

residual_provenance.spreading[s.broadcast_in_dim_p] = residual_provenance.spreading[s.iota_p] = True
for _primitive in (s.reshape_p, s.transpose_p, s.rev_p, s.pad_p):
    residual_provenance.spreading[_primitive] = False
