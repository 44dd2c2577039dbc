"""`Array`: the base class of arrays, traced or on a device: isinstance(x, tl.Array) holds for both.

Operators and methods are NumPy's: those of `tracer/numpy/array_methods.py`, which type checkers see as the base class.
"""

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NewType, NoReturn, Protocol, TypeAlias

import numpy as np

from tapeless.tracer.types import GIVEN_TO_JAX, ShapedArray, is_asked_by_jax

if TYPE_CHECKING:
    from tapeless.tracer.numpy.array_methods import ArrayMethods

    ArrayLike: TypeAlias = "Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex"
else:
    ArrayLike = NewType("ArrayLike", object)  # the name alone: `help` shows it
    ArrayLike.__module__ = "tapeless.typing"
    ArrayMethods = object  # `array_methods.py` gives them to the class: its functions need the class first


# What `np.asarray` asks every object for, before `__array__`: the answer is a third of its time.
_ASKED_BY_NUMPY = frozenset(("__array_struct__", "__array_interface__"))


class Array(ArrayMethods):
    """A multidimensional array with the operators and methods of `numpy.ndarray`. Subclasses provide `aval`."""

    __slots__ = ()
    __array_priority__ = 1000  # so that `np.ones(3) * x` asks us first

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.aval.dtype

    @property
    def weak_type(self) -> bool:
        """Tell whether the dtype gives way to that of any strongly typed operand of its kind."""
        return self.aval.weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.aval.nbytes

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes."""
        return self.aval.dtype.itemsize

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of an array without axes.")
        return self.aval.shape[0]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name in _ASKED_BY_NUMPY:
                raise AttributeError(name)
            if name.startswith("_"):  # protocols look such names up on every object
                if name == "__jax_array__" and is_asked_by_jax(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
                    raise TypeError(GIVEN_TO_JAX)  # no AttributeError, after which JAX would not say where to look
                raise AttributeError(f"an array has no attribute {name!r}.", name=name, obj=None)
            missing = importlib.import_module("tapeless.tracer.advice.missing_names")
            raise AttributeError(missing.ArrayRefusal(name), name=name, obj=None)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the elements as an array of NumPy, which each kind of array does in its way."""
        raise NotImplementedError


class Unplaced(Array):
    """An array that is on no device yet: its elements are NumPy's. One without axes is a literal in programs."""

    __slots__ = ()

    host: Any  # a NumPy scalar if it is weakly typed, else an array that nobody may write to


# The interface of what computes: the slot at the bottom of core.py, which the package `tapeless` fills.


class Evaluator(Protocol):
    """The interface of the evaluator at the bottom, which runs programs; the package `tapeless` sets it."""

    @property
    def array_type(self) -> type[Array]:
        """The class of arrays that are on a device, keys aside."""
        ...

    def evaluate(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Compute one primitive on concrete values."""
        ...

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute a `compound` function on concrete values as one program."""
        ...

    def number(self, x: int | float, aval: ShapedArray) -> Array:
        """Make an array of a number, which is kept. Raises: OverflowError for an integer that does not fit."""
        ...

    def unplaced(self, x: Any) -> Array:
        """Make an array of a number or a NumPy array, on whichever device it is used."""
        ...

    def put_on_device(self, x: Array, device: Any) -> Array:
        """Put an array on a device; a traced one stays where its program runs. Raises: TypeError for no device."""
        ...
