"""Reductions over axes: sums, products, extremes, logic, their cumulative forms, and variants that skip nan.

All take `axis` (None for all, an integer, or several), `keepdims`, `where` (booleans: the elements that count) and, if
it has a meaning, `initial` (a number to begin with) and `dtype` (of the sum and the result). `out` is refused.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.numpy.arithmetic import add as add_arrays
from tapeless.tracer.numpy.arithmetic import maximum, minimum, multiply, subtract
from tapeless.tracer.numpy.logic import choose_between, isnan, truth
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    broadcasts_to,
    cast,
    check_no_out,
    check_operands,
    convert_fitting,
    number_operand,
    strong,
)
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import reduction
from tapeless.tracer.primitives.operands import canonical_axes, canonical_axis, known_elements
from tapeless.tracer.primitives.shape import concatenate, expand_dims, full, reshape
from tapeless.tracer.types import aval_of

Axis = int | Sequence[int] | None

# ---- sums and products ---------------------------------------------------------------------------------------


@one_program
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum over axes. Booleans and narrow integers are summed in the default integer; as dtype=bool by "or".

    Raises: TypeError for lists, ValueError for an axis that is out of range or named twice.
    """
    check_no_out("sum", out)
    x = _accumulated("sum", a, dtype, promote_integers)
    add = reduction.reduce_or if dtypes.is_bool(x.dtype) else total
    return reduce_axes("sum", x, axis, keepdims, add, 0, where, initial, add_arrays)


@one_program
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Multiply elements over axes. Booleans and narrow integers use the default integer; dtype=bool is "and"."""
    check_no_out("prod", out)
    x = _accumulated("prod", a, dtype, promote_integers)
    multiply_all = reduction.reduce_and if dtypes.is_bool(x.dtype) else _product
    return reduce_axes("prod", x, axis, keepdims, multiply_all, 1, where, initial, multiply)


def total(x: Array, axes: Sequence[int]) -> Array:
    """Add in 32 bits at least, and round once: XLA rounds narrow sums as it goes."""
    return _like(x, reduction.reduce_sum(wide(x), axes))


def _product(x: Array, axes: Sequence[int]) -> Array:
    """Multiply in 32 bits at least, and round once."""
    return _like(x, reduction.reduce_prod(wide(x), axes))


def _like(x: Array, found: Array) -> Array:
    return found if found.dtype == x.dtype else lax.convert_element_type(found, x.dtype)


def wide(x: Array) -> Array:
    """Convert x to a dtype in which sums do not soon overflow or stall."""
    return lax.convert_element_type(x, np.float32) if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4 else x


def with_range(x: Array) -> Array:
    """Convert x to float32 if its dtype has a narrower range, so that it may not hold a count of elements."""
    return wide(x) if dtypes.is_float(x.dtype) and dtypes.finfo(x.dtype).maxexp < 128 else x


def accumulation_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that elements are summed in: the default integer for booleans and narrower integers."""
    kind = dtypes.kind(dtype)
    if kind not in "biu":
        return dtype
    default = dtypes.default_dtype("u" if kind == "u" else "i")
    return default if kind == "b" or dtypes.bits_of(dtype) < dtypes.bits_of(default) else dtype


def _accumulated(name: str, a: ArrayLike, dtype: Any, promote_integers: bool = True) -> Array:
    x = array_operand(name, a)
    if dtype is not None:
        wanted = dtypes.canonical(dtype)
    else:
        wanted = accumulation_dtype(x.dtype) if promote_integers or dtypes.is_bool(x.dtype) else x.dtype
    if x.dtype != wanted:
        return lax.convert_element_type(x, wanted)
    return x


def reduce_axes(
    name: str,
    x: Array,
    axis: Axis,
    keepdims: bool,
    reduce: Callable[[Any, Sequence[int]], Array],
    neutral: Any,
    where: ArrayLike | None,
    initial: ArrayLike | None,
    combine: Callable[[Any, Any], Array],
) -> Array:
    """Reduce over axes with NumPy's options; an option that is not given costs nothing."""
    axes = checked_axes(name, x, axis)
    if where is not None:
        x = choose_between(checked_where(name, x, where), x, cast(neutral, x.dtype))
    y = reduce(x, axes)
    if initial is not None:
        y = combine(y, _checked_initial(name, y, initial))
    y = strong(y)
    return expand_dims(y, axes) if keepdims and axes else y


def checked_where(name: str, x: Array, where: ArrayLike) -> Any:
    """Return `where`, the mask of elements that count. Raises: TypeError if not boolean, ValueError for its shape."""
    check_operands(name, where)
    aval = aval_of(where)
    if not dtypes.is_bool(aval.dtype):
        raise TypeError(f"{name}: where must be boolean, not {aval}. Compare it, or convert with astype(bool).")
    if not broadcasts_to(aval.shape, x.shape):
        raise ValueError(f"{name}: where, {aval}, does not broadcast to the array, {x.aval}.")
    return where


def _checked_initial(name: str, y: Array, initial: ArrayLike) -> Any:
    """Convert `initial` to the dtype of the result y; one of a higher kind of dtype if this does not change it.

    Raises: TypeError, ValueError, OverflowError.
    """
    check_operands(name, initial)
    aval = aval_of(initial)
    if aval.shape:
        raise ValueError(f"{name}: initial must be one number, not {aval}.")
    if dtypes.rank(aval.dtype) <= dtypes.rank(y.dtype):
        return convert_fitting(initial, y.dtype)
    known = None if dtypes.is_complex(aval.dtype) else known_elements(initial)
    with np.errstate(invalid="ignore"):
        number = None if known is None else known.astype(y.dtype)
    if number is None or number != known:
        raise TypeError(f"{name}: initial, {aval}, cannot begin a result of {y.dtype}. Pass dtype, or convert it.")
    return as_array(number)


def checked_axes(name: str, x: Array, axis: Axis) -> tuple[int, ...]:
    """Return axes counted from the front; None means all. Raises: an error that names the function and the array."""
    if axis is None:
        return tuple(range(x.aval.ndim))
    try:
        return canonical_axes(axis, x.aval.ndim, f"{name}: axis")
    except ConcretizationTypeError:
        raise
    except (TypeError, ValueError) as error:
        two = f"\n  For the {name}imum of two arrays write {name}imum(x, y)." if name in ("max", "min") else ""
        advice = two if isinstance(axis, (Array, np.ndarray)) else ""
        raise type(error)(f"{error} The array is {x.aval}.{advice}") from None


# ---- extremes ------------------------------------------------------------------------------------------------


@one_program
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the maximum over axes; nan if there is one. Raises: ValueError for no elements without `initial`."""
    check_no_out("max", out)
    x = _nonempty("max", number_operand("max", a), axis, initial, where)
    return reduce_axes("max", x, axis, keepdims, reduction.reduce_max, least(x.dtype), where, initial, maximum)


@one_program
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the minimum over axes; nan if there is one. Raises: ValueError for no elements without `initial`."""
    check_no_out("min", out)
    x = _nonempty("min", number_operand("min", a), axis, initial, where)
    return reduce_axes("min", x, axis, keepdims, reduction.reduce_min, greatest(x.dtype), where, initial, minimum)


amax = max
amin = min


@one_program
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """Compute the maximum minus the minimum over axes. Raises: ValueError if there is no element."""
    check_no_out("ptp", out)
    x = array_operand("ptp", a)
    if _is_empty("ptp", x, axis):
        raise ValueError(f"ptp: there is no element to choose along axis {axis} of {x.aval}.")
    return subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


def least(dtype: np.dtype[Any]) -> Any:
    """Return the least value of a dtype: -inf, or the least number of formats without infinities; False."""
    return False if dtypes.is_bool(dtype) else _end(dtype, -np.inf, "min")


def greatest(dtype: np.dtype[Any]) -> Any:
    """Return the greatest value of a dtype: inf, or the greatest number of formats without infinities; True."""
    return True if dtypes.is_bool(dtype) else _end(dtype, np.inf, "max")


def _end(dtype: np.dtype[Any], infinity: float, end: str) -> int | float:
    if dtypes.is_integer(dtype):
        return int(getattr(dtypes.iinfo(dtype), end))
    has_infinities = dtypes.bits_of(dtype) > 8 or np.isinf(np.asarray(infinity).astype(dtype))
    return infinity if has_infinities else float(getattr(dtypes.finfo(dtype), end))


def _nonempty(name: str, x: Array, axis: Axis, initial: Any, where: Any) -> Array:
    if where is not None and initial is None:
        raise ValueError(
            f"{find_called(name)}: with `where` there may be no element left; give `initial` for that case."
        )
    if initial is None and _is_empty(name, x, axis):
        raise ValueError(
            f"{find_called(name)}: there is no element to choose along axis {axis} of {x.aval}; give `initial`."
        )
    return x


def _is_empty(name: str, x: Array, axis: Axis) -> bool:
    return 0 in [x.shape[i] for i in checked_axes(name, x, axis)]


@one_program
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Find the position of the maximum along `axis`, or in the flat array: of the first nan, or the first of ties.

    Complex numbers are compared by their real parts, then by their imaginary parts, as in NumPy.
    """
    check_no_out("argmax", out)
    return _position("argmax", a, axis, keepdims, reduction.argmax)


@one_program
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Find the position of the minimum along `axis`, or in the flat array: of the first nan, or the first of ties."""
    check_no_out("argmin", out)
    return _position("argmin", a, axis, keepdims, reduction.argmin)


def _position(name: str, a: ArrayLike, axis: int | None, keepdims: bool | None, find: Any) -> Array:
    x = array_operand(name, a)
    if dtypes.is_complex(x.dtype):
        find = partial(_first_extreme, reduction.reduce_max if find is reduction.argmax else reduction.reduce_min)
    ndim = x.aval.ndim
    if axis is None:
        found = find(reshape(x, (x.size,)), 0, dtypes.default_dtype("i"))
        return expand_dims(found, tuple(range(ndim))) if keepdims and ndim else found
    axis = canonical_axis(axis, ndim)
    found = find(x, axis, dtypes.default_dtype("i"))
    return expand_dims(found, (axis,)) if keepdims else found


def _first_extreme(extreme: Any, x: Array, axis: int, dtype: Any) -> Array:
    """Find the position of the first nan, or else of the first element that is the extreme."""
    is_extreme = lax.eq(x, expand_dims(extreme(x, (axis,)), (axis,)))
    return reduction.argmax(choose_between(lax.ne(x, x), 2, choose_between(is_extreme, 1, 0)), axis, dtype)


# ---- logic ---------------------------------------------------------------------------------------------------


@one_program
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Test whether any element over axes is true."""
    check_no_out("any", out)
    x = truth("any", array_operand("any", a))
    return reduce_axes("any", x, axis, keepdims, reduction.reduce_or, False, where, None, add_arrays)


@one_program
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Test whether all elements over axes are true."""
    check_no_out("all", out)
    x = truth("all", array_operand("all", a))
    return reduce_axes("all", x, axis, keepdims, reduction.reduce_and, True, where, None, add_arrays)


@one_program
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the nonzero elements over axes."""
    return sum(truth("count_nonzero", array_operand("count_nonzero", a)), axis, keepdims=keepdims)


# ---- cumulative ----------------------------------------------------------------------------------------------


@one_program
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Compute the cumulative sum along `axis`, or of the flat array if None."""
    check_no_out("cumsum", out)
    return _cumulative("cumsum", a, axis, dtype, reduction.cumsum)


@one_program
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Compute the cumulative product along `axis`, or of the flat array if None."""
    check_no_out("cumprod", out)
    return _cumulative("cumprod", a, axis, dtype, reduction.cumprod)


@one_program
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative sum along an axis, which may be omitted for vectors.

    Booleans and narrow integers are summed in the default integer, as by `sum`, where `cumsum` keeps integers narrow.

    Args:
      include_initial: begin with 0.
    Raises: ValueError if `axis` is left out for what is no vector, or out of range.
    Source: the array API standard.
    """
    return _running("cumulative_sum", x, axis, dtype, include_initial, reduction.cumsum, 0)


@one_program
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Compute the cumulative product along an axis, optionally with an initial 1: see `cumulative_sum`."""
    return _running("cumulative_prod", x, axis, dtype, include_initial, reduction.cumprod, 1)


def _running(
    name: str, x: ArrayLike, axis: int | None, dtype: Any, include_initial: bool, primitive: Any, neutral: int
) -> Array:
    x = strong(_accumulated(name, x, dtype))
    if axis is None and x.ndim != 1:
        raise ValueError(f"{name}: axis is needed for an array of {x.ndim} axes: {x.aval}.")
    at = canonical_axis(0 if axis is None else axis, x.ndim, f"{name}: axis")
    found = _accumulate(primitive, x, at)
    if not include_initial:
        return found
    shape = [1 if d == at else n for d, n in enumerate(x.shape)]
    return concatenate([full(shape, neutral, found.dtype), found], at)


def _cumulative(name: str, a: ArrayLike, axis: int | None, dtype: Any, primitive: Any) -> Array:
    x = strong(_accumulated(name, a, dtype, promote_integers=False))
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    return _accumulate(primitive, x, canonical_axis(axis, x.aval.ndim))


def _accumulate(primitive: Any, x: Array, axis: int) -> Array:
    """Accumulate sums or products along an axis; of booleans the largest, or the smallest, so far."""
    if dtypes.is_bool(x.dtype):
        primitive = reduction.cummax if primitive is reduction.cumsum else reduction.cummin
    return primitive(x, axis)


# ---- nan is skipped ------------------------------------------------------------------------------------------


@one_program
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum over axes of the elements that are not nan."""
    check_no_out("nansum", out)
    return sum(without_nan("nansum", a, 0), axis, dtype, None, keepdims, initial, where)


@one_program
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiply the elements over axes, ignoring nan."""
    check_no_out("nanprod", out)
    return prod(without_nan("nanprod", a, 1), axis, dtype, None, keepdims, initial, where)


@one_program
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the maximum over axes, ignoring nan; nan if all elements are nan."""
    check_no_out("nanmax", out)
    return _nan_extreme("nanmax", a, axis, keepdims, initial, where, max, least)


@one_program
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the minimum over axes, ignoring nan; nan if all elements are nan."""
    check_no_out("nanmin", out)
    return _nan_extreme("nanmin", a, axis, keepdims, initial, where, min, greatest)


@one_program
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Find the position of the maximum, ignoring nan; -1 if all elements are nan."""
    check_no_out("nanargmax", out)
    return _nan_position("nanargmax", a, axis, keepdims, argmax, least)


@one_program
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """Find the position of the minimum, ignoring nan; -1 if all elements are nan."""
    check_no_out("nanargmin", out)
    return _nan_position("nanargmin", a, axis, keepdims, argmin, greatest)


@one_program
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Compute the cumulative sum, counting nan as 0: see `cumsum`."""
    check_no_out("nancumsum", out)
    return cumsum(without_nan("nancumsum", a, 0), axis, dtype)


@one_program
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Compute the cumulative product, counting nan as 1: see `cumprod`."""
    check_no_out("nancumprod", out)
    return cumprod(without_nan("nancumprod", a, 1), axis, dtype)


def without_nan(name: str, a: ArrayLike, instead: Any) -> Array:
    """Replace the nan in a."""
    x = array_operand(name, a)
    return choose_between(isnan(x), cast(instead, x.dtype), x) if dtypes.is_inexact(x.dtype) else x


def _nan_extreme(
    name: str,
    a: ArrayLike,
    axis: Axis,
    keepdims: bool,
    initial: Any,
    where: Any,
    extreme: Any,
    neutral: Callable[[Any], Any],
) -> Array:
    x = array_operand(name, a)
    found = extreme(without_nan(name, x, neutral(x.dtype)), axis, None, keepdims, initial, where)
    if not dtypes.is_inexact(x.dtype) or initial is not None:
        return found
    return choose_between(all(isnan(x), axis, keepdims=keepdims), np.nan, found)


def _nan_position(name: str, a: ArrayLike, axis: int | None, keepdims: bool | None, find: Any, neutral: Any) -> Array:
    x = array_operand(name, a)
    found = find(without_nan(name, x, neutral(x.dtype)), axis, keepdims=keepdims)
    if not dtypes.is_inexact(x.dtype):
        return found
    return choose_between(all(isnan(x), axis, keepdims=bool(keepdims)), -1, found)
