"""Selection by masks or positions: compress, extract, delete, choose, place and put.

If the shape of the result depends on elements, these must be known, or `size` must give the length of the result.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes, folding
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.arithmetic import clip, remainder
from tapeless.tracer.numpy.at import AtIndexer
from tapeless.tracer.numpy.creation import asarray, ones
from tapeless.tracer.numpy.indexing import getitem, take, take_along_axis
from tapeless.tracer.numpy.joining import stack, unstack
from tapeless.tracer.numpy.logic import choose_between, truth
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_array,
    as_weak_as,
    broadcast_to_shape,
    cast,
    check_no_out,
    common_shape,
    concrete,
    promoted_all,
)
from tapeless.tracer.numpy.sorting import nonzero
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis, known_elements
from tapeless.tracer.primitives.reduction import cumsum
from tapeless.tracer.primitives.shape import expand_dims, full, reshape, slice_in_dim
from tapeless.tracer.types import aval_of, by_protocol

_SIZE_HELP = "Give `size`, the length of the result, and `fill_value`, which fills it up."

# ---- kept and deleted ----------------------------------------------------------------------------------------


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Select the slices of a along `axis` where the vector `condition` is true.

    Args:
      condition: [k]; k exceeds the length of the axis only by false elements.
      axis: the array is flattened if None.
      size: length of the result, which is cut or filled up; needed if `condition` is traced.
      fill_value: fills up the result.
    Returns: the shape of a, with the number of true elements, or `size`, along `axis`.
    Raises: ValueError if `condition` is no vector, or true beyond the axis; ConcretizationTypeError if it is traced and
      there is no size.
    """
    check_no_out("compress", out)
    x, axis = _along("compress", a, axis)
    mask = by_protocol(condition)
    if np.ndim(mask) != 1:
        raise ValueError(f"compress: the condition must be a vector, not {aval_of(mask)}.")
    if size is None:
        kept = np.flatnonzero(concrete("compress", mask, _SIZE_HELP))
        if kept.size and kept[-1] >= x.shape[axis]:
            raise ValueError(f"compress: the condition is true at {kept[-1]}, outside of axis {axis} of {x.aval}.")
        return getitem(x, (slice(None),) * axis + (kept,))
    shown = slice_in_dim(truth("compress", mask), 0, min(np.shape(mask)[0], x.shape[axis]))
    places = nonzero(shown, size=size, fill_value=x.shape[axis])[0]
    return take(x, places, axis, mode="fill", fill_value=fill_value)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """Select the elements of arr where `condition`, of its shape, is true, as a vector.

    `size`, `fill_value`, Raises: as for `compress`.
    """
    mask = array_operand("extract", condition) if size is not None else concrete("extract", condition, _SIZE_HELP)
    return compress(
        reshape(mask, (mask.size,)) if size is not None else mask.ravel(), arr, size=size, fill_value=fill_value
    )


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Delete the elements at positions `obj` along `axis`.

    Args:
      obj: integers, a slice or a mask.
      axis: the array is flattened if None.
      assume_unique_indices: a promise that integers do not repeat, so that they may be traced.
    Raises: ConcretizationTypeError for traced positions, without that promise; IndexError for a known position
      outside; ValueError for a mask of another length than the axis.
    """
    x, axis = _along("delete", arr, axis)
    n = x.shape[axis]
    if (
        assume_unique_indices
        and isinstance(obj, Array)
        and known_elements(obj) is None
        and dtypes.is_integer(obj.dtype)
    ):
        kept = AtIndexer(full((n,), True), reshape(obj, (obj.size,))).set(False, unique_indices=True)
        return take(x, nonzero(kept, size=max(n - obj.size, 0))[0], axis, mode="clip")
    gone = obj if isinstance(obj, slice) else concrete("delete", obj, "Use tnp.where to mask elements instead.")
    gone = gone if isinstance(gone, slice) or gone.size else gone.astype(int)
    kept = np.delete(np.arange(n), gone)
    return getitem(x, (slice(None),) * axis + (kept,))


def _along(name: str, a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    x = array_operand(name, a)
    return (reshape(x, (x.size,)), 0) if axis is None else (x, canonical_axis(axis, x.ndim))


# ---- chosen --------------------------------------------------------------------------------------------------


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Choose each element from one of several arrays, by its number in a. All arrays are broadcast together.

    Args:
      a: [k..] integers, from 0 to the number of choices less 1.
      choices: a sequence of arrays, or an array that is split along its first axis.
      mode: for numbers out of this range: an error ("raise", for known numbers only), "wrap" or "clip".
    Returns: an array of the broadcast shape and the common dtype of the choices.
    Raises: ValueError for such a number, another mode, or no choices; TypeError if a holds no integers;
      ConcretizationTypeError for "raise" of traced numbers; NotImplementedError for an `out`.
    """
    check_no_out("choose", out)
    number = asarray(a)
    if not (dtypes.is_integer(number.dtype) or dtypes.is_bool(number.dtype)):
        raise TypeError(f"choose: a must hold integers, not {number.aval}.")
    arrays = unstack(choices) if isinstance(choices, (Array, np.ndarray)) else list(choices)
    if not arrays or mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: {len(arrays)} choices, and mode {mode!r} must be 'raise', 'wrap' or 'clip'.")
    number = _numbered(a, cast(number, np.dtype(np.int32)), len(arrays), mode)
    arrays = [as_array(v) for v in promoted_all("choose", *arrays)]
    shape = common_shape("choose", number.shape, *[v.shape for v in arrays])
    options = stack([broadcast_to_shape(v, shape) for v in arrays])
    return getitem(take_along_axis(options, expand_dims(broadcast_to_shape(number, shape), (0,)), 0, mode="clip"), 0)


def _numbered(given: ArrayLike, number: Array, n: int, mode: str) -> Array:
    if mode == "wrap":
        return remainder(number, n)
    if mode == "raise":
        known = concrete("choose", given, "Use the mode 'clip' or 'wrap'.")
        if np.any((known < 0) | (known >= n)):
            raise ValueError(f"choose: a number in a is not one of {n} choices.")
    return clip(number, 0, n - 1)


# ---- replaced ------------------------------------------------------------------------------------------------


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Return arr with the elements where `mask` is true replaced by those of vals, in order and repeated.

    Args:
      mask: as many elements as arr.
      inplace: must be False, as arrays are immutable.
    Raises: ValueError if `inplace`, if mask has another number of elements, or there are no vals.
    """
    _refuse_in_place("place", inplace)
    x, there = array_operand("place", arr), truth("place", asarray(mask))
    values = cast(asarray(vals), x.dtype)
    if there.size != x.size or (x.size and not values.size):
        raise ValueError(f"place: mask {there.aval} must have the size of {x.aval}, and vals {values.aval} an element.")
    return as_weak_as(_place(x, there, reshape(values, (values.size,))), x) if x.size else x


@core.compound
def _place(x: Array, mask: Array, values: Array) -> Array:
    flat = reshape(mask, (mask.size,))
    rank = lax.sub(cumsum(lax.convert_element_type(flat, np.int32)), 1)
    found = take(values, lax.rem(lax.max(rank, 0), values.size), mode="clip")
    return choose_between(reshape(flat, x.shape), reshape(found, x.shape), x)


def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Array:
    """Return the array with elements at positions `ind` of the flattened array replaced by v, in order and repeated.

    Args:
      ind: integers; negative ones count from the end.
      mode: for positions outside: "clip" or "wrap"; if None, they are dropped. For an error at known positions, NumPy's
        "raise", write `a.ravel().at[ind].set(v)`.
      inplace: must be False, as arrays are immutable.
    Raises: ValueError if `inplace`, or for another mode.
    """
    _refuse_in_place("put", inplace)
    if mode not in (None, "clip", "wrap"):
        raise ValueError(f"put: mode must be 'clip', 'wrap' or None, not {mode!r}.")
    x, places, values = array_operand("put", a), asarray(ind), asarray(v)
    if not places.size or not values.size:
        return x
    places = reshape(places, (places.size,))
    places = places if mode is None else (remainder if mode == "wrap" else _clipped)(places, x.size)
    values = take(reshape(values, (values.size,)), np.arange(places.size) % values.size)
    return reshape(AtIndexer(reshape(x, (x.size,)), places).set(values, mode="drop"), x.shape)


def _clipped(places: Array, n: int) -> Array:
    return clip(places, 0, n - 1)


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"{name}: arrays are never changed in place; pass inplace=False and use the result.")


def mask_indices(
    n: int, mask_func: Callable[[Array, Any], ArrayLike], k: Any = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Return the row and column indices of an n x n matrix where `mask_func(ones, k)`, such as `triu`, is not 0.

    Args:
      size: length of the result, as for `nonzero`.
    Raises: ConcretizationTypeError if these elements are traced and there is no `size`.
    """
    if size is not None:
        rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    else:
        with folding.ensure_compile_time_eval():
            rows, columns = nonzero(mask_func(ones((n, n)), k))
    return rows, columns
