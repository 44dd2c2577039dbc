"""Reading and writing parts at computed positions, window by window."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzzing.oracle.elementwise import better
from tests.fuzzing.oracle.interpreter import Run, meaning
from tests.fuzzing.oracle.values import Values, kind_of, limits

# ---- one window ------------------------------------------------------------------------------------------------


def _window(shape: tuple[int, ...], starts: Any, sizes: Any) -> tuple[slice, ...]:
    """The window that begins at `starts`, moved inside."""
    inside = [max(0, min(int(start), n - k)) for start, n, k in zip(starts, shape, sizes)]
    return tuple(slice(start, start + k) for start, k in zip(inside, sizes))


@meaning("dynamic_slice")
def _dynamic_slice(run: Run, eqn: Any, x: Values, *starts: Values) -> Any:
    return x[_window(x.shape, starts, eqn.params["slice_sizes"])]


@meaning("dynamic_update_slice")
def _dynamic_update_slice(run: Run, eqn: Any, x: Values, update: Values, *starts: Values) -> Any:
    out = np.array(x, np.result_type(x, update))
    out[_window(x.shape, starts, update.shape)] = update
    return out


# ---- many windows ----------------------------------------------------------------------------------------------


class _Windows:
    """The windows of a gather or a scatter: for every place of the batch, where its elements are in the flat operand.

    `flat` is [places, elements]; `inside` says which windows are inside, or are moved there.
    """

    def __init__(self, indices: Values, shape: tuple[int, ...], sizes: tuple[int, ...], numbers: Any, clips: bool):
        starts, room = _starts(indices, len(shape), numbers), np.array(shape, int) - np.array(sizes, int)
        if clips:
            starts = np.clip(starts, 0, np.maximum(room, 0))
        self.inside: Values = np.all((starts >= 0) & (starts <= room), -1)
        strides = np.cumprod([1, *shape[:0:-1]], dtype=int)[::-1] if shape else np.zeros(0, int)
        offsets = sum((at * k for at, k in zip(np.indices(sizes), strides)), np.zeros(sizes, int))
        first = np.where(self.inside[:, None], starts, 0) @ strides
        self.flat: Values = first[:, None] + offsets.reshape(-1)


def _starts(indices: Values, rank: int, numbers: Any) -> Values:
    """Where the windows begin in the operand, [places, rank], if they may begin there or not."""
    _, _, index_map, batching, indices_batching = numbers
    batch = indices.shape[:-1]
    starts = np.zeros((*batch, rank), int)
    for k, axis in enumerate(index_map):
        starts[..., axis] = np.minimum(indices[..., k], np.iinfo(int).max // 2)  # unsigned ones may be larger
    for axis, batch_axis in zip(batching, indices_batching):
        starts[..., axis] = np.indices(batch)[batch_axis]
    return starts.reshape(int(np.prod(batch)), rank)


def _batch_first(rank: int, window_axes: tuple[int, ...]) -> list[int]:
    """The order of axes that puts those of the batch before those of windows."""
    return [d for d in range(rank) if d not in window_axes] + list(window_axes)


def _fill(x: Values, dtype: Any, value: Any) -> Any:
    """What a window outside reads as."""
    if value is not None:
        return value
    kind = kind_of(dtype)
    if kind in "fc":
        return np.nan
    if kind == "k":  # both words as those of unsigned integers
        return np.uint64(2**64 - 1)
    return True if kind == "b" else limits(dtype)[0 if kind == "i" else 1]


@meaning("gather")
def _gather(run: Run, eqn: Any, x: Values, indices: Values) -> Any:
    """Windows outside are moved inside but in mode "fill"; where the mode promises that there is none, too."""
    p, aval = eqn.params, eqn.outvars[0].aval
    numbers, sizes = p["dimension_numbers"], p["slice_sizes"]
    windows = _Windows(indices, x.shape, sizes, numbers, p["mode"].value != "fill")
    rows = np.full(windows.flat.shape, _fill(x, aval.dtype, p["fill_value"]), x.dtype)
    rows[windows.inside] = x.reshape(-1)[windows.flat[windows.inside]]
    order = _batch_first(len(aval.shape), numbers[0])
    return rows.reshape([aval.shape[d] for d in order]).transpose(np.argsort(order))


def _scattered(run: Run, eqn: Any, x: Values, indices: Values, updates: Values, write: "_Write") -> Values:
    """Updates applied as if one after the other. Those outside are dropped but in mode "clip"."""
    numbers = eqn.params["dimension_numbers"]
    single = (*numbers[1], *numbers[3])
    window_sizes = iter([updates.shape[d] for d in numbers[0]])
    sizes = tuple(1 if d in single else next(window_sizes) for d in range(x.ndim))
    out = np.array(x, np.result_type(x, updates)).reshape(-1)
    windows = _Windows(indices, x.shape, sizes, numbers, eqn.params["mode"].value == "clip")
    rows = updates.transpose(_batch_first(updates.ndim, numbers[0])).reshape(windows.flat.shape)
    write(out, windows.flat[windows.inside].reshape(-1), rows[windows.inside].reshape(-1))
    return out.reshape(x.shape)


_Write = Callable[[Values, Values, Values], None]  # of flat values, places in them, what is written there


def _write_last(out: Values, at: Values, new: Values) -> None:
    """Of several writes to one place the last; NumPy does not promise which of them stays."""
    places, last = np.unique(at[::-1], return_index=True)
    out[places] = new[::-1][last]


_COMBINE: dict[str, _Write] = {"scatter": _write_last, "scatter_add": np.add.at, "scatter_mul": np.multiply.at}


@meaning(*_COMBINE)
def _scatter(run: Run, eqn: Any, x: Values, indices: Values, updates: Values) -> Any:
    return _scattered(run, eqn, x, indices, updates, _COMBINE[eqn.primitive.name])


@meaning("scatter_min", "scatter_max")
def _scatter_extreme(run: Run, eqn: Any, x: Values, indices: Values, updates: Values) -> Any:
    name, complex_numbers = eqn.primitive.name, kind_of(eqn.outvars[0].aval.dtype) == "c"

    def combine(old: Values, new: Values) -> Values:
        return better(run, name, old, new, greater=name == "scatter_max", complex_numbers=complex_numbers)

    def write(out: Values, at: Values, new: Values) -> None:
        order = np.argsort(at, kind="stable")
        at, new = at[order], new[order].astype(out.dtype)
        step = 1
        while step < len(at) and (again := np.flatnonzero(at[step:] == at[:-step]) + step).size:
            new[again] = combine(new[again - step], new[again])  # of writes to one place: those up to this one
            step *= 2
        last = np.flatnonzero(np.append(at[1:] != at[:-1], True)[: len(at)])
        out[at[last]] = combine(out[at[last]], new[last])

    return _scattered(run, eqn, x, indices, updates, write)
