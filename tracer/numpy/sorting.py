"""Sorting and searching: sort, argsort, searchsorted, nonzero, where, bincount. See also sets.py and histograms.py.

If the shape of the result depends on elements, these must be known, or `size` must give the length of the result.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.arithmetic import maximum, select
from tapeless.tracer.numpy.at import AtIndexer
from tapeless.tracer.numpy.index_plan import index_dtype
from tapeless.tracer.numpy.indexing import getitem, take
from tapeless.tracer.numpy.joining import unstack
from tapeless.tracer.numpy.logic import choose_between, truth
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    cast,
    check_operands,
    concrete,
    convert_fitting,
    mixing_inside,
    operand,
    promoted_dtypes,
)
from tapeless.tracer.primitives import bits, sorting
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis, exact_integer
from tapeless.tracer.primitives.reduction import cumsum
from tapeless.tracer.primitives.shape import (
    broadcast_in_dim,
    broadcasted_iota,
    concatenate,
    expand_dims,
    full,
    reshape,
    rev,
    slice_in_dim,
)
from tapeless.tracer.types import aval_of, by_protocol, exact

# ---- sorting -------------------------------------------------------------------------------------------------


@one_program
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sort along `axis`; nan comes last, or first if `descending`.

    Args:
      axis: the array is flattened if None.
      kind: one of NumPy's algorithms, by name; has no effect.
      order: None, since arrays have no fields.
      stable: whether elements that compare equal, such as 0.0 and -0.0, keep their order.
    Raises: ValueError if there is no such axis or kind, or fields are named.
    """
    _check_options("sort", kind, order)
    x, axis = _along("sort", a, axis)
    found = sorting.sort(x, axis, stable)
    return rev(found, (axis,)) if descending else found


@one_program
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: str | None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Find the positions that sort a along `axis`, stably; nan comes last, or first if `descending`.

    Args:
      axis: the array is flattened if None.
      kind, order: as in `sort`.
      dtype: of the positions, the default integer if None.
    Returns: the shape of a, or [a.size].
    Raises: ValueError as `sort`; TypeError if `dtype` is no integer dtype; OverflowError if it does not hold the
      positions.
    """
    _check_options("argsort", kind, order)
    x, axis = _along("argsort", a, axis)
    index = dtypes.default_dtype("i") if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_integer(index):
        raise TypeError(f"argsort: positions are integers, which {index} are not.")
    dtypes.check_fits(max(x.shape[axis] - 1, 0), index)
    return _argsort(x, axis=axis, stable=stable, descending=descending, dtype=index)


@core.compound
def _argsort(x: Array, *, axis: int, stable: bool, descending: bool, dtype: np.dtype[Any]) -> Array:
    """Sort positions along with x; descending by reversing operands and result, so that ties stay in order."""
    places = broadcasted_iota(dtype, x.shape, axis)
    if not descending:
        return sorting.sort((x, places), axis, stable, num_keys=1)[1]
    return rev(sorting.sort((rev(x, (axis,)), rev(places, (axis,))), axis, stable, num_keys=1)[1], (axis,))


_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _check_options(name: str, kind: Any, order: Any) -> None:
    if kind not in _KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(map(repr, _KINDS))}, not {kind!r}.")
    if order is not None:
        raise ValueError(f"{name}: order={order!r} names fields, which no array here has.")


def _along(name: str, a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    x = array_operand(name, a)
    if axis is None or (name == "argsort" and not x.ndim):  # of a scalar as of a vector, as in NumPy
        x, axis = reshape(x, (x.size,)), axis or 0
    return x, canonical_axis(axis, x.ndim, f"{name}: axis")


def lexsort(keys: Sequence[ArrayLike] | Array, axis: int = -1) -> Array:
    """Find the positions that sort by the last key, ties by the key before it, and so on.

    Args:
      keys: a sequence of arrays of one shape, or an array that is split along its first axis.
    Returns: positions along `axis`, of the keys' shape, in the default integer.
    Raises: TypeError if there are no keys.
    """
    xs = [array_operand("lexsort", k) for k in (unstack(keys) if isinstance(keys, Array) else keys)]
    if not xs:
        raise TypeError("lexsort: there must be at least one key.")
    axis = canonical_axis(axis, xs[0].ndim)
    return _places_by_keys(*xs[::-1], axis=axis)


@core.compound
def _places_by_keys(*keys: Array, axis: int) -> Array:
    places = broadcasted_iota(dtypes.default_dtype("i"), keys[0].shape, axis)
    return sorting.sort((*keys, places), axis, num_keys=len(keys))[-1]


@one_program
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Put the element at `kth` along `axis` where sorting would put it, smaller ones before and others behind it.

    It is computed by sorting. Raises: ValueError if `kth` or `axis` is out of range.
    """
    _check_place("partition", a, kth, axis)
    return sort(a, axis)


@one_program
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Find the positions that partition a along `axis`. Args, Raises: as for `partition`."""
    _check_place("argpartition", a, kth, axis)
    return argsort(a, axis)


def _check_place(name: str, a: ArrayLike, kth: Any, axis: int) -> None:
    x, axis = _along(name, a, axis)
    n = x.shape[axis]
    if not all(-n <= operator.index(k) < n for k in np.atleast_1d(kth)):
        raise ValueError(f"{name}: kth {kth} is out of range for {n} elements, those of {x.aval} along axis {axis}.")


@one_program
def sort_complex(a: ArrayLike) -> Array:
    """Sort along the last axis, as complex numbers: by real, then imaginary part."""
    x = array_operand("sort_complex", a)
    return sort(x if dtypes.is_complex(x.dtype) else lax.convert_element_type(x, dtypes.complex_of(x.dtype)))


# ---- searching -----------------------------------------------------------------------------------------------


@one_program
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Array:
    """Find where elements v would be inserted into the sorted vector a to keep it sorted (binary search).

    Args:
      v: [k..].
      side: "left" for the position before equal elements, "right" for that behind them.
      sorter: positions that sort a, if a is not sorted.
      method: has no effect; JAX has this parameter.
    Returns: [k..] positions from 0 to the length of a, of the default integer if it holds them.
    Raises: ValueError if a is not a vector, for another `side`, or a method that JAX does not have.
    """
    _check_method("searchsorted", method)
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', not {side!r}.")
    x, y = (as_array(u) for u in promoted_dtypes("searchsorted", a, v))
    if x.ndim != 1:
        raise ValueError(f"searchsorted: a must be a vector, not {x.aval}.")
    x = x if sorter is None else take(x, sorter)
    return _searchsorted(x, y, left=side == "left", dtype=max(index_dtype(x.size), dtypes.default_dtype("i")))


@core.compound
def _searchsorted(x: Array, y: Array, *, left: bool, dtype: np.dtype[Any]) -> Array:
    """Search for all elements at once by bisection, a step for each bit of the position; nan exceeds any number."""
    n = x.shape[0]
    low, high = full(y.shape, 0, np.int32), full(y.shape, n, np.int32)
    for _ in range(math.ceil(math.log2(n + 1)) if n else 0):
        middle = lax.div(lax.add(low, high), 2)
        element = take(x, middle, mode="clip")
        before = _precedes(element, y) if left else bits.bitwise_not(_precedes(y, element))
        before = bits.bitwise_and(before, lax.lt(low, high))
        low, high = select(before, lax.add(middle, 1), low), select(before, high, middle)
    return lax.convert_element_type(low, dtype)


def _precedes(x: Array, y: Array) -> Array:
    """Tell whether x sorts before y: complex numbers by real, then imaginary part; nan last."""
    if dtypes.is_complex(x.dtype):
        same = bits.bitwise_and(lax.eq(lax.real(x), lax.real(y)), lax.lt(lax.imag(x), lax.imag(y)))
        less = bits.bitwise_or(lax.lt(lax.real(x), lax.real(y)), same)
    else:
        less = lax.lt(x, y)
    if not dtypes.is_inexact(x.dtype):
        return less
    return bits.bitwise_or(less, bits.bitwise_and(lax.ne(y, y), lax.eq(x, x)))


def _check_method(name: str, method: str | None) -> None:
    if method not in (None, "scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"{name}: there is no method {method!r}.")


@one_program
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """Find the bin of each element, for bins with ascending or descending edges.

    Args:
      bins: a vector of edges.
      right: whether the edges belong to the bins below them, (lower, upper]; else to those above, [lower, upper).
      method: has no effect; JAX has this parameter.
    Returns: the shape of x, positions from 0 to the number of edges.
    Raises: ValueError if bins are no vector, or for a method that JAX does not have.
    """
    _check_method("digitize", method)
    values, edges = array_operand("digitize", x), array_operand("digitize", bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, not {edges.aval}.")
    if not edges.size:
        return full(values.shape, 0, dtypes.default_dtype("i"))
    rising = searchsorted(edges, values, "left" if right else "right")
    falling = lax.sub(edges.size, searchsorted(rev(edges, (0,)), values, "left" if right else "right"))
    return choose_between(lax.ge(getitem(edges, -1), getitem(edges, 0)), rising, falling)


# ---- nonzero and where ---------------------------------------------------------------------------------------

_SIZE_HELP = "Give `size`, the length of the result, and `fill_value`, which fills it up."


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """Find the positions of the nonzero elements: one vector for each axis.

    Args:
      size: length of the result, which is cut or filled up; needed if a is traced.
      fill_value: fills up the result: a position or one for each axis; 0 if None.
    Returns: a tuple of vectors of the default integer.
    Raises: ConcretizationTypeError if a is traced and there is no size; ValueError for an array without axes.
    """
    x = array_operand("nonzero", a)
    if not x.ndim:
        raise ValueError("nonzero: an array without axes has no positions. Use tnp.atleast_1d(x).")
    if size is None:
        found = np.nonzero(concrete("nonzero", a, _SIZE_HELP))
        return tuple(as_array(i.astype(dtypes.default_dtype("i"))) for i in found)
    fill_value = 0 if fill_value is None else fill_value
    dtype = dtypes.default_dtype("i")
    fills = [_fill(v, dtype) for v in ((fill_value,) * x.ndim if np.ndim(fill_value) == 0 else fill_value)]
    return tuple(_nonzero(truth("nonzero", x), *fills, size=exact_integer(size, "nonzero: size"), dtype=dtype))


def _fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a position to fill up with, which may be traced, to `dtype`. Raises: TypeError if it is no integer."""
    if not isinstance(value, Array):
        return np.asarray(convert_fitting(operator.index(value), dtype))
    if not dtypes.is_integer(value.dtype):
        raise TypeError(f"nonzero: fill_value must be an integer, not {value.aval}.")
    return cast(value, dtype)


@core.compound
def _nonzero(mask: Array, *fills: Any, size: int, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """Find true elements: the k-th is where the running count first exceeds k."""
    flat = reshape(mask, (mask.size,))
    if not mask.size or not size:
        return tuple(full((size,), fill, dtype) for fill in fills)
    counts = cumsum(lax.convert_element_type(flat, dtype))
    order = broadcasted_iota(dtype, (size,), 0)
    places = _searchsorted(counts, order, left=False, dtype=dtype)
    beyond = lax.ge(order, broadcast_in_dim(slice_in_dim(counts, -1, None), (size,), (0,)))
    found = []
    for n, step, fill in zip(mask.shape, _strides(mask.shape), fills, strict=True):
        along = lax.rem(lax.div(places, step), n)
        found.append(select(beyond, fill, along))
    return tuple(found)


def _strides(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Find the positions of the nonzero elements in the flattened array. Args, Raises: as for `nonzero`."""
    flat = np.ravel(a) if isinstance(a, np.ndarray) else array_operand("flatnonzero", a)
    return nonzero(flat if flat.ndim == 1 else reshape(flat, (flat.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Find the positions of the nonzero elements, as the rows of a matrix with a column for each axis.

    Args, Raises: as for `nonzero`.
    """
    a = by_protocol(a)
    if not np.ndim(a):
        check_operands("argwhere", a)
        x = reshape(a, (1,)) if isinstance(a, Array) else np.reshape(a, (1,))
        return slice_in_dim(argwhere(x, size=size, fill_value=fill_value), 0, 0, axis=1)
    return concatenate([expand_dims(i, (1,)) for i in nonzero(a, size=size, fill_value=fill_value)], 1)


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def where(condition: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]: ...
@one_program
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Select x where `condition` is true, else y; all are broadcast, x and y promoted. `where(c)` is `nonzero(c)`.

    The operand that is not selected has derivative 0, also where it is nan or infinite.

    Raises: ValueError if only one of x and y is given, or shapes do not broadcast; as `nonzero`.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: give both x and y, or neither.")
    return choose_between(condition, x, y)


# ---- counting ------------------------------------------------------------------------------------------------


@mixing_inside
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None) -> Array:
    """Count the occurrences of each number from 0 on in the integer vector x, or sum their weights.

    Args:
      x: [n]; negative numbers count as 0.
      weights: [n], the amounts that are added; 1 if None.
      minlength: the least length of the result, if `length` is None.
      length: length of the result, where greater numbers are dropped; needed if x is traced.
    Returns: a vector of the dtype of weights; of the default integer if these are None or boolean.
    Raises: TypeError if x is no vector of integers; ConcretizationTypeError if it is traced and there is no length.
    """
    v = operand("bincount", x)
    if v.ndim != 1 or not (dtypes.is_integer(v.dtype) or dtypes.is_bool(v.dtype)):
        raise TypeError(f"bincount: x must be a vector of integers, not {aval_of(v)}.")
    if length is None:
        known = concrete("bincount", v, "Give `length`, the length of the result.")
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    counted = exact(1, dtypes.default_dtype("i")) if weights is None else array_operand("bincount", weights)
    if counted.shape not in ((), (1,), v.shape):
        raise ValueError(f"bincount: weights {aval_of(counted)} must have the shape of x, {aval_of(v)}.")
    counted = cast(counted, dtypes.default_dtype("i")) if dtypes.is_bool(counted.dtype) else counted
    empty = full((length,), 0, counted.dtype)
    return AtIndexer(empty, maximum(v, 0)).add(counted, mode="drop")
