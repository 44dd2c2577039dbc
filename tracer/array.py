"""`Array`: what every array value is, traced or on a device. isinstance(x, tl.Array) holds for both.

Operators and methods are NumPy's; `tracer/numpy/array_methods.py` installs them, since they are NumPy functions.
For type checkers and editors they are declared here, as the same functions; a test compares both.
"""

from typing import TYPE_CHECKING, Any, Never, NoReturn

import numpy as np

from tapeless.tracer.types import ShapedArray

if TYPE_CHECKING:
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
    from tapeless.tracer.numpy.scalar_types import astype as _astype

ArrayLike = Any  # an Array, a NumPy array or scalar, or a Python number; `types.aval_of` says exactly what


class Array:
    """An array of ours. Subclasses provide `aval`; operators and methods are those of `numpy.ndarray`."""

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

    if TYPE_CHECKING:
        __add__ = __radd__ = arithmetic.add
        __sub__ = __rsub__ = arithmetic.subtract
        __mul__ = __rmul__ = arithmetic.multiply
        __truediv__ = __rtruediv__ = arithmetic.true_divide
        __floordiv__ = __rfloordiv__ = arithmetic.floor_divide
        __mod__ = __rmod__ = arithmetic.remainder
        __divmod__ = __rdivmod__ = arithmetic.divmod
        __pow__ = __rpow__ = arithmetic.power
        __matmul__ = __rmatmul__ = contraction.matmul
        __and__ = __rand__ = logic.bitwise_and
        __or__ = __ror__ = logic.bitwise_or
        __xor__ = __rxor__ = logic.bitwise_xor
        __lshift__ = __rlshift__ = logic.left_shift
        __rshift__ = __rrshift__ = logic.right_shift

        __lt__ = logic.less
        __le__ = logic.less_equal
        __gt__ = logic.greater
        __ge__ = logic.greater_equal

        # Elementwise, as NumPy's: not the bool that `object` promises.
        def __eq__(self, other: ArrayLike) -> "Array": ...  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: ArrayLike) -> "Array": ...  # pyright: ignore[reportIncompatibleMethodOverride]

        __neg__ = arithmetic.negative
        __pos__ = arithmetic.positive
        __abs__ = arithmetic.absolute
        __invert__ = logic.bitwise_not

        def __round__(self, ndigits: int | None = None) -> "Array": ...

        __getitem__ = indexing.getitem

        def __setitem__(self, index: Never, value: Never) -> NoReturn: ...  # refused, and so before it runs
        def __delitem__(self, index: Never) -> NoReturn: ...

        all = reductions.all
        any = reductions.any
        argmax = reductions.argmax
        argmin = reductions.argmin
        argpartition = sorting.argpartition
        argsort = sorting.argsort
        astype = _astype
        choose = selection.choose
        clip = arithmetic.clip
        conj = conjugate = arithmetic.conjugate
        copy = creation.copy
        cumprod = reductions.cumprod
        cumsum = reductions.cumsum
        diagonal = matrices.diagonal
        dot = contraction.dot
        max = reductions.max
        mean = statistics.mean
        min = reductions.min
        nonzero = sorting.nonzero
        partition = sorting.partition
        prod = reductions.prod
        ptp = reductions.ptp
        ravel = flatten = shaping.ravel
        repeat = joining.repeat
        round = arithmetic.round
        searchsorted = sorting.searchsorted
        sort = sorting.sort
        squeeze = shaping.squeeze
        std = statistics.std
        sum = reductions.sum
        swapaxes = shaping.swapaxes
        take = indexing.take
        trace = matrices.trace
        var = statistics.var

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
        def reshape(self, *shape: Any, order: str = "C") -> "Array": ...
        def transpose(self, *axes: Any) -> "Array": ...
        def item(self, *args: Any) -> Any: ...
        def tolist(self) -> Any: ...
        def to_device(self, device: Any, /, *, stream: None = None) -> "Array": ...
        def view(self, dtype: Any = None) -> "Array": ...
        def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
        @property
        def T(self) -> "Array": ...
        @property
        def mT(self) -> "Array": ...
        @property
        def real(self) -> "Array": ...
        @property
        def imag(self) -> "Array": ...
        @property
        def at(self) -> At: ...
