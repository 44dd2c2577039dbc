"""`Array`: the base class of arrays, traced or on a device: isinstance(x, tl.Array) holds for both.

Operators and methods are NumPy's; `tracer/numpy/array_methods.py` installs them, since they are NumPy functions.
For type checkers and editors they are declared here, as the same functions; a test compares both.
"""

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Never, NewType, NoReturn, Protocol, TypeAlias

import numpy as np

from tapeless.tracer.types import GIVEN_TO_JAX, ShapedArray, is_asked_by_jax

if TYPE_CHECKING:
    from tapeless.tracer.numpy import (
        arithmetic,
        contraction,
        creation,
        indexing,
        joining,
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

if TYPE_CHECKING:
    ArrayLike: TypeAlias = "Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex"
else:
    ArrayLike = NewType("ArrayLike", object)  # the name alone: `help` shows it
    ArrayLike.__module__ = "tapeless.typing"


class Array:
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
            if name.startswith("_"):  # protocols look such names up on every object
                if name == "__jax_array__" and is_asked_by_jax(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
                    raise TypeError(GIVEN_TO_JAX)  # no AttributeError, after which JAX would not say where to look
                raise AttributeError(f"an array has no attribute {name!r}.", name=name, obj=None)
            missing = importlib.import_module("tapeless.tracer.advice.missing_names")
            raise AttributeError(missing.ArrayRefusal(name), name=name, obj=None)

    if TYPE_CHECKING:

        def __add__(self, other: ArrayLike, /) -> "Array": ...
        def __radd__(self, other: ArrayLike, /) -> "Array": ...
        def __sub__(self, other: ArrayLike, /) -> "Array": ...
        def __rsub__(self, other: ArrayLike, /) -> "Array": ...
        def __mul__(self, other: ArrayLike, /) -> "Array": ...
        def __rmul__(self, other: ArrayLike, /) -> "Array": ...
        def __truediv__(self, other: ArrayLike, /) -> "Array": ...
        def __rtruediv__(self, other: ArrayLike, /) -> "Array": ...
        def __floordiv__(self, other: ArrayLike, /) -> "Array": ...
        def __rfloordiv__(self, other: ArrayLike, /) -> "Array": ...
        def __mod__(self, other: ArrayLike, /) -> "Array": ...
        def __rmod__(self, other: ArrayLike, /) -> "Array": ...
        def __divmod__(self, other: ArrayLike, /) -> "tuple[Array, Array]": ...
        def __rdivmod__(self, other: ArrayLike, /) -> "tuple[Array, Array]": ...
        def __pow__(self, other: ArrayLike, /) -> "Array": ...
        def __rpow__(self, other: ArrayLike, /) -> "Array": ...
        def __matmul__(self, other: ArrayLike, /) -> "Array": ...
        def __rmatmul__(self, other: ArrayLike, /) -> "Array": ...
        def __and__(self, other: ArrayLike, /) -> "Array": ...
        def __rand__(self, other: ArrayLike, /) -> "Array": ...
        def __or__(self, other: ArrayLike, /) -> "Array": ...
        def __ror__(self, other: ArrayLike, /) -> "Array": ...
        def __xor__(self, other: ArrayLike, /) -> "Array": ...
        def __rxor__(self, other: ArrayLike, /) -> "Array": ...
        def __lshift__(self, other: ArrayLike, /) -> "Array": ...
        def __rlshift__(self, other: ArrayLike, /) -> "Array": ...
        def __rshift__(self, other: ArrayLike, /) -> "Array": ...
        def __rrshift__(self, other: ArrayLike, /) -> "Array": ...

        def __lt__(self, other: ArrayLike, /) -> "Array": ...
        def __le__(self, other: ArrayLike, /) -> "Array": ...
        def __gt__(self, other: ArrayLike, /) -> "Array": ...
        def __ge__(self, other: ArrayLike, /) -> "Array": ...

        # Elementwise, as NumPy's: not the bool that `object` promises.
        def __eq__(self, other: ArrayLike) -> "Array": ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: ArrayLike) -> "Array": ...  # pyright: ignore[reportIncompatibleMethodOverride]

        def __neg__(self) -> "Array": ...
        def __pos__(self) -> "Array": ...
        def __abs__(self) -> "Array": ...
        def __invert__(self) -> "Array": ...

        def __round__(self, ndigits: int | None = None) -> "Array": ...

        def __getitem__(self, index: Any, /) -> "Array": ...

        def __setitem__(self, index: Never, value: Never) -> NoReturn: ...  # raises; type checkers report it before
        def __delitem__(self, index: Never) -> NoReturn: ...

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

        def compress(
            self,
            condition: ArrayLike,
            axis: int | None = None,
            *,
            out: None = None,
            size: int | None = None,
            fill_value: ArrayLike = 0,
        ) -> "Array": ...
        def __contains__(self, value: ArrayLike) -> bool: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
        def reshape(self, *shape: Any, order: str = "C") -> "Array": ...
        def transpose(self, *axes: Any) -> "Array": ...
        def item(self, *args: Any) -> Any: ...
        def tobytes(self, order: Literal["C", "F", "A", "K"] = "C") -> bytes: ...
        def tolist(self) -> Any: ...
        def to_device(self, device: Any, /, *, stream: None = None) -> "Array": ...
        def view(self, dtype: Any = None, *shape: Never) -> "Array": ...
        def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
        @property
        def T(self) -> "Array": ...
        @property
        def mT(self) -> "Array": ...
        @property
        def flat(self) -> "Array": ...
        @property
        def real(self) -> "Array": ...
        @property
        def imag(self) -> "Array": ...
        @property
        def at(self) -> At: ...


class Unplaced(Array):
    """An array that is on no device yet: its elements are NumPy's. One without axes is a literal in programs."""

    __slots__ = ()

    host: Any  # a NumPy scalar if it is weakly typed, else an array that nobody may write to


# The interface of what computes: the slot at the bottom of core.py, which the package `tapeless` fills.


class Evaluator(Protocol):
    """The interface of the evaluator at the bottom, which runs programs; the package `tapeless` sets it."""

    def evaluate(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Compute one primitive on concrete values."""
        ...

    def evaluate_function(self, f: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute a `compound` function on concrete values as one program."""
        ...

    def unplaced(self, x: Any) -> Array:
        """Make an array of a number or a NumPy array, on whichever device it is used."""
        ...

    def place(self, x: Array, device: Any) -> Array:
        """Put an array on a device; a traced one stays where its program runs. Raises: TypeError for no device."""
        ...
