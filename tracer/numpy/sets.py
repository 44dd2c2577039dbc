"""Sets: unique elements, membership, unions and intersections. They must be known where a shape depends on them."""

from typing import Any, NamedTuple

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.indexing import take
from tapeless.tracer.numpy.promotion import array_operand, as_array, concrete, promoted_dtypes
from tapeless.tracer.numpy.sorting import searchsorted, sort
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.shape import full, reshape

_SIZE_HELP = "Give `size`, the length of the result."


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
) -> Any:
    """The distinct elements in order, with first positions, positions to rebuild the array, and counts if asked for.

    Args:
      axis: whose parts are compared; the elements of the flat array if None.
      size: length of the result, which is cut or filled up with `fill_value`, the least element if None.
    Raises: ConcretizationTypeError if the array is traced.
    """
    known = concrete("unique", array_operand("unique", ar), "Its length depends on the elements: compute it outside.")
    values, first, inverse, counts = np.unique(known, True, True, True, axis=axis, equal_nan=equal_nan)
    if size is not None:
        values = _sized(values, size, fill_value, axis)
        first, counts = _sized(first, size, None), _sized(counts, size, 0)
    index = dtypes.default_dtype("i")
    wanted = [(values, True), (first.astype(index), return_index)]
    wanted += [(inverse.astype(index), return_inverse), (counts.astype(index), return_counts)]
    outs = [as_array(np.ascontiguousarray(v)) for v, asked in wanted if asked]
    return tuple(outs) if len(outs) > 1 else outs[0]


def _sized(values: np.ndarray[Any, Any], size: int, fill: Any, axis: int | None = None) -> np.ndarray[Any, Any]:
    along = axis or 0
    kept = np.take(values, range(min(size, values.shape[along])), axis=along)
    missing = size - kept.shape[along]
    if not missing:
        return kept
    shape = (*kept.shape[:along], missing, *kept.shape[along + 1 :])
    filler = np.take(values, [0], axis=along) if fill is None else np.asarray(fill, values.dtype)
    return np.concatenate([kept, np.broadcast_to(filler, shape)], along)


class UniqueAll(NamedTuple):
    """Distinct values, their first positions, positions to rebuild the array, and counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The distinct elements in order."""
    return unique(x, size=size, fill_value=fill_value, equal_nan=False)


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """The distinct elements in order, first positions, positions to rebuild the array, and counts."""
    return UniqueAll(*unique(x, True, True, True, size=size, fill_value=fill_value, equal_nan=False))


class UniqueCounts(NamedTuple):
    """Distinct values and their counts."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct values and positions to rebuild the array."""

    values: Array
    inverse_indices: Array


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The distinct elements in order, and how often each is there."""
    return UniqueCounts(*unique(x, return_counts=True, size=size, fill_value=fill_value, equal_nan=False))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The distinct elements in order, and positions to rebuild the array."""
    return UniqueInverse(*unique(x, return_inverse=True, size=size, fill_value=fill_value, equal_nan=False))


def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False) -> Array:
    """Whether each element is among `test_elements`."""
    x, tests = (as_array(v) for v in promoted_dtypes("isin", element, test_elements))
    return _isin(x, reshape(tests, (tests.size,)), invert=invert)


@core.compound
def _isin(x: Array, tests: Array, *, invert: bool) -> Array:
    """The element at the place where it would be in the sorted tests is equal, or none is."""
    if not tests.size:
        return full(x.shape, invert)
    ordered = sort(tests)
    found = lax.eq(take(ordered, searchsorted(ordered, x), mode="clip"), x)
    return bits.bitwise_not(found) if invert else found


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The distinct elements of both, in order."""
    return unique(_joined("union1d", ar1, ar2), size=size, fill_value=fill_value)


def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """The distinct elements that are in both, in order."""
    x, y = _known("intersect1d", ar1, ar2)
    return as_array(np.intersect1d(x, y, assume_unique))


def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """The distinct elements of the first that are not in the second, in order."""
    x, y = _known("setdiff1d", ar1, ar2)
    return as_array(np.setdiff1d(x, y, assume_unique))


def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False) -> Array:
    """The distinct elements that are in one of both only, in order."""
    x, y = _known("setxor1d", ar1, ar2)
    return as_array(np.setxor1d(x, y, assume_unique))


def _known(name: str, *xs: ArrayLike) -> list[np.ndarray[Any, Any]]:
    help = "The length of the result depends on the elements: compute it outside."
    return [concrete(name, x, help).ravel() for x in promoted_dtypes(name, *xs)]


def _joined(name: str, *xs: ArrayLike) -> np.ndarray[Any, Any]:
    return np.concatenate(_known(name, *xs))
