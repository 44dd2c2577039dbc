"""Indexed updates: `x.at[index].set(y)`, `.add` and others, which return a new array (scatter).

A contiguous part at a known position is a dynamic_update_slice; other positions are a scatter, where a slice with a
step counts as an array of positions. A boolean mask as index, with a single number to write, is a select.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeAlias

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import arithmetic
from tapeless.tracer.numpy.at_apply import apply_repeatedly, times_named
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.index_plan import Cut, IndexPlan, WindowError, index_dtype, plan_index, window_axes
from tapeless.tracer.numpy.indexing import Mode, index_vectors, read_plan, windows
from tapeless.tracer.numpy.logic import choose_between
from tapeless.tracer.numpy.promotion import as_array, broadcast_to_shape, cast, check_fits, check_operands, format_shape
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import indexing
from tapeless.tracer.primitives.indexing import GatherScatterMode, ScatterDimensionNumbers
from tapeless.tracer.primitives.shape import expand_dims, full, reshape, rev
from tapeless.tracer.types import aval_of, by_protocol

Scatter: TypeAlias = Callable[..., Array]
Combine: TypeAlias = Callable[[Any, Any], Any]


class At:
    """The property `x.at`: `x.at[index]` is an `AtIndexer`. See `tapeless.Array.at`."""

    __slots__ = ("array",)
    array: Array

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> "AtIndexer":
        return AtIndexer(self.array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("arrays are never changed in place. Instead of x.at[i] = y write x = x.at[i].set(y).")

    def __call__(self, *index: Any) -> NoReturn:
        raise TypeError("x.at takes the index in brackets: x.at[index].set(values).")

    def __repr__(self) -> str:
        return f"{self.array!r}.at"


class AtIndexer:
    """`x.at[index]`: a part of an array. Each method returns the array with that part updated; `get` returns the part.

    The result has the dtype of x, and values are converted to it; that may round, but never wraps. Known integers
    that do not fit are an OverflowError. Values of a higher kind (floating point into integers) are a TypeError, and so
    are traced integers of a dtype that x has no room for: they are converted explicitly, with astype. (JAX converts
    these with a warning.)

    Keyword arguments of all methods:
      mode: what happens at positions outside of the array: "drop" or "fill" (writes are dropped, reads give
        `fill_value`), "clip" (positions move to the nearest end), "promise_in_bounds". If not given, known positions
        must be inside, and traced ones outside are dropped in writing and clipped in reading.
      wrap_negative_indices: whether negative positions count from the end; else they are outside of the array.
      indices_are_sorted, unique_indices: promises that may save time.
    """

    __slots__ = ("array", "index")
    array: Array
    index: Any

    def __init__(self, array: Array, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"{self.array!r}.at[{self.index!r}]"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the part, by a gather. `fill_value` alone sets the mode "fill".

        Raises: IndexError if a known position is outside, and no `mode` is given.
        """
        x = self.array
        default = GatherScatterMode.CLIP if fill_value is None else GatherScatterMode.FILL_OR_DROP
        how = default if mode is None else GatherScatterMode.from_any(mode)
        planned = self._planned(mode, wrap_negative_indices)
        if planned is None:
            return self._by_places(how).get(mode=how, fill_value=fill_value)
        return read_plan(x, *planned, how, fill_value)

    def _planned(self, mode: Mode, wrap: bool) -> tuple[IndexPlan, list[Any]] | None:
        """Plan the index: the plan, and its arrays of positions; None if the index has windows of traced start."""
        with suppress(WindowError):
            return plan_index(self.array.aval, self.index, check=mode is None, wrap=wrap)
        return None

    def _by_places(self, mode: Mode) -> "AtIndexer":
        """Index the flattened array at the flat positions of the same elements: for an index that has windows."""
        x, kind = self.array, GatherScatterMode.from_any(mode)
        moved = kind is not GatherScatterMode.FILL_OR_DROP
        return AtIndexer(reshape(x, (x.size,)), windows().places(x.aval, self.index, moved))

    def set(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part replaced by `values`; where positions repeat, one value wins."""
        return self._write("set", values, indexing.scatter, _replace, **options)

    def add(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with `values` added to the part, once for each time that a position occurs."""
        return self._write("add", values, indexing.scatter_add, lax.add, **options)

    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with `values` subtracted from the part, once for each time that a position occurs."""
        return self._write("subtract", values, indexing.scatter_sub, lax.sub, **options)

    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part multiplied by `values`, once for each time that a position occurs.

        Its derivative in `values` is cheaper if no position occurs twice: known positions are compared, of traced ones
        `unique_indices=True` promises it.
        """
        return self._write("multiply", values, indexing.scatter_mul, lax.mul, **options)

    mul = multiply

    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part divided by `values`; integers become floating point, as in every division."""
        x = self.array
        divisors = self._ones(dtypes.inexact_of(x.dtype))._write("divide", values, *_PRODUCT, **options)
        return arithmetic.true_divide(x, divisors)

    def power(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part raised to the power `values`."""
        x = self.array
        return arithmetic.power(x, self._ones(x.dtype)._write("power", values, *_PRODUCT, **options))

    def min(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part replaced by the minimum of it and `values`."""
        return self._write("min", values, indexing.scatter_min, lax.min, **options)

    def max(self, values: ArrayLike, **options: Any) -> Array:
        """Return the array with the part replaced by the maximum of it and `values`."""
        return self._write("max", values, indexing.scatter_max, lax.max, **options)

    def apply(self, func: Callable[[Array], ArrayLike], **options: Any) -> Array:
        """Return the array with the elementwise `func` applied to the part, once for each time that a position occurs.

        There is a derivative in reverse mode unless positions are traced and may repeat; `unique_indices=True` promises
        that they do not.
        Raises: ValueError if the result of `func` does not broadcast to the part; TypeError or OverflowError if it does
          not fit the dtype.
        """
        part = self.get(**options)
        named = {key: options[key] for key in ("mode", "wrap_negative_indices") if key in options}
        times = None if options.get("unique_indices") else self._times(part.aval.shape, **named)

        def once(x: Array) -> Array:
            y = as_array(_values("apply", self.array, func(x)))
            if y.shape != x.shape:
                _check_values("apply", x.shape, y)
            return broadcast_to_shape(y, x.shape)

        return self.set(once(part) if times is None else apply_repeatedly(once, part, times), **options)

    def _times(self, shape: tuple[int, ...], mode: Mode = None, wrap_negative_indices: bool = True) -> Any:
        """Count how often the index names each element; None if it names none twice."""
        planned = self._planned(mode, wrap_negative_indices)
        if planned is None:
            return self._by_places(mode)._times(shape, mode)
        plan, positions = planned
        if math.prod(plan.block) < 2:
            return None
        if plan.in_bounds:
            return times_named(plan, positions)
        count = AtIndexer(full(self.array.shape, 0, np.dtype("int32")), self.index)
        named: dict[str, Any] = {"mode": mode, "wrap_negative_indices": wrap_negative_indices}
        return AtIndexer(count.add(1, **named), self.index).get(**named)

    def _ones(self, dtype: np.dtype[Any]) -> "AtIndexer":
        x = self.array
        return AtIndexer(lax.convert_element_type(full(x.shape, 1, dtype), dtype, x.weak_type), self.index)

    def _write(
        self,
        name: str,
        values: ArrayLike,
        scatter: Scatter,
        combine: Combine,
        *,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
        indices_are_sorted: bool = False,
        unique_indices: bool | None = None,
    ) -> Array:
        x, how = self.array, GatherScatterMode.from_any(mode)
        y = _values(name, x, values)
        if _is_mask(self.index) and not y.shape:
            return _write_mask(x, self.index, combine(x, y) if name != "set" else y)
        planned = self._planned(mode, wrap_negative_indices)
        if planned is None:
            row = self._by_places(how)
            return reshape(row._write(name, values, scatter, combine, mode=how), x.shape)
        plan, positions = planned
        _check_values(name, plan.shape, y)
        if positions or any(isinstance(e, Cut) and abs(e.step) != 1 for e in plan.entries):
            if unique_indices is None:
                unique_indices = scatter is indexing.scatter_mul and _distinct(plan, positions)
            promises = (("indices_are_sorted", indices_are_sorted), ("unique_indices", unique_indices))
            how = GatherScatterMode.PROMISE_IN_BOUNDS if plan.in_bounds else how
            return _scatter(x, y, *positions, plan=plan, scatter=scatter, mode=how, promises=promises)
        return _update_window(x, y, plan, name, combine)


_PRODUCT = indexing.scatter_mul, lax.mul


def _values(name: str, x: Array, values: ArrayLike) -> Any:
    """Convert values to the dtype of x. Raises: TypeError, OverflowError if that would lose more than precision."""
    values = _of_list(values, x.dtype) if isinstance(values, (list, tuple)) else by_protocol(values)
    check_operands(f"at[...].{name}", values)
    y = aval_of(values)
    if dtypes.is_key(x.dtype) != dtypes.is_key(y.dtype):
        raise TypeError(f"at[...].{name}: {y} cannot be written into {x.aval}: keys go with keys alone.")
    if dtypes.rank(y.dtype) > dtypes.rank(x.dtype):
        raise TypeError(f"at[...].{name}: {y} cannot be written into {x.aval}. Convert one of them with astype.")
    try:
        sure = not isinstance(values, (Array, np.ndarray)) or check_fits(values, x.dtype)
        if not sure and not y.weak_type:
            raise TypeError(
                f"at[...].{name}: {y} is traced, and its elements may not fit {x.aval}.\n"
                f"  Convert one of them: x.astype({y.dtype.name!r}).at[...].{name}(values), "
                f"or values.astype({x.dtype.name!r}), which wraps."
            )
        return _as_weak_as(x, cast(values, x.dtype, x.weak_type))
    except OverflowError as error:
        raise OverflowError(f"at[...].{name}: {y} cannot be written into {x.aval}: {error}") from None


def _of_list(values: Sequence[Any], dtype: Any) -> Array:
    """Make the array of a list, of `dtype` if that holds its numbers, else of its own dtype."""
    found = asarray(values)
    return asarray(values, dtype) if dtypes.rank(aval_of(found).dtype) <= dtypes.rank(dtype) else found


def convert_values(name: str, x: Array, values: ArrayLike) -> Array:
    """Convert values to the type and shape of x, all of which they replace. Raises: as the methods of AtIndexer."""
    y = as_array(_values(name, x, values))
    _check_values(name, x.shape, y)
    if aval_of(y).weak_type and not x.weak_type:
        y = lax.convert_element_type(y, x.dtype)
    return broadcast_to_shape(reshape(y, y.shape[max(y.ndim - x.ndim, 0) :]), x.shape)


def _as_weak_as(x: Array, y: Any) -> Any:
    """Make y, which has the dtype of x, weak if x is weak, so that the result is weak too."""
    return lax.convert_element_type(y, y.dtype, True) if x.weak_type and not aval_of(y).weak_type else y


def _check_values(name: str, shape: tuple[int, ...], y: Any) -> None:
    ok = len(y.shape) <= len(shape) or all(n == 1 for n in y.shape[: len(y.shape) - len(shape)])
    if not ok or any(n not in (1, k) for n, k in zip(y.shape[::-1], shape[::-1], strict=False)):
        raise ValueError(
            f"at[...].{name}: values of shape {format_shape(y.shape)} do not broadcast to the part of shape "
            f"{format_shape(shape)}."
        )


# ---- masks ---------------------------------------------------------------------------------------------------


def _is_mask(index: Any) -> bool:
    return isinstance(index, (Array, np.ndarray)) and index.dtype.kind == "b" and index.ndim > 0


def _write_mask(x: Array, mask: Any, new: Any) -> Array:
    if mask.ndim > x.ndim or any(m not in (0, n) for m, n in zip(mask.shape, x.shape, strict=False)):
        raise IndexError(
            f"a mask of shape {format_shape(mask.shape)} does not fit an array of shape {format_shape(x.shape)}."
        )
    if mask.shape != x.shape[: mask.ndim]:  # it has a length of 0, and chooses nothing
        return x
    return choose_between(expand_dims(mask, tuple(range(mask.ndim, x.ndim))), new, x)


# ---- contiguous parts ----------------------------------------------------------------------------------------


def _update_window(x: Array, y: Any, plan: IndexPlan, name: str, combine: Combine) -> Array:
    """Write a contiguous part at a known position, which is an operand: eagerly, one program serves all positions."""
    starts = [e if isinstance(e, int) else e.low for e in plan.entries if e is not None]
    places = [index_dtype(n).type(start) for n, start in zip(x.shape, starts, strict=True)]
    return _write_window(x, y, *places, plan=_somewhere(plan), combine=combine)


def _somewhere(plan: IndexPlan) -> IndexPlan:
    """Return the plan with each start set to 0: the starts are operands instead."""
    entries = tuple(0 if isinstance(e, int) else Cut(0, e.size, e.step) for e in plan.entries if e is not None)
    return IndexPlan(entries, plan.block, plan.first, plan.layout, plan.shape, plan.in_bounds)


@core.compound
def _write_window(x: Array, y: Any, *places: Any, plan: IndexPlan, combine: Combine) -> Array:
    sizes = tuple(e.size if isinstance(e, Cut) else 1 for e in plan.entries)
    backwards = tuple(a for a, e in enumerate(plan.entries) if isinstance(e, Cut) and e.step < 0)
    new = reshape(_spread(y, plan.shape), sizes)
    new = rev(new, backwards) if backwards else new
    if combine is not _replace:
        new = combine(indexing.dynamic_slice(x, places, sizes, allow_negative_indices=False), new)
    return indexing.dynamic_update_slice(x, new, places, allow_negative_indices=False)


def _replace(old: Any, new: Any) -> Any:
    return new


def _spread(y: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast y to `shape`, after dropping leading axes of length 1 that exceed its rank."""
    if len(y.shape) > len(shape):
        y = reshape(y, y.shape[len(y.shape) - len(shape) :])
    return broadcast_to_shape(y, shape)


# ---- other places --------------------------------------------------------------------------------------------


def _distinct(plan: IndexPlan, positions: Sequence[Any]) -> bool:
    """Tell whether all positions are known to differ: only then does scatter_mul have a derivative in the updates."""
    if not positions or not plan.in_bounds:
        return False
    vectors = np.stack([np.broadcast_to(p, plan.block).ravel() for p in positions])
    return np.unique(vectors, axis=1).shape == vectors.shape


@core.compound
def _scatter(
    x: Array,
    y: Any,
    *positions: Any,
    plan: IndexPlan,
    scatter: Scatter,
    mode: GatherScatterMode,
    promises: tuple[tuple[str, bool], ...],
) -> Array:
    """Scatter y into x; index vectors have a component for each array, integer, strided slice, and late slice."""
    columns, windows = _columns(plan, positions)
    batch = [n for at, n in enumerate(plan.layout) if at not in windows.values()]
    numbers = ScatterDimensionNumbers(
        tuple(windows.values()), tuple(a for a in range(x.ndim) if a not in windows), tuple(columns)
    )
    vectors = index_vectors(list(columns.values()), tuple(batch))
    updates = reshape(_spread(y, plan.shape), plan.layout)
    options = dict(promises) if plan.block else {"unique_indices": True, "indices_are_sorted": True}
    return scatter(x, vectors, updates, numbers, mode=mode, **options)


def _columns(plan: IndexPlan, positions: Sequence[Any]) -> tuple[dict[int, Any], dict[int, int]]:
    """Map axes of the array to components of the index vectors, and its window axes to axes of the layout."""
    layout_axis, operands = dict(window_axes(plan)), iter(positions)
    windows = {a: layout_axis[a] for a, e in enumerate(plan.entries) if isinstance(e, Cut) and e.step == 1}
    batch = [at for at in range(len(plan.layout)) if at not in windows.values()]
    block = range(plan.first, plan.first + len(plan.block))
    columns = {}
    for axis, entry in enumerate(plan.entries):
        if entry is None:
            place = broadcast_to_shape(next(operands), plan.block)
            columns[axis] = _along(place, [plan.layout[at] if at in block else 1 for at in batch])
        elif isinstance(entry, int):
            columns[axis] = np.asarray(entry, np.int32)
        elif axis not in windows:
            steps = np.arange(entry.size, dtype=np.int32) * entry.step + entry.start
            columns[axis] = _along(steps, [entry.size if at == layout_axis[axis] else 1 for at in batch])
        elif entry.start:
            columns[axis] = np.asarray(entry.start, np.int32)
    return columns, windows


def _along(place: Any, shape: list[int]) -> Any:
    return place.reshape(shape) if isinstance(place, np.ndarray) else reshape(place, shape)
