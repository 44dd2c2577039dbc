"""Operators and methods of arrays: the functions of this package, installed on `tracer.array.Array`.

If the other operand is neither array nor number, an operator returns NotImplemented if the operand's class has the
reflected method, else it raises a TypeError.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

import numpy as np

from tapeless.tracer import dtypes, pytree
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Tracer, placed
from tapeless.tracer.numpy import (
    arithmetic,
    contraction,
    creation,
    indexing,
    joining,
    logic,
    matrices,
    reductions,
    selection,
    shaping,
    sorting,
    statistics,
)
from tapeless.tracer.numpy.at import At
from tapeless.tracer.numpy.scalar_types import astype
from tapeless.tracer.numpy.views import byteswap, view
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.types import by_protocol, conversion_hint, is_arraylike, is_masked

Method = Callable[..., Any]

# ---- operators -----------------------------------------------------------------------------------------------

_NUMBERS = frozenset((int, float, complex, bool, np.ndarray))


def _operator(symbol: str, f: Method, reflected: str) -> Method:
    """Make the method for `x op other`; `reflected` names the method of `other` that Python may call instead."""

    def operate(self: Array, other: ArrayLike) -> Any:
        if isinstance(other, Array) or type(other) in _NUMBERS or is_arraylike(other := by_protocol(other)):
            try:
                return f(self, other)
            except (TypeError, ValueError) as error:
                _say_as_written(error, symbol)
                raise
        if _is_foreign(other):
            return _answered(symbol, self, other, reflected)
        if (symbol in _EQUALITIES and not isinstance(other, (list, tuple))) or _may_answer(other, reflected):
            return NotImplemented
        raise TypeError(f"{symbol}: the left operand is {self.aval}, the right one {_no_operand(other)}")

    return operate


def _reflected(symbol: str, f: Method) -> Method:
    """Make the method for `other op x`, which Python calls if the left operand `other` has no answer."""

    def operate(self: Array, other: ArrayLike) -> Any:
        if type(other) in _NUMBERS or is_arraylike(other := by_protocol(other)):
            try:
                return f(other, self)
            except (TypeError, ValueError) as error:
                _say_as_written(error, symbol)
                raise
        raise TypeError(f"{symbol}: the right operand is {self.aval}, the left one {_no_operand(other)}")

    return operate


def _unary(symbol: str, f: Method) -> Method:
    """Make the method for `op x`."""

    def operate(self: Array) -> Any:
        try:
            return f(self)
        except TypeError as error:
            _say_as_written(error, symbol)
            raise

    return operate


def _may_answer(x: Any, method: str) -> bool:
    """Tell whether the class of x defines `method`, not only a class of Python's own, such as that of named tuples."""
    return any(method in vars(kind) for kind in type(x).__mro__ if kind.__module__ != "builtins")


def _is_foreign(x: Any) -> bool:
    """Tell whether x is an array of another library."""
    return hasattr(type(x), "__array__") or hasattr(type(x), "__dlpack__")


def _answered(symbol: str, x: Array, other: Any, method: str) -> Any:
    """Return what the array `other` of another library computes for `x op other`.

    Raises: TypeError with advice on conversion if it computes nothing; Python's own message would have none.
    """
    answer = None if is_masked(other) else getattr(type(other), method, None)
    found = NotImplemented if answer is None else answer(other, x)
    if found is NotImplemented:
        raise TypeError(f"{symbol}: the left operand is {x.aval}, the right one {_no_operand(other)}")
    return found


def _no_operand(x: Any) -> str:
    hint = _OF_TREES if _is_tree(x) else conversion_hint(x)
    return f"is not an array or a number, but {type(x).__name__}: {x!r:.80}.{hint}"


def _is_tree(x: Any) -> bool:
    """Tell whether x is a container of arrays by names: a dict, a named tuple, an object of a registered class."""
    named = isinstance(x, dict) or hasattr(type(x), "_fields")
    return named or (pytree.is_tree_node(type(x)) and x is not None and not isinstance(x, (list, tuple)))


_OF_TREES = (
    "\n  For the arrays of containers write tl.tree.map: tl.tree.map(lambda p, g: p - 0.1 * g, params, gradients)."
)


def _say_as_written(error: Exception, symbol: str) -> None:
    """Replace the function's name at the begin of an error message with the operator's symbol."""
    name, colon, rest = str(error).partition(": ")
    if colon and name in _STAND_FOR:
        error.args = (f"{symbol}: {rest}",)


_ARITHMETIC = {
    "add": ("+", arithmetic.add),
    "sub": ("-", arithmetic.subtract),
    "mul": ("*", arithmetic.multiply),
    "truediv": ("/", arithmetic.true_divide),
    "floordiv": ("//", arithmetic.floor_divide),
    "mod": ("%", arithmetic.remainder),
    "divmod": ("divmod", arithmetic.divmod),
    "pow": ("**", arithmetic.power),
    "matmul": ("@", contraction.matmul),
    "and": ("&", logic.bitwise_and),
    "or": ("|", logic.bitwise_or),
    "xor": ("^", logic.bitwise_xor),
    "lshift": ("<<", logic.left_shift),
    "rshift": (">>", logic.right_shift),
}
_COMPARISONS = {
    "eq": ("==", logic.equal),
    "ne": ("!=", logic.not_equal),
    "lt": ("<", logic.less),
    "le": ("<=", logic.less_equal),
    "gt": (">", logic.greater),
    "ge": (">=", logic.greater_equal),
}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_SIGNS = {"neg": ("-", arithmetic.negative), "invert": ("~", logic.bitwise_not)}
_EQUALITIES = ("==", "!=")  # Python compares with objects that are not array-like by identity: False and True
_STAND_FOR = frozenset(
    [*_ARITHMETIC, *_COMPARISONS, *_SIGNS, "div", "rem", "not", "divide", "integer_pow", "shift_left"]
    + ["shift_right_arithmetic", "shift_right_logical"]
    + [f.__name__ for _, f in (_ARITHMETIC | _COMPARISONS | _SIGNS).values()]
)


def _nearest(self: Array, ndigits: int | None = None) -> Array:
    """Round as Python's `round` does: without `ndigits` to integers, which are int64 for float64."""
    rounded = arithmetic.round(self, ndigits or 0)
    if ndigits is not None or dtypes.is_integer(rounded.dtype):
        return rounded
    wide = rounded.dtype == np.float64
    return convert_element_type(rounded, np.int64 if wide else dtypes.default_dtype("i"))


_UNARY = {
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "round": _nearest,
    "getitem": indexing.getitem,
}


def _setitem(self: Array, index: Any, value: Any) -> None:
    """Raise a TypeError with advice to use `.at[...].set`: arrays are immutable."""
    raise TypeError("arrays are never changed in place. Instead of x[i] = y write x = x.at[i].set(y).")


def _delitem(self: Array, index: Any) -> None:
    """Raise a TypeError with advice to use `delete`: arrays are immutable."""
    raise TypeError("arrays are never changed in place. Instead of del x[i] write x = tnp.delete(x, i).")


# ---- methods -------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Method] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "byteswap": byteswap,
    "astype": astype,
    "clip": arithmetic.clip,
    "choose": selection.choose,
    "conj": arithmetic.conjugate,
    "conjugate": arithmetic.conjugate,
    "copy": creation.copy,
    "cumprod": reductions.cumprod,
    "cumsum": reductions.cumsum,
    "diagonal": matrices.diagonal,
    "dot": contraction.dot,
    "max": reductions.max,
    "mean": statistics.mean,
    "min": reductions.min,
    "nonzero": sorting.nonzero,
    "partition": sorting.partition,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": shaping.ravel,
    "flatten": shaping.ravel,
    "repeat": joining.repeat,
    "round": arithmetic.round,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "squeeze": shaping.squeeze,
    "std": statistics.std,
    "sum": reductions.sum,
    "swapaxes": shaping.swapaxes,
    "take": indexing.take,
    "trace": matrices.trace,
    "var": statistics.var,
}


def _reshape(self: Array, *shape: Any, order: str = "C") -> Array:
    """Return the array in another shape: see `tapeless.numpy.reshape`."""
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: Array, *axes: Any) -> Array:
    """Return the array with its axes permuted: see `tapeless.numpy.transpose`."""
    return shaping.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)


def _item(self: Tracer, *args: Any) -> Any:
    """Return the only element, or the one at a position, as a number. Raises: ConcretizationTypeError if traced."""
    return np.asarray(self.number("value")).item(*args)


def _tolist(self: Tracer) -> Any:
    """Return the elements as nested lists of Python numbers. Raises: ConcretizationTypeError if traced."""
    return np.asarray(self.number("value")).tolist()


def _tobytes(self: Tracer, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
    """Return the elements as bytes, as `numpy.ndarray.tobytes` does. Raises: ConcretizationTypeError if traced."""
    return np.asarray(self.number("value")).tobytes(order)


def _to_device(self: Array, device: Any, /, *, stream: None = None) -> Array:
    """Copy the array to another device, unless it is there; a traced array stays where its program runs.

    Raises: TypeError if `device` is no device; NotImplementedError for a stream.
    """
    if stream is not None:
        raise NotImplementedError("to_device: there are no streams to choose from: leave out stream.")
    return placed(self, device)


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_namespace: list[ModuleType] = []


def set_namespace(namespace: ModuleType) -> None:
    """Set the module that arrays return as their array API namespace: the package `tapeless` does."""
    _namespace[:] = [namespace]


def _array_namespace(self: Array, /, *, api_version: str | None = None) -> Any:
    """Return `tapeless.numpy`, the namespace of array functions, as the array API standard asks.

    Raises: ValueError for a version of the standard that it does not follow.
    """
    if api_version not in (None, *_VERSIONS):
        raise ValueError(f"api_version must be one of {', '.join(_VERSIONS)}, not {api_version!r}.")
    return _namespace[0]


def _compress(
    self: Array,
    condition: ArrayLike,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Return the slices of the array where `condition` is true: see `tapeless.numpy.compress`."""
    return selection.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _contains(self: Array, value: ArrayLike) -> bool:
    """Tell whether some element equals `value`. Raises: TracerBoolConversionError if traced."""
    return bool(reductions.any(logic.equal(self, value)))


_METHODS: dict[str, Method] = {
    "compress": _compress,
    "reshape": _reshape,
    "transpose": _transpose,
    "item": _item,
    "tolist": _tolist,
    "tobytes": _tobytes,
    "to_device": _to_device,
    "view": view,
    "__array_namespace__": _array_namespace,
    "__contains__": _contains,
}

_PROPERTIES: dict[str, tuple[Method, str]] = {
    "T": (shaping.transpose, "The array with its axes reversed."),
    "flat": (shaping.ravel, "The elements in row-major order, as an array [size]; it is not a view to write to."),
    "mT": (shaping.matrix_transpose, "The array with its last two axes exchanged."),
    "real": (arithmetic.real, "Real part, elementwise."),
    "imag": (arithmetic.imag, "Imaginary part, elementwise."),
    "at": (At, "`x.at[index].set(y)` is x with a part replaced; see `tapeless.tracer.numpy.at.AtIndexer`."),
}


# ---- installing ----------------------------------------------------------------------------------------------


def _install() -> None:
    for name, (symbol, f) in _ARITHMETIC.items():
        setattr(Array, f"__{name}__", _named(_operator(symbol, f, f"__r{name}__"), f"__{name}__", f))
        setattr(Array, f"__r{name}__", _named(_reflected(symbol, f), f"__r{name}__", f))
    for name, (symbol, f) in _COMPARISONS.items():
        reflected = f"__{_MIRRORED.get(name, name)}__"
        setattr(Array, f"__{name}__", _named(_operator(symbol, f, reflected), f"__{name}__", f))
    for name, (symbol, f) in _SIGNS.items():
        setattr(Array, f"__{name}__", _named(_unary(symbol, f), f"__{name}__", f))
    for name, f in _UNARY.items():
        setattr(Array, f"__{name}__", f)
    for name, f in (_FUNCTIONS | _METHODS | {"__setitem__": _setitem, "__delitem__": _delitem}).items():
        setattr(Array, name, f)
    for name, (f, doc) in _PROPERTIES.items():
        setattr(Array, name, property(f, doc=doc))


def _named(operate: Method, name: str, f: Method) -> Method:
    operate.__name__, operate.__qualname__, operate.__doc__ = name, f"Array.{name}", f.__doc__
    return operate


_install()
