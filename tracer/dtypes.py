"""Element types, and type promotion: the dtype that the operands of an operation are converted to.

The types are NumPy's booleans, integers, floats and complex numbers, those that ml_dtypes adds (bfloat16, fp8, fp4,
int2, int4), `float0`, the type of the only tangent of an integer, and those of keys of random numbers.

Types meet in JAX's lattice: https://docs.jax.dev/en/latest/type_promotion.html. A weak type takes part in it as its
kind alone, so that a number gives way to any array of its kind. Knowingly different: a 64-bit type is never truncated,
whatever the default width, so that 64-bit integers become float64 wherever no width is stated (`float_of`); NumPy
scalars are weak, of their own width, which shows among weak operands only.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, NewType, TypeAlias

import ml_dtypes
import numpy as np

from tapeless.tracer.advice.called_functions import prefix_called
from tapeless.tracer.errors import TypePromotionError, advice_on_width
from tapeless.tracer.extended_dtypes import KEYS, KeyDType, extended, prng_key
from tapeless.tracer.settings.config import config

if TYPE_CHECKING:
    DTypeLike: TypeAlias = np.dtype[Any] | type[Any] | str
else:
    DTypeLike = NewType("DTypeLike", object)  # the name alone: `help` shows it
    DTypeLike.__module__ = "tapeless.typing"
DType: TypeAlias = np.dtype[Any]

float0: DType = np.dtype([("float0", np.void, 0)])

_SMALL_FLOATS = (
    "float4_e2m1fn",
    *("float8_" + form for form in "e3m4 e4m3 e4m3b11fnuz e4m3fn e4m3fnuz e5m2 e5m2fnuz e8m0fnu".split()),
)
_NAMES_OF_KIND = {
    "b": ("bool",),
    "i": ("int2", "int4", "int8", "int16", "int32", "int64"),
    "u": ("uint2", "uint4", "uint8", "uint16", "uint32", "uint64"),
    "f": (*_SMALL_FLOATS, "bfloat16", "float16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}
_KIND_OF_PYTHON = {bool: "b", int: "i", float: "f", complex: "c"}


def _named(name: str) -> DType:
    return np.dtype(getattr(ml_dtypes, name, name))


class _Kinds(dict[DType, str]):
    """Kinds by dtype; a missing key (a class, a name, another dtype) has the kind of its canonical form."""

    def __missing__(self, given: Any) -> str:
        return self[canonical(given)]


_KINDS = _Kinds({_named(name): kind for kind, names in _NAMES_OF_KIND.items() for name in names})
_KINDS[float0] = "0"
_KINDS.update(dict.fromkeys(KEYS.values(), "k"))
_NAMES = {dtype: dtype.name for dtype in _KINDS} | {float0: "float0"}
_BY_NAME: dict[str, DType] = {name: dtype for dtype, name in _NAMES.items()}

# ---- what a dtype is


def kind(dtype: DType) -> str:
    """Return b, i, u, f or c as NumPy does, also for ml_dtypes, whose `dtype.kind` is V; 0 for float0, k for keys."""
    return _KINDS[dtype]


def is_key(dtype: Any) -> bool:
    """Tell whether `dtype` is one of keys."""
    return type(dtype) is KeyDType


def is_bool(dtype: DType) -> bool:
    """Tell whether `dtype` is the boolean type."""
    return _KINDS[dtype] == "b"


def is_integer(dtype: DType) -> bool:
    """Tell whether `dtype` is an integer type, signed or not."""
    return _KINDS[dtype] in "iu"


def is_signed(dtype: DType) -> bool:
    """Tell whether `dtype` has negative values."""
    return _KINDS[dtype] in "ifc"


def is_float(dtype: DType) -> bool:
    """Tell whether `dtype` is a real floating point type."""
    return _KINDS[dtype] == "f"


def is_complex(dtype: DType) -> bool:
    """Tell whether `dtype` is a complex type."""
    return _KINDS[dtype] == "c"


def is_inexact(dtype: DType) -> bool:
    """Tell whether `dtype` is floating point, real or complex: whether it has tangents."""
    return _KINDS[dtype] in "fc"


def rank(dtype: DType) -> int:
    """Rank booleans, integers, floating point and complex: a number of a higher rank does not fit a lower one.

    Keys have the lowest rank: no number fits them.
    """
    return _RANKS[_KINDS[dtype]]


_RANKS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3, "k": -1}


def itemsize_bits(dtype: Any) -> int:
    """Bits of an element of a dtype, 4 for int4, by any of its names; 8 for booleans."""
    exact = of_elements(dtype)
    return 8 if is_bool(exact) else bits_of(exact)


def scalar_type_of(x: Any) -> type:
    """The class of Python's numbers for the elements of `x`, an array, a number or a dtype: bool, int, float, complex.

    Raises: TypeError if it is of no numbers.
    """
    found = kind(result_type(x)[0])
    for scalar_type, of in (*_KIND_OF_PYTHON.items(), (int, "u")):
        if found == of:
            return scalar_type
    raise TypeError(f"scalar_type_of: {x!r} has no elements that are numbers.")


def bits_of(dtype: DType) -> int:
    """Bits of a value: 4 for int4, which takes 8 in memory."""
    return _BITS[dtype]


def short_name(dtype: DType) -> str:
    """Abbreviate a dtype as printed types do: f32, bf16, i64, u8, c64, bool, f8_e4m3fn.

    >>> short_name(np.dtype("float32"))
    'f32'
    """
    return _SHORT_NAMES[dtype]


def of_short_name(name: str) -> DType | None:
    """The dtype that is abbreviated so; None if there is none."""
    return next((dtype for dtype, short in _SHORT_NAMES.items() if short == name), None)


def of_name(name: str) -> DType | None:
    """The dtype of this name, in full; None if there is none."""
    return _BY_NAME.get(name)


def _shortened(name: str) -> str:
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        if name.startswith(long):
            return name.replace(long, short, 1)
    return name


def _count_bits(name: str) -> int:
    digits = name.partition("_")[0].lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits or 8)


_SHORT_NAMES = {dtype: _shortened(name) for name, dtype in _BY_NAME.items()} | {float0: "float0"}
_BITS = {dtype: 8 * dtype.itemsize if is_key(dtype) else _count_bits(name) for name, dtype in _BY_NAME.items()}

# ---- dtypes of the default width, and dtypes made of others


def default_dtype(kind: str) -> DType:
    """Type of the default width of a kind: b, i, u, f or c. Complex numbers have two parts of that width."""
    return _DEFAULTS[config.default_bits][kind]


def scalar_dtype(scalar_type: type) -> DType:
    """Type of a number of class bool, int, float or complex: of the default width."""
    return _DEFAULTS[config.default_bits][_KIND_OF_PYTHON[scalar_type]]


def numpy_dtype(dtype: DType) -> DType:
    """Type of the elements of a user's NumPy array: its own, or 32 bits for 64 where `config.numpy_bits` is 32."""
    return dtype if config.numpy_bits == 64 else _OF_32_BITS.get(dtype.newbyteorder("="), dtype)


def has_32_bit_form(dtype: DType) -> bool:
    """Tell whether `numpy_dtype` may take a dtype as another."""
    return dtype.newbyteorder("=") in _OF_32_BITS


def is_narrower(dtype: DType, other: DType) -> bool:
    """Tell whether `dtype` is the type of 32 bits that one of 64 is taken as, see `numpy_dtype`."""
    return dtype != other and _OF_32_BITS.get(other.newbyteorder("=")) == dtype


def tangent_dtype(dtype: DType) -> DType:
    """Type of the tangents of `dtype`: itself, or float0 for integers and booleans."""
    return dtype if _KINDS[dtype] in "fc" else float0


def real_part_dtype(dtype: DType) -> DType:
    """Type of the real part of `dtype`: itself unless complex."""
    return _REAL_PARTS.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex type that holds `dtype`: complex128 for float64, else complex64; of integers as `inexact_of` says."""
    return _COMPLEX[inexact_of(dtype)]


def inexact_of(dtype: DType) -> DType:
    """`dtype` if floating point or complex; float32 for booleans and integers under 64 bits, else as `float_of`."""
    if _KINDS[dtype] in "fc":
        return dtype
    return float_of(dtype) if _BITS[dtype] == 64 else _DEFAULTS[32]["f"]


def float_of(*dtypes: DType, kind: str = "f") -> DType:
    """The floating-point type, or complex one if `kind` is c, in which integers of `dtypes` meet a number like 0.1.

    Such a number states no width. The type has the default one, but 64 bits beside integers of 64 bits, which float32
    would round; unless programs are as in JAX (`config.numpy_bits` is 32).
    """
    return _DEFAULTS[64 if _need_64_bits(dtypes) else config.default_bits][kind]


def _need_64_bits(dtypes: Iterable[DType]) -> bool:
    return config.numpy_bits == 64 and any(dtype in _WIDE_INTEGERS for dtype in dtypes)


_WIDE_INTEGERS = (np.dtype(np.int64), np.dtype(np.uint64))


_DEFAULTS: dict[int, dict[str, DType]] = {
    32: {k: np.dtype(n) for k, n in zip("biufc", ("bool", "int32", "uint32", "float32", "complex64"), strict=True)},
    64: {k: np.dtype(n) for k, n in zip("biufc", ("bool", "int64", "uint64", "float64", "complex128"), strict=True)},
}
_OF_32_BITS = {wide: _DEFAULTS[32][kind] for kind, wide in _DEFAULTS[64].items() if wide != _DEFAULTS[32][kind]}
_REAL_PARTS = {_named("complex64"): _named("float32"), _named("complex128"): _named("float64")}
_COMPLEX = {
    **{dtype: _named("complex64") for dtype, kind in _KINDS.items() if kind == "f"},
    _named("float64"): _named("complex128"),
    **{dtype: dtype for dtype in _REAL_PARTS},
}

# ---- from what users write


def canonical(dtype: Any) -> DType:
    """The dtype meant by a dtype, a name, a scalar type, or a NumPy scalar; in native byte order.

    `float`, `int`, `complex` and `bool`, as classes or names, mean the type of the default width.

    Raises: TypeError if it means none, or one that is not supported, such as object, str or datetime64; for an array.

    >>> canonical(float), canonical("bfloat16"), canonical(np.int8)
    (dtype('float32'), dtype(bfloat16), dtype('int8'))
    """
    if isinstance(dtype, (np.dtype, type, str, KeyDType)):
        found = _SPELLINGS.get(dtype)
        if found is not None:
            return found
        if dtype in _DEFAULT_SPELLINGS:
            return default_dtype(_DEFAULT_SPELLINGS[dtype])
    return _read(dtype)


_DEFAULT_SPELLINGS: dict[Any, str] = {**_KIND_OF_PYTHON, **{c.__name__: kind for c, kind in _KIND_OF_PYTHON.items()}}
_SPELLINGS: dict[Any, DType] = {
    **{dtype: dtype for dtype in _KINDS},
    **{dtype.type: dtype for dtype, kind in _KINDS.items() if kind in "biufc"},
    **_BY_NAME,
}


def _read(given: Any) -> DType:
    if _is_array(given):
        raise TypeError(prefix_called(f"an array of {given.dtype} was given as a dtype: give its dtype, x.dtype."))
    dtype = _interpreted(given)
    found = None if dtype is None else _SPELLINGS.get(dtype if is_key(dtype) else dtype.newbyteorder("="))
    if found is not None:
        return found
    meaning = "" if dtype is None else f", which NumPy reads as {dtype},"
    raise TypeError(
        prefix_called(f"{given!r}{meaning} is not a dtype of arrays: ")
        + "use bool, an integer, a float or a complex type, for example 'float32', np.int8 or float."
        + ("\n  If it says whether axes stay, name it: keepdims=True." if isinstance(given, bool) else "")
        + ("\n  If it is a size, write the shape as one tuple: (2, 3)." if type(given) is int else "")
    )


def _interpreted(given: Any) -> DType | None:
    own: Any = getattr(given, "dtype", None)
    if isinstance(own, np.dtype) or is_key(own):
        return own
    try:
        return None if given is None else np.dtype(given)
    except (TypeError, ValueError):
        return None


def of_elements(x: Any) -> DType:
    """Return the dtype of an array, or the one that `canonical` finds for anything else."""
    return canonical(x.dtype if _is_array(x) else x)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or hasattr(x, "aval")


def finfo(dtype: Any) -> Any:
    """Limits of a float type, or of the parts of a complex one: eps, max, tiny, bits, ..., as `np.finfo`.

    Raises: TypeError if `dtype` is not floating point.
    """
    found = of_elements(dtype)
    if not is_inexact(found):
        raise TypeError(f"finfo: {found} is not a floating point type; use iinfo.")
    return ml_dtypes.finfo(real_part_dtype(found))


def iinfo(dtype: Any) -> Any:
    """Limits of an integer type: min, max, bits, as `np.iinfo`. Raises: TypeError if `dtype` is not an integer type."""
    found = of_elements(dtype)
    if not is_integer(found):
        raise TypeError(f"iinfo: {found} is not an integer type{'; use finfo' * is_inexact(found)}.")
    return ml_dtypes.iinfo(found)


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    return _RANGES[dtype]


def check_fits(value: int, dtype: DType) -> None:
    """Check that the integer type `dtype` holds `value`. Raises: OverflowError if it does not."""
    low, high = limits(dtype)
    if not low <= value <= high:
        advice = advice_on_width(value, str(dtype))
        raise OverflowError(f"the integer {value} does not fit {dtype}, which holds {low} to {high}: {advice}.")


def holds_integers(dtype: DType, low: int, high: int) -> bool:
    """Tell whether a number type holds all integers from `low` to `high` exactly."""
    if is_integer(dtype):
        least, greatest = limits(dtype)
        return least <= low and high <= greatest
    return is_inexact(dtype) and max(-low, high) <= 2 ** (finfo(dtype).nmant + 1)


def holds(dtype: DType, other: DType) -> bool:
    """Tell whether `dtype` has room for all integers of `other`; true if either is no integer type."""
    ours, theirs = _RANGES.get(dtype), _RANGES.get(other)
    return ours is None or theirs is None or (ours[0] <= theirs[0] and theirs[1] <= ours[1])


def _range(dtype: DType) -> tuple[int, int]:
    limits = ml_dtypes.iinfo(dtype)
    return int(limits.min), int(limits.max)


_RANGES = {dtype: _range(dtype) for dtype, kind in _KINDS.items() if kind in "iu"}

# ---- relations between dtypes


def issubdtype(dtype: Any, category: Any) -> bool:
    """Tell whether `dtype`, None for the default, is in a category (np.integer, ...) or is the dtype `category`."""
    kinds = _CATEGORIES.get(category) if isinstance(category, type) else None
    found = of_elements(float if dtype is None else dtype)
    return found == canonical(category) if kinds is None else _KINDS[found] in kinds


_CATEGORIES: dict[type, str] = {
    np.generic: "biufc0k",
    extended: "k",
    prng_key: "k",
    np.number: "iufc",
    np.integer: "iu",
    np.signedinteger: "i",
    np.unsignedinteger: "u",
    np.inexact: "fc",
    np.floating: "f",
    np.complexfloating: "c",
}


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Tell whether values of one dtype can be cast to another under NumPy's rule `casting`."""
    given, wanted = of_elements(from_), canonical(to)
    return given == wanted if is_key(given) or is_key(wanted) else np.can_cast(given, wanted, casting)


# ---- promotion


def result_type(*operands: Any) -> tuple[DType, bool]:
    """Promote operands: return their common dtype, and whether it is weak.

    Args:
      operands: numbers, arrays, types of arrays (anything with `dtype` and `weak_type`), dtypes (strong, except the
        classes int, float and complex).
    Returns: among strong operands their join in JAX's lattice; a weak operand only raises the kind of that, to the
      default width, or 64 bits for integers of 64 (`float_of`); among weak operands the widest.
    Raises: TypeError if there is no common dtype, or an operand is none of these; TypePromotionError if
      `config.numpy_dtype_promotion` is "strict" and they are promoted.

    >>> result_type(np.ones(3, np.float32), np.float64(0.1))
    (dtype('float32'), False)
    >>> result_type(np.ones(3, np.int8), 2.0)
    (dtype('float32'), True)
    """
    known = _results[config.default_bits, config.numpy_bits]
    key = tuple(map(_type_of, operands))
    if config.numpy_dtype_promotion == "strict":
        _check_strict(key)
    found = known.get(key)
    if found is None:
        found = known[key] = _meet(key)
    return found


def wider(x: DType, y: DType) -> DType:
    """Promote two dtypes to their join, whatever `config.numpy_dtype_promotion` is."""
    return _meet((x, y))[0]


def holding_both(x: DType, y: DType) -> DType | None:
    """Return the one of two dtypes that the other is promoted to; None if neither is."""
    joined = _join_or_none((x, y))
    return joined if joined in (x, y) and not isinstance(joined, str) else None


# A type that takes part in promotion is a dtype where strong, a scalar class where weak: np.float64 is a weak float64,
# float a weak float of the default width. Only booleans are strong either way.
_TypeOf: TypeAlias = DType | type
_results: dict[tuple[int, int], dict[tuple[_TypeOf, ...], tuple[DType, bool]]] = {
    (default, of_numpy): {} for default in (32, 64) for of_numpy in (32, 64)
}
_WIDE_NUMBERS: dict[type, type] = {wide.type: narrow.type for wide, narrow in _OF_32_BITS.items()}
_NUMBERS: frozenset[type] = frozenset(
    [*_KIND_OF_PYTHON, *(dtype.type for dtype, kind in _KINDS.items() if kind in "biufc")]
)


def _type_of(x: Any) -> _TypeOf:
    kind = type(x)
    if kind in _NUMBERS:
        return _WIDE_NUMBERS.get(kind, kind) if config.numpy_bits == 32 else kind
    if kind is np.ndarray:
        return numpy_dtype(x.dtype)
    aval = getattr(x, "aval", x)
    weak = getattr(aval, "weak_type", None)
    if weak is None:
        return _type_of_other(x)
    return aval.dtype.type if weak else aval.dtype


def _type_of_other(x: Any) -> _TypeOf:
    if isinstance(x, np.generic) and x.dtype != float0:
        return of_elements(x).type
    if isinstance(x, tuple(_KIND_OF_PYTHON)):
        return next(base for base in type(x).__mro__ if base in _KIND_OF_PYTHON)
    return x if isinstance(x, type) and x in _KIND_OF_PYTHON else of_elements(x)


def _meet(types: tuple[_TypeOf, ...]) -> tuple[DType, bool]:
    if not types:
        raise TypeError("promotion needs at least one operand.")
    weak = [_dtype_of_class(t) for t in types if isinstance(t, type) and t not in _BOOLEANS]
    strong = [canonical(t) for t in types if not isinstance(t, type) or t in _BOOLEANS]
    if not strong:
        return _of_numbers(weak), True
    joined = _narrowed(_join([*strong, *(_weak_kind(dtype) for dtype in weak)]), strong)
    if joined == "f*" and not weak:  # uint64 and signed integers: no float but of 64 bits comes near to holding both
        return np.dtype(np.float64), True
    if isinstance(joined, str) and joined[0] in "fc":
        return float_of(*strong, kind=joined[0]), True
    return _default_if_weak(joined)


def _narrowed(joined: Any, operands: Sequence[DType]) -> Any:
    """Narrow a join to 32 bits if no operand has more: uint32 and a signed integer give int32, as in JAX."""
    if not config.numpy_bits == 32 == config.default_bits or any(x in _OF_32_BITS for x in operands):
        return joined
    return _OF_32_BITS.get(joined, joined)


_BOOLEANS = (bool, np.bool_)


def _check_strict(types: tuple[_TypeOf, ...]) -> None:
    """Check that strong types are equal, and no weak one is of a higher kind. Raises: TypePromotionError."""
    strong = {canonical(t) for t in types if not isinstance(t, type) or t in _BOOLEANS}
    weak = [_dtype_of_class(t) for t in types if isinstance(t, type) and t not in _BOOLEANS]
    if len(strong) > 1 or any(rank(x) > rank(dtype) for dtype in strong for x in weak):
        names = " and ".join(t.__name__ if isinstance(t, type) else _NAMES.get(t, str(t)) for t in types)
        raise TypePromotionError(
            f"implicit promotion of {names}, which config.numpy_dtype_promotion forbids: it is 'strict'.\n"
            "  Convert them with astype, or set it to 'standard'."
        )


def _dtype_of_class(scalar_class: type) -> DType:
    return scalar_dtype(scalar_class) if scalar_class in _KIND_OF_PYTHON else np.dtype(scalar_class)


def _of_numbers(weak: Sequence[DType]) -> DType:
    """Find the widest of weak types; with a NumPy scalar of int64 or uint64 it has 64 bits."""
    widest = _narrowed(reduce(_widest, weak), weak)
    if config.default_bits == 32 and _KINDS[widest] in "fc" and _need_64_bits(weak):
        return _widest(widest, float_of(*weak, kind=_KINDS[widest]))
    return widest


def _widest(x: DType, y: DType) -> DType:
    """Join two weak types in the lattice; if that would change the kind, the one of more bits wins."""
    joined = _join_or_none((x, y))
    if isinstance(joined, np.dtype):
        return joined
    if bits_of(x) == bits_of(y):
        return _default_if_weak(_join((x, y)))[0]
    return max(x, y, key=bits_of)


# Source: https://docs.jax.dev/en/latest/type_promotion.html. i*, f* and c* are the weak kinds. What is not named has
# nothing above it.
_ABOVE = {
    "bool": "i*",
    "i*": "uint8 int8 int2 int4 uint2 uint4",
    "uint8": "int16 uint16",
    "uint16": "int32 uint32",
    "uint32": "int64 uint64",
    "int8": "int16",
    "int16": "int32",
    "int32": "int64",
    "uint64": "f*",
    "int64": "f*",
    "f*": " ".join(["bfloat16 float16 c*", *_SMALL_FLOATS]),
    "bfloat16": "float32",
    "float16": "float32",
    "float32": "float64 complex64",
    "float64": "complex128",
    "c*": "complex64",
    "complex64": "complex128",
}


@cache
def _upwards(name: str) -> frozenset[str]:
    """List the dtypes at or above `name` in the promotion lattice."""
    return frozenset([name]).union(*(_upwards(above) for above in _ABOVE.get(name, "").split()))


def _join_or_none(nodes: Iterable[DType | str]) -> DType | str | None:
    above = frozenset.intersection(*(_upwards(_node_name(node)) for node in nodes))
    least = next((name for name in above if _upwards(name) == above), None)
    return None if least is None else _BY_NAME.get(least, least)


def _join(nodes: Collection[DType | str]) -> DType | str:
    joined = _join_or_none(nodes)
    key = next((node for node in nodes if is_key(node)), None)
    if joined is None and key is not None:
        others = " and ".join(_described_node(node) for node in nodes if node != key)
        raise TypeError(f"{key} has no common dtype with {others}: keys go with keys alone, of the same generator.")
    if joined is None:
        names = " and ".join(dict.fromkeys(map(_described_node, nodes)))
        raise TypeError(f"{names} have no common dtype: convert one to the dtype of another with astype.")
    return joined


_WEAK_NAMES = {"i*": "a weak integer", "f*": "a weak float", "c*": "a weak complex number"}


def _described_node(node: DType | str) -> str:
    name = _node_name(node)
    return _WEAK_NAMES.get(name, name)


def _node_name(node: DType | str) -> str:
    return node if isinstance(node, str) else _NAMES[node]


def _weak_kind(dtype: DType) -> str:
    return "i*" if _KINDS[dtype] in "iu" else f"{_KINDS[dtype]}*"


def _default_if_weak(joined: DType | str) -> tuple[DType, bool]:
    return (default_dtype(joined[0]), True) if isinstance(joined, str) else (joined, False)
