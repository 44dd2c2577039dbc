"""Reading and writing parts at computed positions, window by window."""

from collections.abc import Callable, Iterator
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

Place = tuple[int, ...]


def _starts(indices: Values, place: Place, rank: int, numbers: Any) -> list[int]:
    """Where the window of one place of the batch begins in the operand, if it may begin there or not."""
    _, _, index_map, batching, indices_batching = numbers
    starts = [0] * rank
    for axis, index in zip(index_map, indices[place].tolist()):
        starts[axis] = index
    for axis, batch_axis in zip(batching, indices_batching):
        starts[axis] = place[batch_axis]
    return starts


def _windows(
    indices: Values, shape: tuple[int, ...], sizes: tuple[int, ...], numbers: Any, clips: bool
) -> Iterator[tuple[Place, tuple[slice, ...] | None]]:
    """Every place of the batch, with its window, or None if that is not inside and is not to be moved there."""
    for place in np.ndindex(indices.shape[:-1]):
        starts = _starts(indices, place, len(shape), numbers)
        inside = all(0 <= start <= n - k for start, n, k in zip(starts, shape, sizes))
        yield place, _window(shape, starts, sizes) if inside or clips else None


def _placed(place: Place, rank: int, window_axes: tuple[int, ...]) -> tuple[Any, ...]:
    """Where the window of a place is among all windows."""
    batch = iter(place)
    return tuple(slice(None) if d in window_axes else next(batch) for d in range(rank))


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
    out = np.full(aval.shape, _fill(x, aval.dtype, p["fill_value"]), x.dtype)
    dropped = (*numbers[1], *numbers[3])
    kept = tuple(n for d, n in enumerate(sizes) if d not in dropped)
    for place, window in _windows(indices, x.shape, sizes, numbers, p["mode"].value != "fill"):
        if window is not None:
            out[_placed(place, out.ndim, numbers[0])] = x[window].reshape(kept)
    return out


def _scattered(run: Run, eqn: Any, x: Values, indices: Values, updates: Values, combine: Any) -> Values:
    """Updates applied one after the other. Those outside are dropped but in mode "clip"."""
    numbers = eqn.params["dimension_numbers"]
    single = (*numbers[1], *numbers[3])
    window_sizes = iter([updates.shape[d] for d in numbers[0]])
    sizes = tuple(1 if d in single else next(window_sizes) for d in range(x.ndim))
    out = np.array(x, np.result_type(x, updates))
    for place, window in _windows(indices, x.shape, sizes, numbers, eqn.params["mode"].value == "clip"):
        if window is not None:
            update = updates[_placed(place, updates.ndim, numbers[0])].reshape(sizes)
            out[window] = combine(out[window], update)
    return out


_COMBINE: dict[str, Callable[[Values, Values], Values]] = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_mul": np.multiply,
}


@meaning(*_COMBINE)
def _scatter(run: Run, eqn: Any, x: Values, indices: Values, updates: Values) -> Any:
    return _scattered(run, eqn, x, indices, updates, _COMBINE[eqn.primitive.name])


@meaning("scatter_min", "scatter_max")
def _scatter_extreme(run: Run, eqn: Any, x: Values, indices: Values, updates: Values) -> Any:
    name, complex_numbers = eqn.primitive.name, kind_of(eqn.outvars[0].aval.dtype) == "c"

    def combine(old: Values, new: Values) -> Values:
        return better(run, name, old, new, greater=name == "scatter_max", complex_numbers=complex_numbers)

    return _scattered(run, eqn, x, indices, updates, combine)
