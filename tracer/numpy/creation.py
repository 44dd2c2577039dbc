"""Creation of arrays: from Python values, constants, ranges, grids. Diagonals are in matrices.py."""

import builtins
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.numpy.arithmetic import power
from tapeless.tracer.numpy.promotion import (
    Operand,
    array_operand,
    as_array,
    broadcast_to_shape,
    cast,
    check_operands,
    convert_fitting,
    promoted_dtypes,
    promoted_inexact_dtypes,
)
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import shape as shapes
from tapeless.tracer.primitives.operands import (
    canonical_axis,
    check_numbers_fit,
    constant,
    convert_number,
    exact_integer,
)
from tapeless.tracer.primitives.random import random_wrap
from tapeless.tracer.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    expand_dims,
    reshape,
    slice_in_dim,
)
from tapeless.tracer.types import (
    ShapedArray,
    aval_of,
    by_protocol,
    conversion_hint,
    exact,
    incoming_number,
    is_arraylike,
    is_masked,
    narrow_array,
)

Shape = int | Sequence[int]
_PYTHON = (bool, int, float, complex)
_SEQUENCES = (list, tuple, range)

# ---- from values ---------------------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
) -> Array:
    """Make an array of `object`: a number, an array, a range, or nested lists of these.

    Python numbers have the default width; what has a dtype keeps it, 64-bit ones included. A bare number stays weak.
    Converting an array to a given `dtype` is as `astype`: integers that do not fit wrap.

    Args:
      order: of the memory, which is XLA's: "K", "A", "C" or "F", all with the same result.
      copy: whether an array of ours is copied, so that it may be donated and the result used on.
      device: where to put it, one of `tl.devices()` or the sharding of an array: by default an array of ours stays, and
        others go to the default device. So in all functions here; a traced array stays where its program runs.
    Raises: TypeError if elements are no numbers, or masked; ValueError if lists differ in length, or there is no such
      order; OverflowError if an integer does not fit its dtype.
    """
    _check_order("array", order)
    object = object if isinstance(object, Array) else by_protocol(object)
    if isinstance(object, _SEQUENCES):
        found = _from_list(object, None if dtype is None else dtypes.canonical(dtype))
    elif is_arraylike(object):
        found = _from_value(object, dtype, copy)
    elif is_masked(object):
        raise TypeError(
            f"{find_called('array')}: {type(object).__name__} is not an array here.{conversion_hint(object)}"
        )
    elif hasattr(object, "__array__") or _is_buffer(object):
        found = _from_value(np.asarray(object), dtype, copy)
    else:
        given = f"{object!r:.80} of type {type(object).__name__}"
        raise TypeError(f"{find_called('array')}: {given} is not an array, a number or a list of these.")
    found = found if found.ndim >= ndmin else expand_dims(found, tuple(range(ndmin - found.ndim)))
    return core.place_array(found, device)


def _check_order(name: str, order: Any) -> None:
    if order not in (None, "K", "A", "C", "F"):
        raise ValueError(f"{name}: order must be 'K', 'A', 'C' or 'F', not {order!r}.")


def _is_buffer(x: Any) -> bool:
    """Tell whether x shares its memory by the buffer protocol, as `memoryview` and `array.array` do, and is no text."""
    if isinstance(x, (bytes, bytearray)):
        return False
    try:
        memoryview(x)
    except TypeError:
        return False
    return True


def asarray(
    a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None, device: Any = None
) -> Array:
    """Convert to an array, without a copy if possible, unless `copy` is true: see `array`.

    An array of ours that has the dtype is returned itself, unless its type is weak: then its elements are copied.

    Raises: ValueError if `copy` is false and there must be one: elements go to a device, or change their dtype; or if
      there is no such order.
    """
    _check_order("asarray", order)
    if copy is False and not (isinstance(a, Array) and (dtype is None or a.dtype == dtypes.canonical(dtype))):
        raise ValueError(f"asarray: {a!r:.80} becomes an array only by a copy, which copy=False forbids.")
    found: Any = a if dtype is None and not copy and isinstance(a, Array) else array(a, dtype, bool(copy), order)
    if device is None:
        return found
    there: Any = core.place_array(found, device)
    if copy is False and there is not found and there.device is not found.device:
        raise ValueError(f"asarray: {a.aval} comes to {device} only by a copy, which copy=False forbids.")
    return there


def _from_value(x: ArrayLike, dtype: Any, copy: bool) -> Array:
    if isinstance(x, Array):
        wanted = x.dtype if dtype is None else dtypes.canonical(dtype)
        stays = x.dtype == wanted and (dtype is None or not x.aval.weak_type)
        found = x if stays else lax.convert_element_type(x, wanted)
        return lax.copy(found) if copy and x.dtype == wanted else found
    if dtype is None:
        return as_array(incoming_number(x))
    dtype = dtypes.canonical(dtype)
    return as_array(exact(x.astype(dtype) if isinstance(x, np.ndarray) else convert_number(x, dtype)))


def _from_list(items: Sequence[Any], dtype: np.dtype[Any] | None) -> Array:
    leaves = [by_protocol(x) for x in _leaves(items)]
    if any(isinstance(x, Array) for x in leaves):
        return _stacked(items, dtype)
    for x in leaves:
        if not is_arraylike(x):
            raise TypeError(
                f"{find_called('array')}: {x!r:.80} of type {type(x).__name__} in a list is not a number or an array."
            )
    try:
        values = np.array(items)
    except ValueError:
        raise ValueError(f"array: the parts of a list differ in shape, so they make no array: {items!r:.80}") from None
    dtype = dtype or _list_dtype(values, leaves)
    check_numbers_fit(values, dtype)
    narrows = dtypes.is_narrower(dtype, values.dtype) and any(isinstance(x, np.generic | np.ndarray) for x in leaves)
    return as_array(narrow_array(values, dtype) if narrows else exact(values.astype(dtype)))


def _leaves(items: Sequence[Any]) -> Iterator[Any]:
    for x in items:
        if isinstance(x, _SEQUENCES):
            yield from _leaves(x)
        else:
            yield x


def _list_dtype(values: np.ndarray[Any, Any], leaves: list[Any]) -> np.dtype[Any]:
    if all(type(x) in _PYTHON for x in leaves):
        return dtypes.default_dtype("f" if not leaves else "i" if values.dtype.kind in "uO" else values.dtype.kind)
    distinct = {(type(x), getattr(x, "dtype", None)): x for x in leaves}
    return dtypes.numpy_dtype(dtypes.result_type(*distinct.values())[0])


def _stacked(items: Sequence[Any], dtype: np.dtype[Any] | None) -> Array:
    parts = [_stacked(x, dtype) if isinstance(x, _SEQUENCES) else by_protocol(x) for x in items]
    parts = promoted_dtypes("array", *parts) if dtype is None else [cast(x, dtype) for x in parts]
    if len({x.shape for x in parts}) > 1:
        raise ValueError(f"array: parts of a list differ in shape: {', '.join(str(aval_of(x)) for x in parts)}.")
    joined = concatenate([expand_dims(x, (0,)) for x in parts], 0)
    return joined if not joined.aval.weak_type else lax.convert_element_type(joined, joined.dtype)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Copy an array. Raises: ValueError if there is no such order of memory, which is XLA's in any case."""
    _check_order("copy", order)
    return lax.copy(array_operand("copy", a))


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """Make a vector with elements of `dtype` from a buffer of bytes."""
    return as_array(exact(np.frombuffer(buffer, dtypes.canonical(dtype), count, offset)))


def fromfunction(function: Callable[..., Any], shape: Shape, *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """Apply `function` to the arrays of indices along each axis of `shape`."""
    return function(*indices(_shape("fromfunction", shape), dtype), **kwargs)


# ---- constants -----------------------------------------------------------------------------------------------


def zeros(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Make an array of zeros, of the default float if no dtype is given; for a key dtype, of keys with zero words."""
    return core.place_array(_constant("zeros", shape, 0, dtype), device)


def ones(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Make an array of ones, of the default float if no dtype is given."""
    return core.place_array(_constant("ones", shape, 1, dtype), device)


def empty(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Make an array whose elements are not specified: zeros."""
    return core.place_array(_constant("empty", shape, 0, dtype), device)


def full(shape: Shape, fill_value: ArrayLike, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """Make an array of `fill_value`, broadcast to `shape` and converted to `dtype`; weak if `fill_value` is.

    Raises: OverflowError if it is an integer known not to fit `dtype`.
    """
    check_operands("full", fill_value)
    value = as_array(fill_value) if dtype is None else convert_fitting(fill_value, dtypes.canonical(dtype))
    return core.place_array(_filled(value, _shape("full", shape)), device)


def zeros_like(
    a: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: Any = None
) -> Array:
    """Make an array of zeros with the shape and dtype of a."""
    return core.place_array(_zeros_like(a, dtype, shape), device)


def ones_like(a: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: Any = None) -> Array:
    """Make an array of ones with the shape and dtype of a."""
    return full_like(a, 1, dtype, shape, device=device)


def empty_like(
    prototype: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: Any = None
) -> Array:
    """Make an array of the shape and dtype of `prototype` whose elements are not specified: zeros."""
    return core.place_array(_zeros_like(prototype, dtype, shape), device)


def full_like(
    a: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, shape: Shape | None = None, *, device: Any = None
) -> Array:
    """Make an array of `fill_value` in the shape and dtype of a, which may be any object with these attributes.

    Raises: OverflowError if it is an integer known not to fit the dtype.
    """
    like, size = _like(a, dtype, shape)
    return core.place_array(_of_type(like, _filled(convert_fitting(fill_value, like.dtype), size)), device)


def _zeros_like(a: Any, dtype: Any, shape: Shape | None) -> Array:
    like, size = _like(a, dtype, shape)
    return (
        _zero_keys(size, like.dtype)
        if dtypes.is_key(like.dtype)
        else _of_type(like, _filled(convert_number(0, like.dtype), size))
    )


def _like(a: Any, dtype: Any, shape: Shape | None) -> tuple[ShapedArray, tuple[int, ...]]:
    """Return the type of one element, and the shape; Python's numbers and weak arrays are weak."""
    described = hasattr(a, "shape") and hasattr(a, "dtype") and not is_arraylike(a)
    like = a if described else aval_of(by_protocol(a))
    size = tuple(like.shape) if shape is None else _shape("full_like", shape)
    weak = dtype is None and getattr(like, "weak_type", False)
    return ShapedArray((), like.dtype if dtype is None else dtypes.canonical(dtype), weak), size


def _of_type(aval: ShapedArray, x: Array) -> Array:
    """Return x as a weak array if `aval` is weak, else as a strong array."""
    return x if x.aval.weak_type == aval.weak_type else lax.convert_element_type(x, x.dtype, aval.weak_type)


def _constant(name: str, shape: Shape, value: int, dtype: Any) -> Array:
    dtype = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    size = _shape(name, shape)
    if dtypes.is_key(dtype) and not value:
        return _zero_keys(size, dtype)
    return _filled(constant(value, ShapedArray((), dtype)), size)


def _zero_keys(shape: tuple[int, ...], dtype: Any) -> Array:
    return random_wrap(_constant("zeros", (*shape, dtype.words), 0, np.uint32), dtype.impl)


def _filled(value: Any, shape: tuple[int, ...]) -> Array:
    value = value if isinstance(value, (Array, np.ndarray)) else np.asarray(cast(value, aval_of(value).dtype))
    return as_array(value) if value.shape == shape else broadcast_to_shape(value, shape)


def _shape(name: str, shape: Shape) -> tuple[int, ...]:
    """Convert a shape to a tuple. Raises: TypeError for lengths that are no integers, ValueError for negative ones."""
    return shapes.static_shape(shapes.as_sizes(shape), name)


# ---- ranges --------------------------------------------------------------------------------------------------


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *, device: Any = None
) -> Array:
    """Make the vector start, start + step, ... below stop; arange(n) counts from 0 to n - 1.

    The arguments must be known.

    Raises: ValueError if step is 0; TypeError for what is no real number.
    """
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    check_operands("arange", start, stop, step)
    dtype = dtypes.result_type(start, stop, step)[0] if dtype is None else dtypes.canonical(dtype)
    known = [_known("arange", v) for v in (start, stop, step)]
    if not known[2]:
        raise ValueError("arange: the step must not be 0.")
    size = builtins.max(0, math.ceil((known[1] - known[0]) / known[2]))
    if size and dtypes.is_integer(dtype):
        dtypes.check_fits(int(known[0] + (size - 1) * known[2]), dtype)
    if dtypes.is_bool(dtype):
        return core.place_array(as_array(np.arange(*known, dtype=dtype)), device)
    return core.place_array(_arange(size=size, start=_plain(known[0]), step=_plain(known[2]), dtype=dtype), device)


def _known(name: str, v: Any) -> Any:
    aval = aval_of(v)
    if aval.shape or dtypes.is_complex(aval.dtype):
        raise TypeError(f"{name}: the arguments must be real numbers, not {v if isinstance(v, complex) else aval}.")
    if isinstance(v, core.Tracer) and v.concrete_value() is None:
        raise ConcretizationTypeError(
            f"{name}: the arguments say how long the result is and must be known, but one is traced: {v.aval}."
            f"{v.origin()}\n  Use lax.iota with a known length, or {core.how_to_be_known(v.owner)}."
        )
    if isinstance(v, _PYTHON):
        return v
    found = np.asarray(v)[()]
    return int(found) if dtypes.is_integer(aval.dtype) else found  # of any size: differences of NumPy's wrap


def _plain(v: Any) -> int | float | complex:
    return v.item() if isinstance(v, np.generic) else v


@core.compound
def _arange(*, size: int, start: Any, step: Any, dtype: np.dtype[Any]) -> Array:
    counted = broadcasted_iota(dtype, (size,), 0)
    if step < 0 and dtypes.kind(dtype) == "u":  # whose steps down are subtracted
        return lax.sub(convert_number(start, dtype), lax.mul(counted, convert_number(-step, dtype)))
    counted = counted if step == 1 else lax.mul(counted, convert_number(step, dtype))
    return counted if start == 0 else lax.add(counted, convert_number(start, dtype))


@one_program
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Make `num` evenly spaced numbers from start to stop, along a new axis; with `retstep` also their distance.

    The distance is nan, of no axes, if there are fewer than two numbers, or fewer than one without the end.

    Raises: ValueError if `num` is negative, or `axis` out of range.
    """
    low, high = _ends("linspace", start, stop, dtype)
    count = exact_integer(num, "linspace: num")
    if count < 0:
        raise ValueError(f"linspace: the number of samples must not be negative: {count}.")
    own = aval_of(low).dtype if dtype is None else dtypes.canonical(dtype)
    found = _linspace(low, high, num=count if endpoint else count + 1, dtype=own, axis=axis)
    if not endpoint:  # a program of another length rounds a few of the others differently
        found = slice_in_dim(found, 0, count, axis=axis)
    found = core.place_array(found, device)
    if not retstep:
        return found
    gaps = count - 1 if endpoint else count
    if gaps <= 0:
        return found, full((), math.nan, dtypes.inexact_of(own))
    low, high = _stretched_together(low, high)
    return found, lax.convert_element_type(lax.div(lax.sub(high, low), gaps), dtypes.inexact_of(own))


def _stretched_together(*xs: Any) -> list[Any]:
    """Broadcast arrays that are known to be compatible to their common shape."""
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    return [broadcast_to_shape(x, shape) for x in xs]


def _ends(name: str, start: ArrayLike, stop: ArrayLike, dtype: Any) -> Sequence[Operand]:
    """Convert both ends to one floating-point dtype: of 64 bits for results of 64 bits, and for integers."""
    ends = promoted_inexact_dtypes(name, start, stop)
    asked = None if dtype is None else dtypes.canonical(dtype)
    if asked is None or not (dtypes.is_integer(asked) or dtypes.bits_of(dtypes.real_part_dtype(asked)) == 64):
        return ends
    wide = dtypes.wider(aval_of(ends[0]).dtype, np.dtype(np.float64))
    return [cast(by_protocol(v), wide) for v in (start, stop)]


@core.compound
def _linspace(low: Any, high: Any, *, num: int, dtype: np.dtype[Any], axis: int) -> Array:
    """Compute a weighted mean of both ends, exact at both. Integers are rounded down, as NumPy does."""
    low, high = _stretched_together(low, high)
    full_shape = (num, *low.shape)
    low, high = (broadcast_in_dim(v, full_shape, tuple(range(1, len(full_shape)))) for v in (low, high))
    real = dtypes.real_part_dtype(low.dtype)
    gaps = builtins.max(num - 1, 1)
    place = broadcasted_iota(real, full_shape, 0)
    place = place if place.dtype == low.dtype else lax.convert_element_type(place, low.dtype)
    if dtypes.is_integer(dtype):  # a quotient that is whole is found to a rounding error: XLA multiplies by 1 / gaps
        found = lax.add(low, _snapped(lax.div(lax.mul(lax.sub(high, low), place), float(gaps))))
    else:
        t = lax.div(place, float(gaps))
        found = lax.add(lax.mul(low, lax.sub(1.0, t)), lax.mul(high, t))
    if num > 1:
        found = _with_end(found, high, num - 1)
    if dtypes.is_integer(dtype) and not dtypes.is_complex(found.dtype):
        found = lax.floor(found)
    found = lax.convert_element_type(found, dtype)
    return _moved_first(found, canonical_axis(axis, found.ndim))


def _with_end(x: Array, end: Array, row: int) -> Array:
    """Replace one row of x."""
    return lax.select_n(lax.eq(broadcasted_iota(np.int32, x.shape, 0), row), x, end)


def _snapped(x: Array) -> Array:
    """Round real numbers to whole ones if they differ by a rounding error."""
    if dtypes.is_complex(x.dtype):
        return x
    whole, near = lax.round(x), lax.mul(lax.abs(x), 64 * float(dtypes.finfo(x.dtype).eps))
    return lax.select_n(lax.le(lax.abs(lax.sub(x, whole)), near), x, whole)


def _moved_first(x: Array, axis: int) -> Array:
    order = list(range(1, x.ndim))
    order.insert(axis, 0)
    return shapes.transpose(x, order)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Make `num` numbers from base^start to base^stop, in equal ratios."""
    low, high = _ends("logspace", start, stop, dtype)
    exponents = linspace(low, high, num, endpoint, axis=axis)
    return _of_dtype(power(cast(base, exponents.dtype), exponents), dtype)


def _of_dtype(x: Array, dtype: DTypeLike | None) -> Array:
    """Convert to the dtype asked for, if any; to integers by dropping the fraction, but for a rounding error."""
    if dtype is None:
        return x
    wanted = dtypes.canonical(dtype)
    return lax.convert_element_type(_snapped(x) if dtypes.is_integer(wanted) else x, wanted)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Make `num` numbers from start to stop in equal ratios; both must have the same sign."""
    low, high = _ends("geomspace", start, stop, dtype)
    return _of_dtype(_geomspace(low, high, num=num, endpoint=endpoint, axis=axis), dtype)


@core.compound
def _geomspace(low: Any, high: Any, *, num: int, endpoint: bool, axis: int) -> Array:
    low, high = _stretched_together(low, high)
    sign = lax.sign(low)
    exponents = [lax.log(lax.div(v, sign)) for v in (low, high)]
    ratios = linspace(exponents[0], exponents[1], num, endpoint)
    sign, low, high = (broadcast_to_shape(v, ratios.shape) for v in (sign, low, high))
    found = _with_end(lax.mul(sign, lax.exp(ratios)), low, 0)
    found = _with_end(found, high, num - 1) if endpoint and num > 1 else found
    return _moved_first(found, canonical_axis(axis, ratios.ndim))


# ---- grids ---------------------------------------------------------------------------------------------------


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Array]:
    """Make arrays of coordinates on the grid of the vectors xi; "xy" puts the second vector along the first axis.

    Raises: ValueError if `indexing` is neither "xy" nor "ij".
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}.")
    vectors = [reshape(x, (x.size,)) for x in (array_operand("meshgrid", v) for v in xi)]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    shape = [0] * len(axes)
    for x, axis in zip(vectors, axes, strict=True):
        shape[axis] = x.size
    if sparse:
        whole = shape
        return [
            reshape(x, [n if d == axis else 1 for d, n in enumerate(whole)])
            for x, axis in zip(vectors, axes, strict=True)
        ]
    return [broadcast_in_dim(x, shape, (axis,)) for x, axis in zip(vectors, axes, strict=True)]


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """Make arrays of indices along each axis of `dimensions`, stacked; a tuple of open grids if `sparse`.

    Raises: OverflowError if the last index does not fit `dtype`.
    """
    dtype = dtypes.default_dtype("i") if dtype is None else dtypes.canonical(dtype)
    shape = tuple(dimensions)
    if dtypes.is_integer(dtype) and shape:
        dtypes.check_fits(builtins.max(0, builtins.max(shape) - 1), dtype)
    if sparse:
        thin = [tuple(n if a == d else 1 for a in range(len(shape))) for d, n in enumerate(shape)]
        return tuple(broadcasted_iota(dtype, s, d) for d, s in enumerate(thin))
    if not shape:
        return zeros((0,), dtype)
    return concatenate([broadcasted_iota(dtype, (1, *shape), d + 1) for d in range(len(shape))], 0)
