"""Element types by NumPy's names: `tnp.float32` is accepted as a dtype, and called to make arrays."""

import builtins
import math
from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.extended_dtypes import extended, prng_key
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.primitives.operands import canonical_axes
from tapeless.tracer.types import aval_of, by_protocol, is_arraylike

dtype = np.dtype


class ScalarType(type):
    """An element type: a class whose call makes arrays, as a call of a NumPy scalar type makes scalars.

    >>> import tapeless.numpy as tnp
    >>> tnp.float32(3).dtype == tnp.float32
    True
    """

    def __new__(mcs, name: str, bases: tuple[type, ...] = (), members: dict[str, Any] | None = None) -> "ScalarType":
        if members is not None:  # a subclass: names for elements of its base
            return super().__new__(mcs, name, bases, members)
        doc = f"The element type {name}; `{name}(x)` is an array with elements of it."
        return super().__new__(mcs, name, (), {"__doc__": doc, "__module__": "tapeless.numpy", "__slots__": ()})

    def __init__(cls, name: str, bases: tuple[type, ...] = (), members: dict[str, Any] | None = None) -> None:
        super().__init__(name, (), {})

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The dtype of this name, or of the element type that this class is derived from."""
        name = cls.__mro__[-2].__name__
        return dtypes.canonical(getattr(ml_dtypes, name, name))

    def __call__(cls, x: Any = 0) -> Array:
        return asarray(x, cls.dtype)

    def __eq__(cls, other: Any) -> builtins.bool:
        if other is cls or other in _CATEGORIES:
            return other is cls
        try:
            return cls.dtype == dtypes.canonical(other)
        except TypeError:
            return False

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)  # as of the scalar type of NumPy, for sets of either

    def __repr__(cls) -> str:
        return f"tapeless.numpy.{cls.__name__}"


class DefaultType(ScalarType):
    """The element type of a kind (i, u, f, c) in the default width: `int_`, `uint`, `float_`, `complex_`."""

    _kind: str

    def __new__(mcs, name: str, kind: str) -> "DefaultType":
        found = super().__new__(mcs, name)
        assert isinstance(found, DefaultType)
        return found

    def __init__(cls, name: str, kind: str) -> None:
        super().__init__(name)
        cls._kind = kind

    @property
    def dtype(cls) -> np.dtype[Any]:
        """The dtype of this kind, in the current default width."""
        return dtypes.default_dtype(cls._kind)


bool_: Final = ScalarType("bool")
int2: Final = ScalarType("int2")
int4: Final = ScalarType("int4")
int8: Final = ScalarType("int8")
int16: Final = ScalarType("int16")
int32: Final = ScalarType("int32")
int64: Final = ScalarType("int64")
uint2: Final = ScalarType("uint2")
uint4: Final = ScalarType("uint4")
uint8: Final = ScalarType("uint8")
uint16: Final = ScalarType("uint16")
uint32: Final = ScalarType("uint32")
uint64: Final = ScalarType("uint64")
float16: Final = ScalarType("float16")
bfloat16: Final = ScalarType("bfloat16")
float32: Final = ScalarType("float32")
float64: Final = ScalarType("float64")
float4_e2m1fn: Final = ScalarType("float4_e2m1fn")
float8_e3m4: Final = ScalarType("float8_e3m4")
float8_e4m3: Final = ScalarType("float8_e4m3")
float8_e8m0fnu: Final = ScalarType("float8_e8m0fnu")
float8_e4m3fn: Final = ScalarType("float8_e4m3fn")
float8_e5m2: Final = ScalarType("float8_e5m2")
float8_e4m3b11fnuz: Final = ScalarType("float8_e4m3b11fnuz")
float8_e4m3fnuz: Final = ScalarType("float8_e4m3fnuz")
float8_e5m2fnuz: Final = ScalarType("float8_e5m2fnuz")
complex64: Final = ScalarType("complex64")
complex128: Final = ScalarType("complex128")
int_: Final = DefaultType("int_", "i")
uint: Final = DefaultType("uint", "u")
float_: Final = DefaultType("float_", "f")
complex_: Final = DefaultType("complex_", "c")
bool = bool_
half = float16
single = float32
double = float64
csingle = complex64
cdouble = complex128

generic = np.generic
number = np.number
integer = np.integer
inexact = np.inexact
object_ = np.object_
character = np.character
flexible = np.flexible
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
floating = np.floating
complexfloating = np.complexfloating
_CATEGORIES = (
    *(generic, number, integer, inexact, signedinteger, unsignedinteger, floating, complexfloating),
    *(extended, prng_key),
)

# ---- questions about dtypes ----------------------------------------------------------------------------------


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """Tell whether a dtype equals another, or belongs to a category such as `floating` or `integer`.

    >>> issubdtype(bfloat16, floating)
    True
    """
    if isinstance(arg1, type) and isinstance(arg2, type) and not isinstance(arg1, ScalarType) and arg1 in _CATEGORIES:
        return issubclass(arg1, arg2)
    return dtypes.issubdtype(arg1, arg2)


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Tell whether a dtype is of a kind: a dtype, "bool", "numeric", "integral", "real floating", ..., or a tuple.

    Raises: TypeError if there is neither a kind nor a dtype of a name.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    own = dtypes.of_elements(dtype)
    found = [dtypes.kind(own) in _KINDS[k] if k in _KINDS else own == dtypes.canonical(k) for k in kinds]
    return any(found)


_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def result_type(*args: Any) -> np.dtype[Any]:
    """Return the dtype to which arrays, numbers and dtypes promote; weak types give way.

    Raises: ValueError if there are no arguments; TypeError if one is neither array nor dtype, or there is no common
      dtype.
    """
    if not args:
        raise ValueError("result_type: at least one array or dtype is needed.")
    return dtypes.result_type(*[x if is_arraylike(x) else dtypes.canonical(x) for x in args])[0]


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """Return the dtype to which two dtypes promote; Python's int, float and complex are weak: they give only a kind.

    Raises: TypeError if there is none.
    """
    return dtypes.result_type(*(x if x in (int, float, complex) else dtypes.of_elements(x) for x in (a, b)))[0]


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> builtins.bool:
    """Test whether a dtype can be cast to another under a NumPy rule: no, equiv, safe, same_kind, unsafe."""
    return builtins.bool(dtypes.can_cast(aval_of(from_).dtype if is_arraylike(from_) else from_, to, casting))


def finfo(dtype: DTypeLike) -> Any:
    """Return the limits of a floating-point dtype: eps, max, min, tiny, bits, ... Raises: TypeError for others."""
    return dtypes.finfo(dtype)


def iinfo(dtype: DTypeLike) -> Any:
    """Return the limits of an integer dtype: min, max, bits. Raises: TypeError for others."""
    return dtypes.iinfo(dtype)


def ndim(a: Any) -> int:
    """Return the number of axes of an array, a number or nested lists."""
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of the axes of an array, a number or nested lists."""
    a = by_protocol(a)
    return tuple(a.shape) if hasattr(a, "shape") else np.shape(a)


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements, or the size of an axis, or the product of the sizes of several.

    Raises: ValueError for an axis out of range.
    """
    lengths = shape(a)
    return math.prod(lengths[i] for i in canonical_axes(axis, len(lengths)))


def isscalar(element: Any) -> builtins.bool:
    """Tell whether something is a number, or an array without axes."""
    return is_arraylike(element) and not shape(element)


def iscomplexobj(x: Any) -> builtins.bool:
    """Tell whether an array, a number, nested lists of these or another object with a dtype is complex; None is not."""
    x = by_protocol(x)
    if x is None or isinstance(x, (list, tuple)):
        return x is not None and dtypes.is_complex(asarray(x).dtype)
    described = hasattr(x, "dtype") and not is_arraylike(x)
    return dtypes.is_complex(np.dtype(x.dtype) if described else aval_of(x).dtype)


def isrealobj(x: Any) -> builtins.bool:
    """Tell whether an array, a number or another object with a dtype is not complex."""
    return not iscomplexobj(x)


def astype(x: Any, /, dtype: DTypeLike, *, copy: builtins.bool = False, device: Any = None) -> Array:
    """Convert elements to another dtype, without errors, as in NumPy.

    Complex to real drops the imaginary part, floating point to integer rounds towards zero, and integers that do not
    fit wrap: they keep their lowest bits.

    Args:
      copy: whether to copy also if the dtype is the same.
      device: as for `array`.
    """
    return asarray(asarray(x), dtype, copy=True if copy else None, device=device)
