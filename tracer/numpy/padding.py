"""`pad`: arrays with a margin, filled in one of NumPy's ways."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import reductions, statistics
from tapeless.tracer.numpy.indexing import getitem
from tapeless.tracer.numpy.promotion import array_operand, cast, fitted
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import shape as shapes
from tapeless.tracer.primitives.shape import broadcast_in_dim, concatenate

Widths = tuple[tuple[int, int], ...]
_READ = ("edge", "reflect", "symmetric", "wrap")
_COMPUTED = ("maximum", "mean", "minimum", "linear_ramp")


def pad(array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """The array with margins.

    Args:
      pad_width: lengths (before, after) for each axis, one pair for all, or one number for all; or {axis: pair}.
      mode: constant (with constant_values, 0 if not given), edge, reflect, symmetric, wrap, maximum, minimum, mean,
        linear_ramp (with end_values) or empty.
    Raises: ValueError for another mode, negative widths, or a width in the wrong form.
    """
    x = array_operand("pad", array)
    widths = _widths(x, pad_width)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.pop("constant_values", 0))
    if isinstance(mode, str) and mode in _READ:
        return _pad_read(x, widths, mode, **kwargs)
    if isinstance(mode, str) and mode in _COMPUTED:
        return _pad_computed(x, widths, mode, **kwargs)
    raise ValueError(f"pad: mode must be one of constant, empty, {', '.join(_READ + _COMPUTED)}, not {mode!r}.")


def _widths(x: Array, pad_width: Any) -> Widths:
    if isinstance(pad_width, dict):
        pairs = {a % x.ndim: (w, w) if isinstance(w, int) else tuple(w) for a, w in pad_width.items()}
        return tuple(pairs.get(a, (0, 0)) for a in range(x.ndim))
    try:
        pairs = np.broadcast_to(np.asarray(pad_width, np.int64), (x.ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"pad: widths {pad_width!r} are not a pair for each of the {x.ndim} axes of {x.aval}."
        ) from None
    if any(w < 0 for pair in pairs for w in pair):
        raise ValueError(f"pad: widths must not be negative: {pad_width!r}.")
    return tuple((a, b) for a, b in pairs)


def _pad_constant(x: Array, widths: Widths, values: Any) -> Array:
    if np.ndim(values) == 0:
        return shapes.pad(x, fitted(values, x.dtype), [(*w, 0) for w in widths])
    each = [list(row) for row in np.broadcast_to(np.asarray(values), (x.ndim, 2))]
    for axis, (width, (before, after)) in enumerate(zip(widths, each, strict=True)):
        for w, v in (((width[0], 0), before), ((0, width[1]), after)):
            config = [(0, 0, 0)] * x.ndim
            config[axis] = (*w, 0)
            x = shapes.pad(x, fitted(v, x.dtype), config)
    return x


def _pad_read(x: Array, widths: Widths, mode: str, reflect_type: str = "even") -> Array:
    """The margins are elements of the array: read by index, axis by axis."""
    if reflect_type != "even":
        raise NotImplementedError("pad: reflect_type must be 'even'.")
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        if not before + after:
            continue
        if not n:
            raise ValueError(f"pad: axis {axis} of {x.aval} is empty, so mode {mode!r} has nothing to read.")
        places = np.pad(np.arange(n), (before, after), mode=mode)  # type: ignore[call-overload]  # one of NumPy's, by its name
        x = getitem(x, (slice(None),) * axis + (places,))
    return x


def _pad_computed(x: Array, widths: Widths, mode: str, stat_length: Any = None, end_values: Any = 0) -> Array:
    if stat_length is not None:
        raise NotImplementedError("pad: stat_length is not supported.")
    ends = np.broadcast_to(np.asarray(end_values), (x.ndim, 2))
    for axis, width in enumerate(widths):
        before, after = (
            _ramp(x, axis, w, side, ends[axis][side]) if mode == "linear_ramp" else _statistic(x, axis, w, mode)
            for side, w in enumerate(width)
        )
        x = concatenate([before, x, after], axis)
    return x


_STATISTICS = {"maximum": reductions.max, "minimum": reductions.min, "mean": statistics.mean}


def _statistic(x: Array, axis: int, width: int, mode: str) -> Array:
    margin = cast(_STATISTICS[mode](x, axis, keepdims=True), x.dtype)
    return broadcast_in_dim(margin, _with_width(x, axis, width), tuple(range(x.ndim)))


def _ramp(x: Array, axis: int, width: int, side: int, end: Any) -> Array:
    """From the edge of the array, not included, to `end`."""
    edge = shapes.slice_in_dim(x, -1 if side else 0, None if side else 1, axis=axis)
    shape = _with_width(x, axis, width)
    share = np.arange(1, width + 1) if side else np.arange(width, 0, -1)
    share = broadcast_in_dim((share / max(width, 1)).astype(x.dtype), shape, (axis,))
    edge = broadcast_in_dim(edge, shape, tuple(range(x.ndim)))
    return lax.add(edge, lax.mul(lax.sub(cast(end, x.dtype), edge), share))


def _with_width(x: Array, axis: int, width: int) -> tuple[int, ...]:
    return (*x.shape[:axis], width, *x.shape[axis + 1 :])
