"""Sets: unique elements, membership, unions, intersections and differences.

If the shape of the result depends on elements, these must be known, or `size` must give the length of the result.
"""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import select
from tapeless.tracer.numpy.indexing import take
from tapeless.tracer.numpy.joining import unstack
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    as_weak_as,
    broadcast_to_shape,
    concrete,
    promoted_dtypes,
)
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.numpy.sorting import nonzero, searchsorted, sort
from tapeless.tracer.primitives import bits, sorting
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.reduction import cumsum
from tapeless.tracer.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    full,
    reshape,
    slice_in_dim,
)
from tapeless.tracer.types import aval_of, by_protocol

_SIZE_HELP = "Give `size`, the length of the result, and `fill_value`, which fills it up."


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """Find the distinct elements, sorted; on request their first positions, the inverse, and counts.

    The inverse gives for each element its position among the distinct ones.

    Args:
      axis: compare the slices along this axis; None for the elements of the flattened array.
      equal_nan: whether all nan count as one, if elements are compared; slices with nan are all distinct.
      size: length of the result, which is cut or filled up; needed if the array is traced.
      fill_value: fills up the result, the least element if None.
      sorted: has no effect; the result is always sorted.
    Returns: the distinct elements, or a tuple of the results in the order of the parameters. Filled up, positions are
      the first one's and counts are 0; the inverse is not cut.
    Raises: ConcretizationTypeError if the array is traced and there is no size; ValueError for an axis out of range,
      or if an array without elements is to be filled up and there is no fill_value.
    """
    x, index = array_operand("unique", ar), dtypes.default_dtype("i")
    wanted = (True, return_index, return_inverse, return_counts)
    if size is None:
        known = _comparable(concrete("unique", ar, _SIZE_HELP))
        found = np.unique(known, True, True, True, axis=axis, equal_nan=equal_nan)
        values = take(x, found[1], axis) if _is_differentiated(x) else as_array(found[0].astype(x.dtype))
        found = [as_weak_as(values, x), *(places.astype(index) for places in found[1:])]
    else:
        found = _unique_of_size(x, axis, operator.index(size), fill_value, equal_nan, index)
    outs = [as_array(np.asarray(v, order="C") if isinstance(v, np.ndarray) else v) for v, k in zip(found, wanted) if k]
    return tuple(outs) if len(outs) > 1 else outs[0]


def _unique_of_size(
    x: Array, axis: int | None, size: int, fill_value: Any, equal_nan: bool, index: np.dtype[Any]
) -> tuple[Array, ...]:
    """Compute `unique` for a given size; the inverse has the shape of x if x is flattened."""
    shape, flat = x.shape, axis is None
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis(axis, x.ndim)
    if size < 0:
        raise ValueError(f"unique: size must be at least 0, not {size}.")
    if fill_value is None and size and not x.shape[axis]:
        raise ValueError(f"unique: {x.aval} has no elements to fill size={size} with. Give fill_value.")
    fill = () if fill_value is None else (array_operand("unique", fill_value),)
    found = _unique(x, *fill, axis=axis, size=size, equal_nan=equal_nan and flat, dtype=index)
    return (*found[:2], reshape(found[2], shape), found[3]) if flat else found


def _comparable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert bfloat16 and other dtypes foreign to NumPy, in which it does not compare nan as unequal."""
    if x.dtype.kind != "V":
        return x
    return x.astype(np.float32 if dtypes.is_float(x.dtype) else np.int32)


def _is_differentiated(*xs: ArrayLike) -> bool:
    """Tell whether some x is a tracer: results must be gathered from it, as copies by NumPy have no derivative."""
    return any(isinstance(by_protocol(x), core.Tracer) for x in xs)


@core.compound
def _unique(x: Array, *fill: Array, axis: int, size: int, equal_nan: bool, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Find the unique elements as those that differ from the element before them in sorted order.

    Returns: values, first positions, inverse and counts, all as if there were `size` distinct elements.
    """
    n = x.shape[axis]
    order, new = _runs(x, axis, equal_nan, dtype)
    starts = nonzero(new, size=size + 1, fill_value=n)[0]
    begin, counts = slice_in_dim(starts, 0, -1), lax.sub(slice_in_dim(starts, 1, None), slice_in_dim(starts, 0, -1))
    there = lax.lt(begin, n)
    first = take(order, select(there, begin, 0), mode="clip") if n else full((size,), 0, dtype)
    values = (
        take(x, first, axis=axis, mode="clip") if n else full((*x.shape[:axis], size, *x.shape[axis + 1 :]), 0, x.dtype)
    )
    if fill:
        kept = broadcast_in_dim(there, values.shape, (axis,))
        values = select(kept, values, broadcast_to_shape(lax.convert_element_type(fill[0], x.dtype), values.shape))
    rank = lax.sub(cumsum(lax.convert_element_type(new, dtype)), 1)
    return values, first, sorting.sort((order, rank), num_keys=1)[1], counts


def _runs(x: Array, axis: int, equal_nan: bool, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the positions along `axis` that sort x lexicographically, and a mask of where a new value begins."""
    n = x.shape[axis]
    rows = reshape(moveaxis(x, axis, 0), (n, x.size // n if n else 0))
    if dtypes.is_complex(x.dtype):
        rows = select(lax.ne(rows, rows), np.nan, rows)  # numbers with one nan are sorted by the other part
    keys = unstack(rows, axis=1)
    order = broadcasted_iota(dtype, (n,), 0)
    *keys, order = sorting.sort((*keys, order), 0, num_keys=len(keys)) if keys else (order,)
    differs = full((max(n - 1, 0),), False)
    for key in keys:
        before, after = slice_in_dim(key, 0, -1), slice_in_dim(key, 1, None)
        differs = bits.bitwise_or(differs, _differ(before, after, equal_nan))
    return order, concatenate([full((min(n, 1),), True), differs], 0)


def _differ(x: Array, y: Array, equal_nan: bool) -> Array:
    differ = lax.ne(x, y)
    if not (equal_nan and dtypes.is_inexact(x.dtype)):
        return differ
    return bits.bitwise_and(differ, bits.bitwise_or(lax.eq(x, x), lax.eq(y, y)))


class UniqueAll(NamedTuple):
    """Distinct values, their first positions, the inverse, and counts: see `unique`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Find the distinct elements, sorted; each nan is distinct. `size`, `fill_value`, Raises: as for `unique`."""
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """Find the distinct elements, sorted, with first positions, the inverse, and counts; each nan is distinct.

    `size`, `fill_value`, Raises: as for `unique`.
    """
    return UniqueAll(*unique(x, True, True, True, size=size, fill_value=fill_value, equal_nan=False))


class UniqueCounts(NamedTuple):
    """Distinct values and their counts."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct values and the inverse: for each element its position among the values."""

    values: Array
    inverse_indices: Array


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """Find the distinct elements, sorted, and count each; each nan is distinct.

    `size`, `fill_value`, Raises: as for `unique`.
    """
    return UniqueCounts(*unique(x, return_counts=True, size=size, fill_value=fill_value, equal_nan=False))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """Find the distinct elements, sorted, and for each element its position among them; each nan is distinct.

    `size`, `fill_value`, Raises: as for `unique`.
    """
    return UniqueInverse(*unique(x, return_inverse=True, size=size, fill_value=fill_value, equal_nan=False))


@one_program
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Tell whether each element is among `test_elements`, or is not if `invert`; nan is not.

    Args:
      element: [k..]. test_elements: of any shape.
      assume_unique, method: have no effect; JAX has these parameters.
    Returns: [k..], booleans.
    Raises: ValueError for a method that JAX does not have.
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: there is no method {method!r}.")
    x, tests = (as_array(v) for v in promoted_dtypes("isin", element, test_elements))
    return _isin(x, reshape(tests, (tests.size,)), invert=invert)


@core.compound
def _isin(x: Array, tests: Array, *, invert: bool) -> Array:
    """Look up each element in the sorted tests by binary search, and compare."""
    if not tests.size:
        return full(x.shape, invert)
    ordered = sort(tests)
    found = lax.eq(take(ordered, searchsorted(ordered, x), mode="clip"), x)
    return bits.bitwise_not(found) if invert else found


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Find the distinct elements of both arrays, sorted; `size` and `fill_value` as in `unique`.

    Raises: ConcretizationTypeError if one is traced and there is no size.
    """
    if size is None:
        found = _of_known("union1d", np.union1d, ar1, ar2)
        if not _is_differentiated(ar1, ar2):
            return found
        size = found.size
    return unique(concatenate(_vectors("union1d", ar1, ar2), 0), size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Find the distinct elements that both arrays hold, sorted; on request their first positions in each.

    Args:
      assume_unique: a promise that neither array repeats an element.
      size: length of the result, which is cut or filled up; needed if an array is traced.
      fill_value: fills up the elements, the least common one if None; positions are filled with the arrays' sizes.
    Returns: the elements, or with `return_indices` also their positions in both flattened arrays.
    Raises: ConcretizationTypeError if one is traced and there is no size.
    """
    if size is None:
        if not return_indices and not _is_differentiated(ar1, ar2):
            return _of_known("intersect1d", np.intersect1d, ar1, ar2, assume_unique)
        left, right = (_comparable(x) for x in _known_vectors("intersect1d", ar1, ar2))
        found, *places = np.intersect1d(left, right, assume_unique, return_indices=True)
        dtype = promoted_dtypes("intersect1d", ar1, ar2)[0].dtype
        values = take(_vectors("intersect1d", ar1, ar2)[0], places[0]) if _is_differentiated(ar1, ar2) else found
        values = lax.convert_element_type(values, dtype)
        where = [as_array(i.astype(dtypes.default_dtype("i"))) for i in places]
        return (values, *where) if return_indices else values
    x, y = _vectors("intersect1d", ar1, ar2)
    values, first, second = _intersection(x, y, size=operator.index(size), dtype=dtypes.default_dtype("i"))
    values = _filled_up(values, lax.lt(first, x.size), fill_value)
    return (values, first, second) if return_indices else values


@core.compound
def _intersection(x: Array, y: Array, *, size: int, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    order, new = _runs(x, 0, True, dtype)
    ordered = take(x, order, mode="clip")
    places = nonzero(bits.bitwise_and(new, _isin(ordered, y, invert=False)), size=size, fill_value=x.size)[0]
    values = _at(ordered, places, 0)
    there, other = lax.lt(places, x.size), _runs(y, 0, True, dtype)[0]
    second = _at(other, searchsorted(take(y, other, mode="clip"), values), y.size)
    first = _at(order, places, x.size)
    return values, first, select(there, second, y.size)


def _filled_up(values: Array, there: Array, fill_value: Any) -> Array:
    """Replace the elements where `there` is false by `fill_value`, or by the first element if it is None."""
    if not values.size:
        return values
    fill = slice_in_dim(values, 0, 1) if fill_value is None else array_operand("fill_value", fill_value)
    return select(there, values, broadcast_to_shape(lax.convert_element_type(fill, values.dtype), values.shape))


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Find the distinct elements of the first array that are not in the second, sorted unless `assume_unique`.

    Args:
      assume_unique: a promise that neither array repeats an element; elements then keep their order.
      size: length of the result, which is cut or filled up; needed if an array is traced.
      fill_value: fills up the result, 0 if None.
    Returns: a vector in the dtype of ar1.
    Raises: ConcretizationTypeError if one is traced and there is no size.
    """
    own = aval_of(by_protocol(ar1)).dtype
    if size is None:
        known = lax.convert_element_type(_of_known("setdiff1d", np.setdiff1d, ar1, ar2, assume_unique), own)
        if not _is_differentiated(ar1, ar2):
            return as_weak_as(known, ar1)
        size = known.size
    x, y = _vectors("setdiff1d", ar1, ar2)
    found, there = _difference(x, y, size=operator.index(size), ordered=bool(assume_unique))
    found = lax.convert_element_type(_filled_up(found, there, 0 if fill_value is None else fill_value), own)
    return as_weak_as(found, ar1)


@core.compound
def _difference(x: Array, y: Array, *, size: int, ordered: bool) -> tuple[Array, Array]:
    kept = _isin(x, y, invert=True)
    if not ordered:
        order, new = _runs(x, 0, True, np.dtype(np.int32))
        x, kept = take(x, order, mode="clip"), bits.bitwise_and(new, take(kept, order, mode="clip"))
    places = nonzero(kept, size=size, fill_value=x.size)[0]
    return _at(x, places, 0), lax.lt(places, x.size)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Find the distinct elements that exactly one of the arrays holds, sorted.

    Args:
      assume_unique: a promise that neither array repeats an element.
      size: length of the result, which is cut or filled up; needed if an array is traced.
      fill_value: fills up the result, the least of these elements if None.
    Raises: ConcretizationTypeError if one is traced and there is no size.
    """
    if size is None:
        known = _of_known("setxor1d", np.setxor1d, ar1, ar2, assume_unique)
        if not _is_differentiated(ar1, ar2):
            return known
        size = known.size
    x, y = _vectors("setxor1d", ar1, ar2)
    (left, a), (right, b) = (_difference(u, v, size=u.size, ordered=False) for u, v in ((x, y), (y, x)))
    values, there = concatenate([left, right], 0), concatenate([a, b], 0)
    gone, values = sorting.sort((bits.bitwise_not(there), values), 0, num_keys=2)
    places = lax.select_n(gone, broadcasted_iota(np.int32, gone.shape, 0), full(gone.shape, gone.size, np.int32))
    places = concatenate([places, full((size,), gone.size, np.int32)], 0)
    places = slice_in_dim(places, 0, operator.index(size))
    found = _at(values, places, 0)
    return _filled_up(found, lax.lt(places, gone.size), fill_value)


def _at(x: Array, places: Array, fill: int) -> Array:
    """Gather from a vector, which may be empty; `fill` at positions outside."""
    return take(x, places, mode="fill", fill_value=fill) if x.size else full(places.shape, fill, x.dtype)


def _vectors(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Flatten both arrays, and promote them to their common dtype."""
    both = [as_array(v) for v in promoted_dtypes(name, x, y)]
    return [reshape(v, (v.size,)) for v in both]


def _known_vectors(name: str, x: ArrayLike, y: ArrayLike) -> list[np.ndarray[Any, Any]]:
    return [concrete(name, v, _SIZE_HELP).ravel() for v in promoted_dtypes(name, x, y)]


def _of_known(name: str, f: Callable[..., Any], x: ArrayLike, y: ArrayLike, *options: Any) -> Array:
    """Apply NumPy's function f to the known elements of both, in their common dtype."""
    known = _known_vectors(name, x, y)
    return as_weak_as(as_array(f(*map(_comparable, known), *options).astype(known[0].dtype)), x, y)
