"""Operators and methods of arrays: they are the functions of this package, installed on `tracer.array.Array`.

An operator gives up on what is neither array nor number (NotImplemented), so that other types may answer.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Tracer
from tapeless.tracer.numpy import (
    arithmetic,
    contraction,
    creation,
    indexing,
    joining,
    logic,
    matrices,
    reductions,
    shaping,
    sorting,
    statistics,
)
from tapeless.tracer.numpy.at import At
from tapeless.tracer.numpy.scalar_types import astype
from tapeless.tracer.primitives import bits
from tapeless.tracer.types import is_arraylike

Method = Callable[..., Any]

# ---- operators -----------------------------------------------------------------------------------------------

_NUMBERS = frozenset((int, float, complex, bool, np.ndarray))


def _operator(f: Method) -> Method:
    """x op y"""

    def operate(self: Array, other: ArrayLike) -> Any:
        if isinstance(other, Array) or type(other) in _NUMBERS or is_arraylike(other):
            return f(self, other)
        return NotImplemented

    return operate


def _reflected(f: Method) -> Method:
    """y op x, where y does not know what to do with x"""

    def operate(self: Array, other: ArrayLike) -> Any:
        if type(other) in _NUMBERS or is_arraylike(other):
            return f(other, self)
        return NotImplemented

    return operate


_ARITHMETIC = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.true_divide,
    "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder,
    "divmod": arithmetic.divmod,
    "pow": arithmetic.power,
    "matmul": contraction.matmul,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.left_shift,
    "rshift": logic.right_shift,
}
_COMPARISONS = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_UNARY = {
    "neg": arithmetic.negative,
    "pos": arithmetic.positive,
    "abs": arithmetic.absolute,
    "invert": logic.bitwise_not,
    "round": arithmetic.round,
    "getitem": indexing.getitem,
}


def _setitem(self: Array, index: Any, value: Any) -> None:
    """Refused: arrays are values."""
    raise TypeError("arrays are never changed in place. Instead of x[i] = y write x = x.at[i].set(y).")


def _delitem(self: Array, index: Any) -> None:
    """Refused: arrays are values."""
    raise TypeError("arrays are never changed in place. Instead of del x[i] write x = tnp.delete(x, i).")


# ---- methods -------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Method] = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "astype": astype,
    "clip": arithmetic.clip,
    "compress": lambda self, condition, axis=None: indexing.compress(condition, self, axis),
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
    """The array in another shape: see `tapeless.numpy.reshape`."""
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: Array, *axes: Any) -> Array:
    """The array with its axes permuted: see `tapeless.numpy.transpose`."""
    return shaping.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)


def _item(self: Tracer, *args: Any) -> Any:
    """The only element, or that at a position, as a Python number. Raises: ConcretizationTypeError if traced."""
    return np.asarray(self.number("value")).item(*args)


def _tolist(self: Tracer) -> Any:
    """The elements as nested lists of Python numbers. Raises: ConcretizationTypeError if traced."""
    return np.asarray(self.number("value")).tolist()


def _view(self: Array, dtype: Any = None) -> Array:
    """The bits of the array read as another dtype of the same width."""
    return bits.bitcast_convert_type(self, self.dtype if dtype is None else dtype)


_METHODS: dict[str, Method] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "item": _item,
    "tolist": _tolist,
    "view": _view,
}

_PROPERTIES: dict[str, tuple[Method, str]] = {
    "T": (shaping.transpose, "The array with its axes reversed."),
    "mT": (shaping.matrix_transpose, "The array with its last two axes exchanged."),
    "real": (arithmetic.real, "Real part, elementwise."),
    "imag": (arithmetic.imag, "Imaginary part, elementwise."),
    "at": (At, "`x.at[index].set(y)` is x with a part replaced; see `tapeless.tracer.numpy.at.Place`."),
}


# ---- installing ----------------------------------------------------------------------------------------------


def _install() -> None:
    for name, f in _ARITHMETIC.items():
        setattr(Array, f"__{name}__", _named(_operator(f), f"__{name}__", f))
        setattr(Array, f"__r{name}__", _named(_reflected(f), f"__r{name}__", f))
    for name, f in _COMPARISONS.items():
        setattr(Array, f"__{name}__", _named(_operator(f), f"__{name}__", f))
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
