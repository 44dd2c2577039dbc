"""Operators and methods of arrays: functions of this package, in the class `ArrayMethods`.

`tracer.array.Array` has them: type checkers see it inherit them. As programs run they are copied to it, since these
functions need `Array` before they are there.

If the other operand is neither array nor number, an operator returns NotImplemented if the operand's class has the
reflected method, else it raises a TypeError.
"""

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, Final, Literal, Never, NoReturn, TypeVar

import numpy as np

from tapeless.tracer import dtypes, pytree
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import place_array
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
    views,
)
from tapeless.tracer.numpy.at import At
from tapeless.tracer.numpy.scalar_types import astype as _astype
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.types import by_protocol, conversion_hint, is_arraylike, is_masked

# ---- operators -----------------------------------------------------------------------------------------------

Method = TypeVar("Method", bound=Callable[..., Any])
_NUMBERS = frozenset((int, float, complex, bool, np.ndarray))
_MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def _operator(symbol: str, f: Callable[..., Any]) -> Callable[[Method], Method]:
    """Make the method for `x op other` of its declaration, which has no body."""

    def make(method: Method) -> Method:
        name = method.__name__.strip("_")
        reflected = f"__{_MIRRORED.get(name, 'r' + name)}__"  # of the other operand: Python may call it instead

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

        return _named(operate, method, f)

    return make


def _reflected(symbol: str, f: Callable[..., Any]) -> Callable[[Method], Method]:
    """Make the method for `other op x`, which Python calls if the left operand `other` has no answer."""

    def operate(self: Array, other: ArrayLike) -> Any:
        if type(other) in _NUMBERS or is_arraylike(other := by_protocol(other)):
            try:
                return f(other, self)
            except (TypeError, ValueError) as error:
                _say_as_written(error, symbol)
                raise
        raise TypeError(f"{symbol}: the right operand is {self.aval}, the left one {_no_operand(other)}")

    return lambda method: _named(operate, method, f)


def _unary(symbol: str, f: Callable[..., Any]) -> Callable[[Method], Method]:
    """Make the method for `op x`."""

    def operate(self: Array) -> Any:
        try:
            return f(self)
        except TypeError as error:
            _say_as_written(error, symbol)
            raise

    return lambda method: _named(operate, method, f)


def _named(operate: Any, method: Callable[..., Any], f: Callable[..., Any]) -> Any:
    operate.__name__, operate.__qualname__, operate.__doc__ = method.__name__, f"Array.{method.__name__}", f.__doc__
    _STAND_FOR.add(f.__name__)
    return operate


def _same_as(f: Any) -> Callable[[Method], Method]:
    """Make the method that is a function."""
    return lambda _: f


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


_EQUALITIES = ("==", "!=")  # Python compares with objects that are not array-like by identity: False and True
# Functions and primitives whose names errors replace with the symbol; each operator adds its function.
_STAND_FOR = {
    *("sub", "mul", "div", "divide", "rem", "pow", "integer_pow", "neg", "and", "or", "xor", "not"),
    *("eq", "ne", "lt", "le", "gt", "ge", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
}

# ---- methods -------------------------------------------------------------------------------------------------

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_namespace: list[ModuleType] = []


def set_namespace(namespace: ModuleType) -> None:
    """Set the module that arrays return as their array API namespace: the package `tapeless` does."""
    _namespace[:] = [namespace]


class ArrayMethods:
    """The operators and methods of `Array`: its base class for type checkers; as programs run they are copied to it."""

    __slots__ = ()

    @_operator("+", arithmetic.add)
    def __add__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("+", arithmetic.add)
    def __radd__(self, other: ArrayLike, /) -> Array: ...

    @_operator("-", arithmetic.subtract)
    def __sub__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("-", arithmetic.subtract)
    def __rsub__(self, other: ArrayLike, /) -> Array: ...

    @_operator("*", arithmetic.multiply)
    def __mul__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("*", arithmetic.multiply)
    def __rmul__(self, other: ArrayLike, /) -> Array: ...

    @_operator("/", arithmetic.true_divide)
    def __truediv__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("/", arithmetic.true_divide)
    def __rtruediv__(self, other: ArrayLike, /) -> Array: ...

    @_operator("//", arithmetic.floor_divide)
    def __floordiv__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("//", arithmetic.floor_divide)
    def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...

    @_operator("%", arithmetic.remainder)
    def __mod__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("%", arithmetic.remainder)
    def __rmod__(self, other: ArrayLike, /) -> Array: ...

    @_operator("divmod", arithmetic.divmod)
    def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...

    @_reflected("divmod", arithmetic.divmod)
    def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...

    @_operator("**", arithmetic.power)
    def __pow__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("**", arithmetic.power)
    def __rpow__(self, other: ArrayLike, /) -> Array: ...

    @_operator("@", contraction.matmul)
    def __matmul__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("@", contraction.matmul)
    def __rmatmul__(self, other: ArrayLike, /) -> Array: ...

    @_operator("&", logic.bitwise_and)
    def __and__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("&", logic.bitwise_and)
    def __rand__(self, other: ArrayLike, /) -> Array: ...

    @_operator("|", logic.bitwise_or)
    def __or__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("|", logic.bitwise_or)
    def __ror__(self, other: ArrayLike, /) -> Array: ...

    @_operator("^", logic.bitwise_xor)
    def __xor__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("^", logic.bitwise_xor)
    def __rxor__(self, other: ArrayLike, /) -> Array: ...

    @_operator("<<", logic.left_shift)
    def __lshift__(self, other: ArrayLike, /) -> Array: ...

    @_reflected("<<", logic.left_shift)
    def __rlshift__(self, other: ArrayLike, /) -> Array: ...

    @_operator(">>", logic.right_shift)
    def __rshift__(self, other: ArrayLike, /) -> Array: ...

    @_reflected(">>", logic.right_shift)
    def __rrshift__(self, other: ArrayLike, /) -> Array: ...

    # Elementwise, as NumPy's: not the bool that `object` promises.
    @_operator("==", logic.equal)
    def __eq__(self, other: ArrayLike) -> Array: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    @_operator("!=", logic.not_equal)
    def __ne__(self, other: ArrayLike) -> Array: ...  # pyright: ignore[reportIncompatibleMethodOverride]

    @_operator("<", logic.less)
    def __lt__(self, other: ArrayLike, /) -> Array: ...

    @_operator("<=", logic.less_equal)
    def __le__(self, other: ArrayLike, /) -> Array: ...

    @_operator(">", logic.greater)
    def __gt__(self, other: ArrayLike, /) -> Array: ...

    @_operator(">=", logic.greater_equal)
    def __ge__(self, other: ArrayLike, /) -> Array: ...

    @_unary("-", arithmetic.negative)
    def __neg__(self) -> Array: ...

    @_unary("~", logic.bitwise_not)
    def __invert__(self) -> Array: ...

    @_same_as(arithmetic.positive)
    def __pos__(self) -> Array: ...

    @_same_as(arithmetic.absolute)
    def __abs__(self) -> Array: ...

    @_same_as(indexing.getitem)
    def __getitem__(self, index: Any, /) -> Array: ...

    def __round__(self: Any, ndigits: int | None = None) -> Array:
        """Round as Python's `round` does: without `ndigits` to integers, which are int64 for float64."""
        rounded = arithmetic.round(self, ndigits or 0)
        if ndigits is not None or dtypes.is_integer(rounded.dtype):
            return rounded
        wide = rounded.dtype == np.float64
        return convert_element_type(rounded, np.int64 if wide else dtypes.default_dtype("i"))

    def __setitem__(self, index: Never, value: Never) -> NoReturn:
        """Raise a TypeError with advice to use `.at[...].set`: arrays are immutable."""
        raise TypeError("arrays are never changed in place. Instead of x[i] = y write x = x.at[i].set(y).")

    def __delitem__(self, index: Never) -> NoReturn:
        """Raise a TypeError with advice to use `delete`: arrays are immutable."""
        raise TypeError("arrays are never changed in place. Instead of del x[i] write x = tnp.delete(x, i).")

    all: Final = reductions.all
    any: Final = reductions.any
    argmax: Final = reductions.argmax
    argmin: Final = reductions.argmin
    argpartition: Final = sorting.argpartition
    argsort: Final = sorting.argsort
    astype: Final = _astype
    byteswap: Final = views.byteswap
    choose: Final = selection.choose
    clip: Final = arithmetic.clip
    conj: Final = arithmetic.conjugate
    conjugate: Final = arithmetic.conjugate
    copy: Final = creation.copy
    cumprod: Final = reductions.cumprod
    cumsum: Final = reductions.cumsum
    diagonal: Final = matrices.diagonal
    dot: Final = contraction.dot
    max: Final = reductions.max
    mean: Final = statistics.mean
    min: Final = reductions.min
    nonzero: Final = sorting.nonzero
    partition: Final = sorting.partition
    prod: Final = reductions.prod
    ptp: Final = reductions.ptp
    ravel: Final = shaping.ravel
    flatten: Final = shaping.ravel
    repeat: Final = joining.repeat
    round: Final = arithmetic.round
    searchsorted: Final = sorting.searchsorted
    sort: Final = sorting.sort
    squeeze: Final = shaping.squeeze
    std: Final = statistics.std
    sum: Final = reductions.sum
    swapaxes: Final = shaping.swapaxes
    take: Final = indexing.take
    trace: Final = matrices.trace
    var: Final = statistics.var

    @_same_as(views.view)
    def view(self, dtype: Any = None, *shape: Never) -> Array: ...

    def reshape(self: Any, *shape: Any, order: str = "C") -> Array:
        """Return the array in another shape: see `tapeless.numpy.reshape`."""
        return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self: Any, *axes: Any) -> Array:
        """Return the array with its axes permuted: see `tapeless.numpy.transpose`."""
        return shaping.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def compress(
        self: Any,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """Return the slices of the array where `condition` is true: see `tapeless.numpy.compress`."""
        return selection.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)

    def item(self: Any, *args: Any) -> Any:
        """Return the only element, or the one at a position, as a number. Raises: ConcretizationTypeError if traced."""
        return np.asarray(self.number("value")).item(*args)

    def tolist(self: Any) -> Any:
        """Return the elements as nested lists of Python numbers. Raises: ConcretizationTypeError if traced."""
        return np.asarray(self.number("value")).tolist()

    def tobytes(self: Any, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
        """Return the elements as bytes, as `numpy.ndarray.tobytes` does. Raises: ConcretizationTypeError if traced."""
        return np.asarray(self.number("value")).tobytes(order)

    def to_device(self: Any, device: Any, /, *, stream: None = None) -> Array:
        """Copy the array to another device, unless it is there; a traced array stays where its program runs.

        Raises: TypeError if `device` is no device; NotImplementedError for a stream.
        """
        if stream is not None:
            raise NotImplementedError("to_device: there are no streams to choose from: leave out stream.")
        return place_array(self, device)

    def __contains__(self: Any, value: ArrayLike) -> bool:
        """Tell whether some element equals `value`. Raises: TracerBoolConversionError if traced."""
        return bool(reductions.any(logic.equal(self, value)))

    def __array_namespace__(self: Any, /, *, api_version: str | None = None) -> Any:
        """Return `tapeless.numpy`, the namespace of array functions, as the array API standard asks.

        Raises: ValueError for a version of the standard that it does not follow.
        """
        if api_version not in (None, *_VERSIONS):
            raise ValueError(f"api_version must be one of {', '.join(_VERSIONS)}, not {api_version!r}.")
        return _namespace[0]

    @property
    def T(self: Any) -> Array:
        """The array with its axes reversed."""
        return shaping.transpose(self)

    @property
    def flat(self: Any) -> Array:
        """The elements in row-major order, as an array [size]; it is not a view to write to."""
        return shaping.ravel(self)

    @property
    def mT(self: Any) -> Array:
        """The array with its last two axes exchanged."""
        return shaping.matrix_transpose(self)

    @property
    def real(self: Any) -> Array:
        """Real part, elementwise."""
        return arithmetic.real(self)

    @property
    def imag(self: Any) -> Array:
        """Imaginary part, elementwise."""
        return arithmetic.imag(self)

    @property
    def at(self: Any) -> At:
        """`x.at[index].set(y)` is x with a part replaced; see `tapeless.tracer.numpy.at.AtIndexer`."""
        return At(self)


def _install() -> None:
    for name, f in vars(ArrayMethods).items():
        if isinstance(f, FunctionType) and f.__module__ == __name__:
            f.__qualname__ = f"Array.{name}"
        if isinstance(f, property) or (callable(f) and name != "__annotate_func__"):  # of Python 3.14
            setattr(Array, name, f)


_install()
