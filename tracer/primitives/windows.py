"""Sliding windows: sums and extremes over windows, and operations for the derivative of a maximum.

A window of n elements, `dilation` apart, moves by `stride` over an axis that is first dilated and padded.
Source: StableHLO spec, reduce_window and select_and_scatter.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive, Tracer
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.kinds import NUMERIC, ORDERED, joint_type
from tapeless.tracer.primitives.operands import exact_integer, shape_of
from tapeless.tracer.types import ShapedArray, aval_of

Padding = tuple[tuple[int, int], ...]

# ---- sizes ---------------------------------------------------------------------------------------------------


def dilate_size(size: int, dilation: int) -> int:
    """Return the length of an axis with `dilation - 1` holes between its elements."""
    return (size - 1) * dilation + 1 if size else 0


def count(size: int, window: int, stride: int, padding: tuple[int, int], base_dilation: int, dilation: int) -> int:
    """Count the positions of a window along an axis of length `size`."""
    room = dilate_size(size, base_dilation) + sum(padding) - dilate_size(window, dilation)
    return room // stride + 1 if room >= 0 else 0


def explicit_padding(
    name: str,
    padding: Any,
    shape: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
) -> Padding:
    """Convert padding to (before, after) for each axis; the window is dilated.

    "VALID" pads nothing; with "SAME" a window starts at every stride-th element, the padding shared between both
    ends, the odd one after, or before if "SAME_LOWER".
    Raises: ValueError for other strings, or if there is not a pair per axis; TypeError for items that are no pairs.
    """
    if isinstance(padding, str):
        return _named_padding(name, padding.upper(), shape, window, strides)
    if not isinstance(padding, Iterable) or not all(isinstance(pair, Iterable) for pair in padding):
        raise TypeError(
            f"{find_called(name)}: padding is 'SAME', 'SAME_LOWER', 'VALID' or a pair (before, after) for each of the "
            f"{len(shape)} axes of the windows, not {padding!r}."
        )
    pairs = tuple(tuple(exact_integer(v, f"{name}: padding") for v in pair) for pair in padding)
    if len(pairs) != len(shape) or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{find_called(name)}: padding {pairs} is not a pair for each of the {len(shape)} axes of the windows."
        )
    return tuple((before, after) for before, after in pairs)


def _named_padding(
    name: str, kind: str, shape: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> Padding:
    if kind == "VALID":
        return ((0, 0),) * len(shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"{find_called(name)}: padding is 'SAME', 'SAME_LOWER', 'VALID' or pairs of integers, not {kind!r}."
        )
    total = [max(0, (-(-n // s) - 1) * s + w - n) for n, w, s in zip(shape, window, strides)]
    if kind == "SAME":
        return tuple((t // 2, t - t // 2) for t in total)
    return tuple((t - t // 2, t // 2) for t in total)


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Write "VALID", "SAME" or "SAME_LOWER" as (before, after) for each axis.

    Raises: ValueError for another word, or if there are not as many windows and positive strides as axes.
    """
    in_shape = [exact_integer(n, "padtype_to_pads: in_shape") for n in in_shape]
    window_shape = [exact_integer(n, "padtype_to_pads: window_shape") for n in window_shape]
    strides = per_axis("padtype_to_pads", "window_strides", window_strides, len(in_shape))
    if len(window_shape) != len(in_shape):
        raise ValueError(f"padtype_to_pads: {tuple(window_shape)} is not a window of the shape {tuple(in_shape)}.")
    return list(explicit_padding("padtype_to_pads", padding, in_shape, window_shape, strides))


def per_axis(name: str, what: str, values: Any, n: int) -> tuple[int, ...]:
    """Return one positive integer for each of `n` axes, ones if None. Raises: TypeError, ValueError naming `what`."""
    if not isinstance(values, (Iterable, type(None))):
        example = (1,) * (n - 2) + (values, values) if name.startswith("reduce_window") and n > 2 else (values,) * n
        wanted = f"{what} must be integers, one for each of {n} axes, such as {example}"
        raise TypeError(f"{find_called(name)}: {wanted}, not the number {values!r}.")
    exact = (1,) * n if values is None else tuple(exact_integer(v, f"{name}: {what}") for v in values)
    if len(exact) != n:
        raise ValueError(f"{find_called(name)}: {what} must be integers, one for each of {n} axes, not {exact}.")
    if any(v < 1 for v in exact):
        raise ValueError(f"{find_called(name)}: {what} {exact} must be positive, one for each of {n} axes.")
    return exact


def window_params(
    name: str,
    shape: tuple[int, ...],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[Sequence[int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> dict[str, Any]:
    """Make the normalised params of a window."""
    n = len(shape)
    window = per_axis(name, "window_dimensions", window_dimensions, n)
    strides = per_axis(name, "window_strides", window_strides, n)
    base = per_axis(name, "base_dilation", base_dilation, n)
    dilation = per_axis(name, "window_dilation", window_dilation, n)
    # "SAME" counts the elements before zeros come between them, as JAX's does
    pairs = explicit_padding(name, padding, shape, [*map(dilate_size, window, dilation)], strides)
    return {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": pairs,
        "base_dilation": base,
        "window_dilation": dilation,
    }


def _windowed_type(
    x: ShapedArray,
    *,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: Padding,
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> ShapedArray:
    sizes = map(count, x.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    return x.update(shape=tuple(sizes))


# ---- reductions in windows -----------------------------------------------------------------------------------


def reduce_window(
    operand: ArrayLike,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Reduce windows of `operand` by `computation`: lax.add, lax.mul, lax.max or lax.min.

    Args:
      init_value: [] a number or an array, which takes part once in every window.
      others: as for `reduce_window_sum`.
    Raises: ValueError for another computation; TypeError for an init_value that is no scalar, or of another dtype.
    """
    if computation not in REDUCTIONS:
        raise ValueError(
            f"reduce_window: the computation is lax.add, lax.mul, lax.max or lax.min, not {computation!r}."
        )
    reduce, neutral = REDUCTIONS[computation]
    initial, given = aval_of(init_value), aval_of(operand)
    if initial.shape or not (initial.weak_type or initial.dtype == given.dtype):
        raise TypeError(f"reduce_window: init_value must be a scalar of {given.dtype}, as operand is, not {initial}.")
    out = reduce(operand, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    changes_nothing = not isinstance(init_value, Tracer) and bool(init_value == neutral)
    return out if changes_nothing else computation(out, init_value)


def reduce_window_sum(
    operand: ArrayLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Sum the elements in each window of `operand`.

    Args:
      operand: [n..], numbers.
      window_dimensions: lengths of the window, one per axis.
      window_strides: by how much it moves; 1 if None.
      padding: "VALID", "SAME", "SAME_LOWER", or (before, after) per axis, which may be negative; zeros are added.
        "SAME" is for the array before `base_dilation`, as in JAX.
      base_dilation: distance of the elements of `operand` from each other; 1 if None.
      window_dilation: distance of the elements of the window from each other; 1 if None.
    Returns: an element for each position of the window, dtype of operand.
    Raises: ValueError if these are not one per axis, or not positive; TypeError for booleans.
    Source: StableHLO spec, reduce_window.
    """
    window = window_dimensions, window_strides, padding, base_dilation, window_dilation
    return reduce_window_sum_p.bind(operand, **window_params("reduce_window_sum", shape_of(operand), *window))[0]


def reduce_window_prod(
    operand: ArrayLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Multiply the elements in each window of `operand`, padded with ones: see `reduce_window_sum`."""
    window = window_dimensions, window_strides, padding, base_dilation, window_dilation
    return reduce_window_prod_p.bind(operand, **window_params("reduce_window_prod", shape_of(operand), *window))[0]


def reduce_window_max(
    operand: ArrayLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Compute the maximum in each window of `operand`, real, padded with the least value: see `reduce_window_sum`.

    The first of ties, in row-major order, has the derivative.
    """
    window = window_dimensions, window_strides, padding, base_dilation, window_dilation
    return reduce_window_max_p.bind(operand, **window_params("reduce_window_max", shape_of(operand), *window))[0]


def reduce_window_min(
    operand: ArrayLike,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Compute the minimum in each window of `operand`, padded with the greatest value: see `reduce_window_max`."""
    window = window_dimensions, window_strides, padding, base_dilation, window_dilation
    return reduce_window_min_p.bind(operand, **window_params("reduce_window_min", shape_of(operand), *window))[0]


REDUCTIONS: dict[Any, tuple[Callable[..., Array], float]] = {
    e.add: (reduce_window_sum, 0),
    e.mul: (reduce_window_prod, 1),
    e.max: (reduce_window_max, -float("inf")),
    e.min: (reduce_window_min, float("inf")),
}


def _windowed(name: str, kinds: str) -> Primitive:
    def typing_rule(x: ShapedArray, **window: Any) -> tuple[ShapedArray, ...]:
        joint_type(name, (x,), kinds)
        return (_windowed_type(x, **window),)

    return Primitive(name, typing_rule)


reduce_window_sum_p: Final = _windowed("reduce_window_sum", NUMERIC)
reduce_window_prod_p: Final = _windowed("reduce_window_prod", NUMERIC)
reduce_window_max_p: Final = _windowed("reduce_window_max", ORDERED)
reduce_window_min_p: Final = _windowed("reduce_window_min", ORDERED)


# ---- by the position of an extreme ---------------------------------------------------------------------------


def select_and_gather_add(
    tangents: ArrayLike,
    operand: ArrayLike,
    select: str,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
) -> Array:
    """Gather, for each window, the element of `tangents` at the place of the window's extreme in `operand`.

    Args:
      tangents, operand: [n..] of one type, floating point.
      select: "ge" for the maximum, "le" for the minimum; the first of ties.
      others: as for `reduce_window_sum`.
    Returns: an element for each position of the window; 0 if the window has nothing but padding, or what pads.
    Raises: TypeError, ValueError if types differ, or `select` is something else.
    """
    params = _select_params("select_and_gather_add", operand, select, window_dimensions, window_strides, padding)
    return select_and_gather_add_p.bind(tangents, operand, **params)[0]


def select_and_scatter_add(
    source: ArrayLike,
    operand: ArrayLike,
    select: str,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "VALID",
) -> Array:
    """Add each element of `source` to zeros like `operand`, at the position of the extreme of its window in `operand`.

    Args:
      source: an element for each position of the window, dtype of operand.
      operand: [n..], floating point.
      select: "ge" for the maximum, "le" for the minimum; the first of ties.
      others: as for `reduce_window_sum`.
    Returns: [n..].
    Raises: TypeError, ValueError if types do not fit, or `select` is something else; both types are named.
    Source: StableHLO spec, select_and_scatter.
    """
    params = _select_params("select_and_scatter_add", operand, select, window_dimensions, window_strides, padding)
    return select_and_scatter_add_p.bind(source, operand, **params)[0]


def _select_params(
    name: str, operand: Any, select: str, window: Sequence[int], strides: Sequence[int] | None, padding: Any
) -> dict[str, Any]:
    if select not in ("ge", "le"):
        raise ValueError(f"{name}: select is 'ge' or 'le', not {select!r}.")
    params = window_params(name, shape_of(operand), window, strides, padding, None, None)
    del params["base_dilation"], params["window_dilation"]
    return {"select": select, **params}


def _undilated(x: ShapedArray, window: dict[str, Any]) -> ShapedArray:
    ones = (1,) * x.ndim
    return _windowed_type(x, base_dilation=ones, window_dilation=ones, **window)


def _select_and_gather_add_type(
    tangents: ShapedArray, x: ShapedArray, *, select: str, **window: Any
) -> tuple[ShapedArray, ...]:
    _check_dtypes("select_and_gather_add", tangents, x)
    if tangents.shape != x.shape:
        raise ValueError(f"select_and_gather_add: shapes differ: tangents are {tangents}, the operand {x}.")
    return (_undilated(tangents, window),)


def _select_and_scatter_add_type(
    source: ShapedArray, x: ShapedArray, *, select: str, **window: Any
) -> tuple[ShapedArray, ...]:
    _check_dtypes("select_and_scatter_add", source, x)
    if source.shape != _undilated(x, window).shape:
        raise ValueError(
            f"select_and_scatter_add: {x} has windows {_undilated(x, window).shape}, the source is {source}."
        )
    return (x.update(weak_type=source.weak_type),)


def _check_dtypes(name: str, a: ShapedArray, b: ShapedArray) -> None:
    if a.dtype != b.dtype or not dtypes.is_float(a.dtype):
        raise TypeError(f"{name}: operands must be of one floating-point dtype, not {a} and {b}. Convert with astype.")


select_and_gather_add_p: Final = Primitive("select_and_gather_add", _select_and_gather_add_type)
select_and_scatter_add_p: Final = Primitive("select_and_scatter_add", _select_and_scatter_add_type)
