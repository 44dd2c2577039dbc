"""Windows that move over arrays: reductions in them, and the elements at the places of extremes."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, is_stepped, meaning
from tests.fuzzing.oracle.reductions import folded
from tests.fuzzing.oracle.values import Values


def positions(
    size: int, window: int, stride: int, padding: tuple[int, int], base_dilation: int = 1, window_dilation: int = 1
) -> tuple[Values, Values]:
    """Along one axis: the index of every element of every window, [windows, elements], and which of them are there."""
    length = (size - 1) * base_dilation + 1 if size else 0
    reach = (window - 1) * window_dilation + 1 if window else 0
    room = length + sum(padding) - reach
    n = room // stride + 1 if room >= 0 else 0
    at = np.arange(n)[:, None] * stride + np.arange(window)[None, :] * window_dilation - padding[0]
    there = (at >= 0) & (at < length) & (at % base_dilation == 0)
    return np.where(there, at // base_dilation, 0), there


def windows_of(x: Values, axes: list[tuple[Values, Values]], fill: Any) -> tuple[Values, Values]:
    """The elements of windows, [windows.., elements..], with `fill` where there is none, and which are there."""
    rank = x.ndim
    found, there = x, np.ones((), bool)
    for d, (at, yes) in enumerate(axes):
        # The axis becomes two: that of the windows in its place, that of the elements last.
        found = _taken(found, at, d, fill)
        shape = [1] * (2 * rank)
        shape[d], shape[rank + d] = yes.shape
        there = there & yes.reshape(shape)
    shape = (*[at.shape[0] for at, _ in axes], *[at.shape[1] for at, _ in axes])
    there = np.broadcast_to(there, shape)
    return np.where(there, found.reshape(shape), fill), there


def _taken(x: Values, at: Values, axis: int, fill: Any) -> Values:
    if not x.shape[axis]:  # all positions are beyond nothing
        shape = (*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])
        return np.moveaxis(np.full(shape, fill, np.result_type(x, fill)), axis + 1, -1)
    return np.moveaxis(np.take(x, at, axis), axis + 1, -1)


def _axes(shape: tuple[int, ...], p: Any) -> list[tuple[Values, Values]]:
    ones = (1,) * len(shape)
    window = p["window_dimensions"], p["window_strides"], p["padding"]
    return list(map(positions, shape, *window, p.get("base_dilation", ones), p.get("window_dilation", ones)))


def _rows(found: Values, rank: int) -> Values:
    """The elements of windows as one axis, in front, in row-major order."""
    shape = found.shape[:rank]
    n = int(np.prod(found.shape[rank:], dtype=int))
    return np.moveaxis(found.reshape(*shape, n), -1, 0)


@meaning("reduce_window_sum", "reduce_window_prod")
def _reduce_window(run: Run, eqn: Any, x: Values) -> Any:
    is_sum = eqn.primitive.name == "reduce_window_sum"
    found, _ = windows_of(x, _axes(x.shape, eqn.params), x.dtype.type(not is_sum))
    reduce = np.sum if is_sum else np.prod
    return reduce(_rows(found, x.ndim), axis=0, dtype=x.dtype)


@meaning("reduce_window_max", "reduce_window_min")
def _reduce_window_extreme(run: Run, eqn: Any, x: Values) -> Any:
    """What is not there takes no part, for it is below, or above, all."""
    name, dtype = eqn.primitive.name, eqn.invars[0].aval.dtype
    fill = folded(run, x.reshape(-1)[:0], name, dtype)
    found, _ = windows_of(x, _axes(x.shape, eqn.params), fill)
    return folded(run, _rows(found, x.ndim), name, dtype)


def _extremes(run: Run, eqn: Any, x: Values) -> tuple[Values, Values]:
    """For every window the flat position of the extreme in x, the first of ties, and whether there is any element."""
    axes = _axes(x.shape, eqn.params)
    sign = 1 if eqn.params["select"] == "ge" else -1
    seen = sign * run.compared(x, eqn.invars[1].aval.dtype)
    found, there = (_rows(v, x.ndim) for v in windows_of(seen, axes, -np.inf))
    index, _ = windows_of(np.arange(x.size).reshape(x.shape), axes, 0)
    if not len(found):
        return np.zeros(found.shape[1:], int), np.zeros(found.shape[1:], bool)
    best = np.argmax(np.where(there, found, -np.inf), 0)
    # Where all that is there is infinitely far below, the first that is there.
    top = np.take_along_axis(found, best[None], 0)[0]
    best = np.where(top == -np.inf, np.argmax(there, 0), best)
    if is_stepped(x):
        raise NotImplementedError("the places of extremes are constants of programs that are differentiated once.")
    return np.take_along_axis(_rows(index, x.ndim), best[None], 0)[0], np.any(there, axis=0, keepdims=True)[0]


@meaning("select_and_gather_add")
def _select_and_gather(run: Run, eqn: Any, tangents: Values, x: Values) -> Any:
    at, there = _extremes(run, eqn, x.real)
    return np.where(there, tangents.reshape(-1)[at] if x.size else 0, 0)


@meaning("select_and_scatter_add")
def _select_and_scatter(run: Run, eqn: Any, source: Values, x: Values) -> Any:
    at, there = _extremes(run, eqn, x.real)
    out = np.zeros(x.size, source.dtype)
    np.add.at(out, at[there], source[there])
    return out.reshape(x.shape)
