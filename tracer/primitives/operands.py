"""Canonicalize operands and params of all families before binding: scalars, axes, shapes."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import prefix_called
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer, primitive_named
from tapeless.tracer.errors import AxisError, ConcretizationTypeError
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import Exact, ShapedArray, aval_of, by_protocol, exact, holds_keys, weak_number

_PYTHON_SCALARS = (bool, int, float, complex)


def constant(value: Any, like: ShapedArray) -> Any:
    """Convert a number to a scalar of the dtype and weak type of `like`.

    Raises: OverflowError if it is an integer that does not fit; TypeError if its kind is higher than that of `like`.
    """
    key = (value, type(value), like.dtype, like.weak_type, config.numpy_bits)
    found = _constants.get(key)
    if found is None or (value == 0 and type(value) is not int):  # 0.0 == -0.0, which are not the same constant
        if len(_constants) > 4096:
            _constants.clear()
        found = _constants[key] = _constant(value, like)
    return found


_constants: dict[Any, Any] = {}


def _constant(value: Any, like: ShapedArray) -> Any:
    dtype = like.dtype
    if isinstance(value, (complex, np.complexfloating)) and dtype.kind != "c":
        raise TypeError(f"the complex number {value!r} has no place in an operation of {like}: convert it first.")
    if isinstance(value, (float, np.floating)) and dtype.kind in "iub":
        raise TypeError(f"the number {value!r} has no place in an operation of {like}: convert it first.")
    if dtypes.is_bool(dtype) and value not in (0, 1):
        raise TypeError(f"the number {value!r} has no place in an operation of {like}: convert one of them first.")
    number = convert_number(value, dtype)
    return weak_number(number) if like.weak_type else number


def convert_number(value: Any, dtype: np.dtype[Any]) -> Exact:
    """Convert a number to a scalar array of `dtype`, as `astype` does; infinite if it is too large.

    Raises: OverflowError or ValueError for a number that does not fit an integer dtype; TypeError for a complex number
      unless `dtype` is complex or boolean, or if it is that of keys.
    """
    if dtypes.is_key(dtype):
        raise TypeError(f"the number {value!r} is no key, {dtype}. Make one with random.key(seed).")
    number: Any = np.asarray(value)
    check_numbers_fit(number, dtype)
    with np.errstate(all="ignore"):
        return exact(number.astype(dtype))


def check_numbers_fit(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> None:
    """Check that numbers that a user wrote fit `dtype`: a fraction may be cut off, but nothing else.

    Raises: OverflowError if an integer dtype does not hold a number, ValueError for nan; TypeError for complex numbers.
    """
    if values.dtype.kind == "c" and dtypes.kind(dtype) in "iuf":
        raise TypeError(f"complex numbers do not fit {dtype}: take their real parts, or a complex dtype.")
    if values.size and values.dtype.kind in "iuOf" and dtypes.is_integer(dtype):
        for bound in (values.min(), values.max()):
            if bound != bound:
                raise ValueError(f"nan does not fit {dtype}, which holds integers.")
            dtypes.check_fits(int(bound), dtype)


def match_dtypes(x: Any, y: Any) -> tuple[Any, Any]:
    """Convert a Python number to the dtype of the other operand; two numbers stay."""
    if type(x) in _PYTHON_SCALARS:
        if type(y) in _PYTHON_SCALARS:
            return x, y
        return constant(x, aval_of(y)), y
    if type(y) in _PYTHON_SCALARS:
        return x, constant(y, aval_of(x))
    return x, y


def align_operands(x: Any, y: Any) -> tuple[Any, Any]:
    """Give two operands of an elementwise operation one dtype, as `match_dtypes` does, and one shape.

    Axes of length 1 are repeated. Scalars and other shapes stay as they are; the typing rule refuses the latter.
    """
    x, y = match_dtypes(x, y)
    ours, theirs = aval_of(x).shape, aval_of(y).shape
    if ours == theirs or len(ours) != len(theirs):
        return x, y
    shape = tuple([m if n == 1 else n for n, m in zip(ours, theirs)])
    if any(n not in (1, m) for n, m in zip((*ours, *theirs), shape * 2)):
        return x, y
    return _repeated(x, shape), _repeated(y, shape)


def _repeated(x: Any, shape: tuple[int, ...]) -> Any:
    if aval_of(x).shape == shape:
        return x
    broadcast = primitive_named("broadcast_in_dim")  # that family is built on the elementwise one, which calls this
    return broadcast.bind(x, shape=shape, dims=tuple(range(len(shape))))[0]


def known_elements(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the elements of a value as a NumPy array; None if they are not known while tracing, or are keys."""
    x = x if isinstance(x, Array) else by_protocol(x)
    while isinstance(x, Tracer):
        x = x.concrete_value()
    return None if x is None or (isinstance(x, Array) and holds_keys(x.aval)) else np.asarray(x)


def ndim(x: Any) -> int:
    """Return the number of axes of a value."""
    return aval_of(x).ndim


def shape_of(x: Any) -> tuple[int, ...]:
    """Return the shape of a value."""
    return aval_of(x).shape


def canonical_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return `axis` counted from the front. Raises: TypeError if it is no integer, AxisError if it is out of range."""
    i = exact_integer(axis, name)
    if not -ndim <= i < ndim:
        raise AxisError(f"{prefix_called(name)} {i} is out of range for an array of {ndim} axes.")
    return i + ndim if i < 0 else i


def exact_integer(value: Any, name: str) -> int:
    """Convert the parameter `name` to an integer. Raises: TypeError if it is none, such as 2.0."""
    try:
        return operator.index(value)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(f"{prefix_called(name)} must be an integer, not {value!r}.") from None


def exact_bool(value: Any, name: str) -> bool:
    """Convert the parameter `name` to True or False. Raises: TypeError if it is anything else, such as a name."""
    if isinstance(value, (int, np.bool_, Array)):
        return bool(value)
    raise TypeError(f"{prefix_called(name)} must be True or False, not {value!r}.")


def canonical_axes(axes: Any, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front, sorted; None means all. Raises: ValueError if out of range or repeated."""
    if axes is None:
        return tuple(range(ndim))
    found = tuple(sorted(canonical_axis(a, ndim, name) for a in listed_axes(axes)))
    if len(set(found)) < len(found):
        raise ValueError(f"{prefix_called(name)} {tuple(axes)} names an axis twice.")
    return found


def listed_axes(axes: Any) -> Iterable[Any]:
    """Return several axes as they are, a sequence or an array [k], and one axis in a tuple."""
    return axes if isinstance(axes, Iterable) and getattr(axes, "ndim", 1) else (axes,)


def argsort(keys: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of the keys in ascending order; for a permutation, this is its inverse."""
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))


def without(items: Sequence[Any], positions: Sequence[int]) -> tuple[Any, ...]:
    """Drop the items at `positions`."""
    return tuple(x for i, x in enumerate(items) if i not in positions)
