"""Rules of mask sinking: move the region where a result is read back to an operand, by primitive."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tapeless.interpreters import residual_provenance
from tapeless.interpreters.simplifications.masks import analysis, coefficients, regions
from tapeless.interpreters.simplifications.masks.positions import holds_somewhere
from tapeless.interpreters.simplifications.masks.regions import Mask, Region, mask_of
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.checkpoint import move_p, name_p
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.dimension_numbers import window_sizes
from tapeless.tracer.primitives.operands import argsort, without
from tapeless.tracer.primitives.reduction import cumsum_p, reduce_or_p, reduce_sum_p

Shape = tuple[int, ...]


def _moves(primitive: Primitive, move: Callable[[Writer, Equation, int, Mask], Mask | None]) -> None:
    """Register the rule of a primitive from its effect on one mask; None is everywhere."""

    def rule(w: Writer, eqn: Equation, region: Region | None, k: int) -> Region | None:
        return regions.moved(region, lambda mask: move(w, eqn, k, mask)) if region else region

    regions.rules[primitive] = rule


def _any(w: Writer, mask: Mask, shape: Shape, axes: tuple[int, ...]) -> Mask:
    """Reduce a mask by `or` along axes; undo a broadcast along them where there is one."""
    if not axes:
        return mask
    base, params = _repetition(w, mask)
    if not params or set(axes) & set(params["dims"]):
        return mask.moved(reduce_or_p, axes=axes)
    left = without(range(len(shape)), axes)
    dims = tuple([left.index(d) for d in params["dims"]])
    if not base.moves and base.which.aval.ndim == len(left):
        return base if base.which.aval.shape == without(shape, axes) else mask.moved(reduce_or_p, axes=axes)
    return base.moved(s.broadcast_in_dim_p, shape=without(shape, axes), dims=dims)


def _repetition(w: Writer, mask: Mask) -> tuple[Mask, Mapping[str, Any]]:
    """The mask that a mask repeats, and the parameters of that; itself and none if it repeats nothing."""
    last = mask.moves[-1:]
    if last and last[0].primitive is s.broadcast_in_dim_p:
        return mask._replace(moves=mask.moves[:-1]), dict(last[0].params)
    if not last and (made := w.made_by(mask.which, s.broadcast_in_dim_p)) is not None:
        return mask._replace(which=made.invars[0]), made.params
    return mask, {}


def _resized(w: Writer, mask: Mask, shape: Shape, axis: int, size: int) -> Mask | None:
    """A mask of this shape that is the same all along an axis, for another length of it; None if it is not."""
    base, params = _repetition(w, mask)
    dims = params.get("dims", (axis,))
    if axis in dims:
        if shape[axis] != 1:
            return None
        base, dims = _reshaped(mask, without(shape, (axis,))), without(range(len(shape)), (axis,))
    longer = tuple([size if d == axis else n for d, n in enumerate(shape)])
    return base.moved(s.broadcast_in_dim_p, shape=longer, dims=tuple(dims))


# ---- elementwise ---------------------------------------------------------------------------------------------


def _elementwise(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    shape = eqn.outvars[0].aval.shape
    return mask if eqn.invars[k].aval.shape == shape else _any(w, mask, shape, tuple(range(len(shape))))


def _select_n(w: Writer, eqn: Equation, region: Region | None, k: int) -> Region | None:
    chosen = region if region == regions.NOWHERE else regions.both(region, regions.of(mask_of(eqn, k - 1)))
    return regions.moved(chosen, lambda mask: _elementwise(w, eqn, k, mask))


for _primitive in (e.neg_p, e.add_p, e.sub_p, e.convert_element_type_p, e.copy_p, name_p, move_p):
    _moves(_primitive, _elementwise)
for _primitive in (e.real_p, e.imag_p, e.conj_p, e.complex_p, e.mul_p, e.div_p):
    _moves(_primitive, _elementwise)
regions.rules[e.select_n_p] = _select_n
analysis.elsewhere[e.mul_p] = analysis.elsewhere[dot_general_p] = 0.0
analysis.elsewhere[e.div_p] = 1.0

# ---- movement ------------------------------------------------------------------------------------------------


def _broadcast_in_dim(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    x, shape, dims = eqn.invars[0].aval, eqn.params["shape"], eqn.params["dims"]
    axes = tuple([d for d in range(len(shape)) if d not in dims or x.shape[dims.index(d)] != shape[d]])
    found = _any(w, mask, shape, axes)
    return found if len(axes) + x.ndim == len(shape) else _reshaped(found, x.shape)


def _reshaped(mask: Mask, shape: Shape) -> Mask:
    if mask.moves and mask.moves[-1].primitive is s.reshape_p:
        mask = mask._replace(moves=mask.moves[:-1])
    if not mask.moves and mask.which.aval.shape == shape:
        return mask
    if mask.moves and mask.moves[-1].primitive is s.broadcast_in_dim_p:
        before, dims = (dict(mask.moves[-1].params)[name] for name in ("shape", "dims"))
        if (axes := _kept_axes(before, dims, shape)) is not None:
            return mask._replace(moves=mask.moves[:-1]).moved(s.broadcast_in_dim_p, shape=shape, dims=axes)
    return mask.moved(s.reshape_p, shape=shape)


def _kept_axes(before: Shape, axes: Sequence[int], after: Shape) -> tuple[int, ...] | None:
    """Map axes through a reshape that only adds or drops axes of length 1; None for any other reshape."""
    if not axes:
        return ()
    old, new = ([d for d, n in enumerate(shape) if n != 1] for shape in (before, after))
    if [before[d] for d in old] != [after[d] for d in new] or not set(axes) <= set(old):
        return None
    return tuple([new[old.index(d)] for d in axes])


def _transpose(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    permutation = eqn.params["permutation"]
    return mask.moved(s.transpose_p, permutation=tuple([permutation.index(d) for d in range(len(permutation))]))


def _slice(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    """Pad the mask of a slice with false: nothing outside the slice is read."""
    if not eqn.outvars[0].aval.size:
        return None
    sizes = zip(eqn.params["start_indices"], eqn.params["strides"], eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape)
    config = tuple([(low, n - low - (m - 1) * step - 1, step - 1) for low, step, m, n in sizes])
    return mask.moved(s.pad_p, padding_config=config)


def _split(w: Writer, eqn: Equation, out: Sequence[Region | None]) -> Region | None:
    """Join the regions of the parts of a split; a mask that is constant along the axis is taken as it is."""
    axis, size = eqn.params["axis"], eqn.invars[0].aval.shape[eqn.params["axis"]]
    found = [_all_along(w, region, v.aval.shape, axis, size) for region, v in zip(out, eqn.outvars, strict=True)]
    if found[0] is not None and all(region == found[0] for region in found):
        return found[0]
    parts = [regions.rules[s.slice_p](w, one, region, 0) for one, region in zip(_slices(eqn), out, strict=True)]
    return reduce(regions.either, parts)


def _all_along(w: Writer, region: Region | None, shape: Shape, axis: int, size: int) -> Region | None:
    """A region whose masks are all the same along an axis, for another length of it; None for another."""
    resized = {mask: _resized(w, mask, shape, axis, size) for alternative in region or () for mask in alternative}
    return regions.moved(region, resized.__getitem__) if all(resized.values()) else None


def _slices(eqn: Equation) -> list[Equation]:
    """Write a split as slices."""
    shape, axis, (x,) = eqn.invars[0].aval.shape, eqn.params["axis"], eqn.invars
    ends, found = np.cumsum(eqn.params["sizes"]).tolist(), []
    for v, size, end in zip(eqn.outvars, eqn.params["sizes"], ends, strict=True):
        starts = tuple([end - size if d == axis else 0 for d in range(len(shape))])
        limits = tuple([end if d == axis else n for d, n in enumerate(shape)])
        params = {"start_indices": starts, "limit_indices": limits, "strides": (1,) * len(shape)}
        found.append(Equation(s.slice_p, [x], params, [v], eqn.source))
    return found


def _pad(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    shape, config = eqn.invars[0].aval.shape, eqn.params["padding_config"]
    if k or not eqn.invars[0].aval.size or any(low < 0 or high < 0 for low, high, _ in config):
        return None
    starts, strides = tuple([low for low, _, _ in config]), tuple([gap + 1 for _, _, gap in config])
    limits = tuple([a + (n - 1) * step + 1 for a, n, step in zip(starts, shape, strides)])
    return mask.moved(s.slice_p, start_indices=starts, limit_indices=limits, strides=strides)


def _concatenate(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    shape, d = eqn.invars[k].aval.shape, eqn.params["dimension"]
    if (resized := _resized(w, mask, eqn.outvars[0].aval.shape, d, shape[d])) is not None:
        return resized
    first = sum(x.aval.shape[d] for x in eqn.invars[:k])
    starts = tuple([first if axis == d else 0 for axis in range(len(shape))])
    limits = tuple([a + n for a, n in zip(starts, shape)])
    return _cut(mask, eqn.outvars[0].aval.shape, starts, limits)


def _cut(mask: Mask, shape: Shape, starts: Shape, limits: Shape) -> Mask:
    """Slice a mask of this shape; undo a pad, or return a mask that holds nowhere, where the slice allows it."""
    last = mask.moves[-1:]
    if last and last[0].primitive is s.pad_p:
        config = dict(last[0].params)["padding_config"]
        first, end = [low for low, _, _ in config], [n - high for (_, high, _), n in zip(config, shape)]
        if any(limit <= a or b <= start for start, limit, a, b in zip(starts, limits, first, end)):
            return regions.NEVER
        if (first, end) == ([*starts], [*limits]) and not any(gap for _, _, gap in config):
            return mask._replace(moves=mask.moves[:-1])
    return mask.moved(s.slice_p, start_indices=starts, limit_indices=limits, strides=(1,) * len(shape))


_moves(s.broadcast_in_dim_p, _broadcast_in_dim)
_moves(s.reshape_p, lambda w, eqn, k, mask: _reshaped(mask, eqn.invars[0].aval.shape))
_moves(s.transpose_p, _transpose)
_moves(s.rev_p, lambda w, eqn, k, mask: mask.moved(s.rev_p, **eqn.params))
_moves(s.slice_p, _slice)
_moves(s.pad_p, _pad)
analysis.of_several[s.split_p] = _split
_moves(s.concatenate_p, _concatenate)


def _padded(w: Writer, x: Atom, *, padding_config: Any) -> Atom:
    return w.write(s.pad_p, x, literal(False, x.aval), padding_config=padding_config)


coefficients.of_truth[s.pad_p] = _padded

# ---- sums ----------------------------------------------------------------------------------------------------


def _reduce_sum(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    shape = eqn.invars[0].aval.shape
    kept = tuple([d for d in range(len(shape)) if d not in eqn.params["axes"]])
    return mask.moved(s.broadcast_in_dim_p, shape=shape, dims=kept)


def _dot_general(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    """Reduce a mask of [batch, free of x, free of y] by `or` along the free axes of the other operand."""
    contracting, batch = eqn.params["dimension_numbers"]
    free = [[d for d in range(x.aval.ndim) if d not in (*c, *b)] for x, c, b in zip(eqn.invars, contracting, batch)]
    shape, first = eqn.outvars[0].aval.shape, len(batch[0]) + (0 if k else len(free[0]))
    other = tuple(range(first, first + len(free[1 - k])))
    found, own = _any(w, mask, shape, other), [*batch[k], *free[k]]
    order = argsort(own)
    if order != tuple(range(len(own))):
        found = found.moved(s.transpose_p, permutation=order)
    return found.moved(s.broadcast_in_dim_p, shape=eqn.invars[k].aval.shape, dims=tuple(sorted(own)))


def _cumsum(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask:
    """An element is in all sums from its own on, and matters where one of these does."""
    return mask.moved(cumsum_p, axis=eqn.params["axis"], reverse=not eqn.params["reverse"])


def _any_so_far(w: Writer, x: Atom, **along: Any) -> Atom:
    ones = _ones(w, x)
    return w.write(e.gt_p, w.write(cumsum_p, ones, **along), literal(0, ones.aval))


def _ones(w: Writer, x: Atom) -> Atom:
    """A mask as numbers, to be counted."""
    return w.write(e.convert_element_type_p, x, dtype=np.dtype(np.int32), weak_type=False)


def _somewhere(w: Writer, x: Atom, *, axes: tuple[int, ...]) -> Atom:
    """Reduce a mask by `or` along axes; brackets of positions may say that it holds for all elements, or for none."""
    shape, made = x.aval.shape, w.made_by(x, s.broadcast_in_dim_p)
    if made is not None and not {*axes} & {*made.params["dims"]} and all(shape[a] for a in axes):
        left = without(range(len(shape)), axes)
        dims = tuple([left.index(d) for d in made.params["dims"]])
        return w.write(s.broadcast_in_dim_p, made.invars[0], shape=without(shape, axes), dims=dims)
    holds = holds_somewhere(x, axes, w.definition)
    if holds is None:
        return w.write(reduce_or_p, x, axes=axes)
    return filled(w, holds, x.aval.update(shape=without(shape, axes)))


_moves(reduce_sum_p, _reduce_sum)
_moves(cumsum_p, _cumsum)
_moves(dot_general_p, _dot_general)
coefficients.of_truth[cumsum_p] = _any_so_far
coefficients.of_truth[reduce_or_p] = _somewhere

# ---- indexing ------------------------------------------------------------------------------------------------
# What is read here and there matters where some reader does: the masks of the readers are counted there.


def _dynamic_slice(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    x, *starts = eqn.invars
    return mask.moved(i.dynamic_update_slice_p, *starts, shape=x.aval.shape)


def _dynamic_update_slice(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    _, update, *starts = eqn.invars
    return mask if k == 0 else mask.moved(i.dynamic_slice_p, *starts, slice_sizes=update.aval.shape)


def _gather(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    kept = {name: value for name, value in eqn.params.items() if name not in ("slice_sizes", "fill_value")}
    kept["dimension_numbers"] = i.ScatterDimensionNumbers(*kept["dimension_numbers"])
    return mask.moved(i.scatter_add_p, eqn.invars[1], shape=eqn.invars[0].aval.shape, **kept)


def _scatter(w: Writer, eqn: Equation, k: int, mask: Mask) -> Mask | None:
    operand, indices, updates = eqn.invars
    if k == 0 or not updates.aval.size:
        return mask if k == 0 else None
    sizes = window_sizes(operand.aval, updates.aval, eqn.params["dimension_numbers"])
    numbers = i.GatherDimensionNumbers(*eqn.params["dimension_numbers"])
    how = {**eqn.params, "dimension_numbers": numbers, "slice_sizes": sizes, "fill_value": False}
    return mask.moved(i.gather_p, indices, **how)


def _written(w: Writer, x: Atom, *starts: Atom, shape: Shape) -> Atom:
    nowhere = w.write(s.broadcast_in_dim_p, literal(False, x.aval), shape=shape, dims=())
    return w.write(i.dynamic_update_slice_p, nowhere, x, *starts)


def _counted(w: Writer, x: Atom, indices: Atom, *, shape: Shape, **how: Any) -> Atom:
    ones = _ones(w, x)
    none = w.write(s.broadcast_in_dim_p, literal(0, ones.aval), shape=shape, dims=())
    return w.write(e.gt_p, w.write(i.scatter_add_p, none, indices, ones, **how), literal(0, ones.aval))


_moves(i.dynamic_slice_p, _dynamic_slice)
_moves(i.dynamic_update_slice_p, _dynamic_update_slice)
_moves(i.gather_p, _gather)
_moves(i.scatter_add_p, _scatter)
_moves(i.scatter_p, _scatter)
coefficients.of_truth[i.dynamic_update_slice_p] = _written
coefficients.of_truth[i.scatter_add_p] = _counted
coefficients.of_truth[i.gather_p] = lambda w, *xs, **how: w.write(i.gather_p, *xs, **how)

# ---- what masks are made of ----------------------------------------------------------------------------------

for _primitive in (and_p, or_p, not_p, reduce_or_p):
    residual_provenance.spreading[_primitive] = False
