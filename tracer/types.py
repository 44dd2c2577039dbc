"""The types of values: an array's shape, dtype, weak type and sharding; and what becomes of arrays of NumPy.

Types are interned, so `is` compares them and hashing is one pointer: typing rules and caches rely on it.
"""

import math
import threading
import weakref
from types import FrameType
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.called_functions import prefix_called
from tapeless.tracer.caches import bound_entries
from tapeless.tracer.extended_dtypes import KEY, KeyDType
from tapeless.tracer.settings.config import config


class ShapedArray:
    """Type of an array: `shape`, `dtype`, `weak_type` (gives way to any strong type of its kind), `sharding`."""

    __slots__ = ("__weakref__", "_tangent", "dtype", "ndim", "shape", "sharding", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool
    sharding: Any
    ndim: int
    size: int
    _tangent: "ShapedArray | None"

    def __new__(
        cls, shape: tuple[int, ...], dtype: Any, weak_type: bool = False, sharding: Any = None
    ) -> "ShapedArray":
        key = (shape, dtype, weak_type, sharding)
        found = _recent.get(key)
        return ShapedArray._intern(key) if found is None else found

    @staticmethod
    def _intern(key: tuple[Any, ...]) -> "ShapedArray":
        """Return the one object for `key`, whose shape and dtype may still be given loosely (a list, "float32")."""
        shape, dtype, weak_type, sharding = key
        exact_dtype = dtype if dtypes.is_key(dtype) else np.dtype(dtype)
        exact = (tuple(int(n) for n in shape), exact_dtype, bool(weak_type), sharding)
        new = object.__new__(ShapedArray)
        new.shape, new.dtype, new.weak_type, new.sharding = exact
        new.ndim, new.size, new._tangent = len(exact[0]), math.prod(exact[0]), None
        if new.size * exact_dtype.itemsize >= 2**63:
            raise ValueError(f"an array of type {new} has more bytes than 64 bits count.")
        with _lock:
            found = _interned.setdefault(exact, new)
        return bound_entries(_recent, _RECENT_LIMIT).setdefault(exact, found)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.sharding)

    def update(self, **changes: Any) -> "ShapedArray":
        """Return the type with some fields replaced.

        >>> ShapedArray((2, 3), "float32").update(shape=(3,))
        ShapedArray(float32[3])
        """
        get = changes.get
        return ShapedArray(
            get("shape", self.shape),
            get("dtype", self.dtype),
            get("weak_type", self.weak_type),
            get("sharding", self.sharding),
        )

    def tangent(self) -> "ShapedArray":
        """Return the type of this type's tangents: itself, or float0 of the same shape for integers and booleans."""
        found = self._tangent
        if found is None:
            found = self._tangent = self.update(dtype=dtypes.tangent_dtype(self.dtype))
        return found

    to_tangent_aval = tangent  # by JAX's names, as the next ones
    to_ct_aval = tangent
    at_least_vspace = tangent

    @property
    def nbytes(self) -> int:
        """Size of its elements in bytes."""
        return self.size * self.dtype.itemsize

    def strong(self) -> "ShapedArray":
        """Return the type, made strong if it is weak."""
        return self.update(weak_type=False) if self.weak_type else self

    strip_weak_type = strong  # JAX's name

    def str_short(self) -> str:
        """Print the type briefly: `f32[3,2]`, with `~` before a weak type."""
        shape = ",".join(map(str, self.shape))
        return f"{'~' * self.weak_type}{dtypes.short_name(self.dtype)}[{shape}]"

    def __str__(self) -> str:
        shape = ",".join(map(str, self.shape))
        return f"{self.dtype.name}[{shape}]"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self}{weak})"


_interned: weakref.WeakValueDictionary[Any, ShapedArray] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # reentrant: collecting garbage while it is held may run a finalizer that makes a type
_recent: dict[Any, ShapedArray] = {}  # some of the interned types, where they are found at once and kept for a while
_RECENT_LIMIT = 4096


def holds_keys(aval: ShapedArray) -> bool:
    """Tell whether `aval` is a type of keys of random numbers."""
    return dtypes.is_key(aval.dtype)


def physical(aval: ShapedArray) -> ShapedArray:
    """Compute the type of `aval` in memory: keys are words, along one more axis.

    >>> physical(ShapedArray((3,), KEY)), physical(ShapedArray((3,), "float32"))
    (ShapedArray(uint32[3,2]), ShapedArray(float32[3]))
    """
    return (
        aval.update(shape=(*aval.shape, key_dtype_of(aval).words), dtype=_WORD) if dtypes.is_key(aval.dtype) else aval
    )


def key_dtype_of(keys: ShapedArray) -> KeyDType:
    """Return the dtype of keys as a KeyDType, which describes their generator."""
    dtype: Any = keys.dtype
    return dtype


def keys_of_words(words: ShapedArray, dtype: Any = KEY) -> ShapedArray:
    """Compute the type of keys of `dtype` from the type of their words: the inverse of `physical`.

    Raises: TypeError if `words` is not uint32[..., n], where a key of `dtype` takes n words.
    """
    n = dtype.words
    if words.dtype != _WORD or words.shape[-1:] != (n,):
        raise TypeError(f"the words of a {dtype} are uint32[{n}], those of several uint32[..., {n}], not {words}.")
    return ShapedArray(words.shape[:-1], dtype)


_WORD = np.dtype("uint32")

# ---- arrays of NumPy -------------------------------------------------------------------------------------
# Users' NumPy arrays of 64 bits are converted to 32 bits if `config.numpy_bits` is 32. Such an array has a 32-bit type
# then (`aval_of`), and is converted where its elements are read: put on a device, or made a constant of a program.
# NumPy arrays that we make are `Exact`: they keep their dtype.


class Exact(np.ndarray[Any, Any]):
    """A NumPy array whose dtype is meant, whatever `config.numpy_bits` is; read-only, for programs share it."""

    placed: tuple[Any, Any] | None = None  # a number's device, and the number there, from when it is computed with


def exact(values: Any, dtype: Any = None) -> Exact:
    """Make a NumPy array of this dtype, one of ours."""
    made = np.asarray(values, dtype).view(Exact)
    made.flags.writeable = False
    return made


def take_array(x: np.ndarray[Any, Any]) -> Exact:
    """Take a NumPy array into a program, which outlives the tracing call: a copy, unless the array is ours."""
    return x if isinstance(x, Exact) and not x.flags.writeable else exact(x.copy())


def is_masked(value: Any) -> bool:
    """Tell whether `value` is a masked array of NumPy, which is no array here: its mask would be lost."""
    return type(value) is not np.ndarray and isinstance(value, np.ndarray) and hasattr(value, "mask")


def incoming(x: Any) -> Any:
    """Convert a user's NumPy array of 64 bits as `config.numpy_bits` says; return any other value as it is.

    A masked array is returned as it is, to be refused where arrays are expected: converted, it would lose its mask.

    Raises: OverflowError if an element does not fit.
    """
    if config.numpy_bits == 64 or not isinstance(x, np.ndarray) or isinstance(x, Exact) or is_masked(x):
        return x
    wide = dtypes.canonical(x.dtype)
    dtype = dtypes.numpy_dtype(wide)
    return x if dtype == wide else narrow_array(x, dtype)


def incoming_number(x: Any) -> Any:
    """Convert a user's value as `incoming` does; also NumPy scalars of 64 bits."""
    if config.numpy_bits == 64 or not isinstance(x, np.generic):
        return incoming(x)
    return incoming(np.asarray(x))[()]


def narrow_array(x: np.ndarray[Any, Any], dtype: Any) -> Exact:
    """Convert a NumPy array to a narrower dtype of its kind. Raises: OverflowError if an element does not fit."""
    if dtypes.is_integer(dtype):
        _check_integers(x, dtype)
        return exact(x, dtype)
    try:
        with np.errstate(over="raise"):
            return exact(x, dtype)
    except FloatingPointError:
        raise _unfit(x, dtype, x.flat[np.argmax(np.abs(np.where(np.isfinite(x), x, 0)))]) from None


def _check_integers(x: np.ndarray[Any, Any], dtype: Any) -> None:
    least, greatest = dtypes.limits(dtype)
    for extreme in (x.min(), x.max()) if x.size else ():
        if not least <= int(extreme) <= greatest:
            raise _unfit(x, dtype, extreme)


def _unfit(x: np.ndarray[Any, Any], dtype: Any, element: Any) -> OverflowError:
    array = f"{x.dtype}[{','.join(map(str, x.shape))}]"
    return OverflowError(
        f"config.numpy_bits is 32, so a NumPy array {array} is taken as {dtype}, which {element} does not fit.\n"
        f"  Keep its width with tnp.asarray(x, {x.dtype.name!r}), or by jax_enable_x64 inside of as_jax; or convert it "
        "where it is read."
    )


# ---- types of values -----------------------------------------------------------------------------------------


def aval_of(value: Any) -> ShapedArray:
    """Return the type of a value: an array of ours, a NumPy array (strong), NumPy or Python scalar (weak).

    NumPy's values of 64 bits have the type that `config.numpy_bits` says.

    Raises: TypeError if `value` is none of these.
    """
    kind = type(value)
    if kind is np.ndarray:
        return ShapedArray(value.shape, dtypes.numpy_dtype(dtypes.canonical(value.dtype)))
    aval = getattr(value, "aval", None)
    if type(aval) is ShapedArray:  # arrays of JAX have an aval, too
        return aval
    if kind in _PYTHON_SCALARS:
        return ShapedArray((), dtypes.scalar_dtype(kind), kind is not bool)
    known = _numpy_scalar_types[config.numpy_bits]
    found = known.get(kind)
    if found is not None:
        return found
    if isinstance(value, np.generic):
        dtype = dtypes.numpy_dtype(dtypes.canonical(value.dtype))
        return known.setdefault(kind, ShapedArray((), dtype, value.dtype.kind != "b"))
    if kind is Exact:
        return ShapedArray(value.shape, dtypes.canonical(value.dtype))
    if isinstance(value, np.ndarray) and not is_masked(value):
        return ShapedArray(value.shape, dtypes.numpy_dtype(dtypes.canonical(value.dtype)))
    for base in _PYTHON_SCALARS:
        if isinstance(value, base):
            return ShapedArray((), dtypes.scalar_dtype(base), base is not bool)
    hint = conversion_hint(value) if is_masked(value) else ""
    raise TypeError(f"{prefix_called(f'{value!r} of type {kind.__name__}')} is not an array or a number.{hint}")


def weak_number(x: Exact) -> Any:
    """Make a weakly typed number of an array of no axes, of its dtype, whatever `config.numpy_bits` is."""
    return x[()] if dtypes.numpy_dtype(x.dtype) == x.dtype else x.view(_WideNumber)


class _WideNumber(Exact):
    """A number of 64 bits where a NumPy scalar of them would be taken for one of 32."""

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray((), self.dtype, True)


_PYTHON_SCALARS = (bool, int, float, complex)
_numpy_scalar_types: dict[int, dict[type, ShapedArray]] = {32: {}, 64: {}}  # by the width of NumPy's values


def is_arraylike(value: Any) -> bool:
    """Tell whether `aval_of` accepts `value`."""
    ours = type(getattr(value, "aval", None)) is ShapedArray
    return ours or (isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)) and not is_masked(value))


def check_unmasked(value: Any, described: str) -> None:
    """Raises: TypeError if a value for NumPy to convert to an array is a masked array, whose mask would be lost."""
    if is_masked(value):
        raise TypeError(f"{described} is a masked array.{conversion_hint(value)}")


def by_protocol(value: Any) -> Any:
    """Convert an object to an array by its method `__jax_array__`; return any other value as it is."""
    method = getattr(type(value), "__jax_array__", None)
    return value if method is None else method(value)


def conversion_hint(value: Any) -> str:
    """Advise how to convert a value that could become an array, as a line of its own; else nothing."""
    if isinstance(value, (list, tuple)):
        return "\n  Write tnp.array(...) around a list: it is copied to the device."
    if is_masked(value):
        return "\n  A masked array would lose its mask: fill it, x.filled(value), or pass x.data and x.mask apart."
    if hasattr(type(value), "conversion_hint"):
        return type(value).conversion_hint
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return "\n  Write tnp.asarray(...) around an array of another library: it is copied to the device."
    return ""


# ---- arrays that are given to JAX ----------------------------------------------------------------------------

GIVEN_TO_JAX: Final = (
    "an array of Tapeless was given to JAX, or to a library that was imported with it, such as optax.\n"
    "  Import and call libraries for JAX inside of `with tl.as_jax():`, where they compute by Tapeless; or hand over "
    "numpy.asarray(x)."
)


def is_asked_by_jax(frame: FrameType) -> bool:
    """Tell whether a frame is of JAX's own code, not of that which `as_jax` puts into its place.

    Left out is what makes arrays, as `jax.numpy.asarray` does: it takes NumPy's protocols, too.
    """
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith("jax.") and not name.endswith(".array_constructors")
