"""Keys of random numbers: two words of 32 bits, and how other keys are made from them.

A key is a value, not a generator: the same key gives the same numbers every time. So a key is used once, and `split`
or `fold_in` make the next ones. Key number i of the keys that a key is split into is what it encrypts i to, hence
`split(key, n)[i]` is `fold_in(key, i)`. The bits are those of jax.random ("partitionable" threefry).
Left out: generators other than threefry2x32.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.config import config
from tapeless.tracer.core import compound
from tapeless.tracer.primitives.bits import shift_right_logical
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import ndim
from tapeless.tracer.primitives.random import threefry2x32
from tapeless.tracer.primitives.shape import (
    concatenate,
    expand_dims,
    index_in_dim,
    iota,
    reshape,
    static_shape,
)
from tapeless.tracer.types import aval_of, is_arraylike

AnyKey = TypeVar("AnyKey")
_WORD = np.dtype("uint32")
_ZERO = np.zeros((), _WORD)


class Key:
    """One key, or an array of keys, with `shape` () or that of the array.

    Indexed, iterated and compared like an array; a pytree of one leaf, the words [*shape, 2], uint32.
    """

    __slots__ = ("words",)
    __hash__ = None  # type: ignore[assignment]  # as arrays, which are compared elementwise

    def __init__(self, words: ArrayLike) -> None:
        self.words = words

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; () for one key."""
        return self.words.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of keys."""
        return math.prod(self.shape)

    def reshape(self, *shape: Any) -> "Key":
        """The same keys in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return Key(self.words.reshape((*sizes, 2)))

    def __getitem__(self, index: Any) -> "Key":
        indices = index if isinstance(index, tuple) else (index,)
        rest = () if any(i is Ellipsis for i in indices) else (...,)
        return Key(self.words[(*indices, *rest, slice(None))])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of one key: only an array of keys, as split makes it, has a length.")
        return self.shape[0]

    def __iter__(self) -> Iterator["Key"]:
        if not self.shape:
            raise TypeError("iteration over one key: only an array of keys, as split makes it, has items.")
        return map(Key, self.words)

    def __eq__(self, other: object) -> Any:
        return tnp.all(tnp.equal(self.words, other.words), axis=-1) if isinstance(other, Key) else NotImplemented

    def __repr__(self) -> str:
        return f"Key({self.words})"


pytree.register_pytree_with_keys(
    Key,
    lambda key: (((pytree.GetAttrKey("words"), key.words),), None),
    lambda _, words: Key(*words),
    lambda key: ((key.words,), None),
)


# ---- making keys ---------------------------------------------------------------------------------------------


def key(seed: int | ArrayLike, *, impl: str | None = None) -> Key:
    """A key from a seed.

    Args:
      seed: an integer. Python's counts modulo 2**32, or 2**64 where the default width is 64 bits, as in JAX; one with
        a dtype counts in full, where one that fits 32 bits is a number of 32 bits unless the default width is 64.
      impl: the generator: threefry2x32, or None for the same.
    Raises: TypeError if the seed is not one integer, OverflowError if it has more than 64 bits.
    """
    return Key(_seeded("key", seed, impl))


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """Like `key`, as the bare words: uint32[2], the older form of a key."""
    return _seeded("PRNGKey", seed, impl)


def key_data(keys: Key | ArrayLike) -> Array:
    """The words of keys, [*shape, 2], uint32."""
    return keys.words if isinstance(keys, Key) else _checked("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None) -> Key:
    """Keys from their words, [..., 2]. Raises: TypeError if these are not uint32[..., 2]."""
    _check_impl("wrap_key_data", impl)
    return Key(tnp.asarray(_checked("wrap_key_data", key_bits_array)))


def clone(key: AnyKey) -> AnyKey:
    """The same key: says that a second use of it is meant."""
    return key


def split(key: Key | ArrayLike, num: int | Sequence[int] = 2) -> Any:
    """New keys from one.

    Args:
      key: one key, as `key` or as `PRNGKey` makes it.
      num: how many, or the shape of the array of keys.
    Returns: an array of keys in the form of `key`: Key of shape [num], or uint32[num, 2].
    Raises: TypeError if `key` is not one key.
    """
    return _in_form_of(key, _split(words_of("split", key), shape=shape_of_result("split", num)))


def fold_in(key: Key | ArrayLike, data: int | ArrayLike) -> Any:
    """A new key from a key and an integer: `fold_in(key, step)` in a loop saves carrying keys along.

    Args:
      key: one key.
      data: an integer from 0 to 2**32 - 1; of an array of integers only the low 32 bits count.
    Returns: one key in the form of `key`.
    Raises: TypeError if `key` is not one key or `data` not one integer, OverflowError if `data` does not fit.
    """
    words = words_of("fold_in", key)
    _check_integer("fold_in", "data", data)
    if isinstance(data, int):
        dtypes.check_fits(data, _WORD)
        data = np.array(data, _WORD)
    return _in_form_of(key, _fold_in(words, data))


# ---- words ---------------------------------------------------------------------------------------------------


def words_of(name: str, key: Key | ArrayLike) -> Any:
    """The words of one key, uint32[2]. Raises: TypeError in the name of `name` if it is anything else."""
    words = _checked(name, key.words if isinstance(key, Key) else key)
    shape = words.shape[:-1]
    if shape:
        raise TypeError(f"{name} takes one key, not {shape} of them: index the array, or vmap {name} over it.")
    return words


def encrypted(words: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """What a key, [2], encrypts the row-major index of each element of `shape` to: two words, [*shape]."""
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    return threefry2x32(key0, key1, *_indices(shape))


def children(words: Any, shape: tuple[int, ...]) -> Array:
    """The words of the keys, [*shape, 2], that a key is split into."""
    return _paired(*encrypted(words, shape))


def shape_of_result(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple; an integer stands for one axis.

    Raises: TypeError if it does not consist of known integers, ValueError if one is negative.
    """
    return static_shape((shape,) if isinstance(shape, (int, np.integer)) else shape, name)


def _indices(shape: tuple[int, ...]) -> tuple[Any, Array]:
    """High and low word of the row-major index of each element."""
    size = math.prod(shape)
    if size <= 2**32:
        return _ZERO, reshape(iota(_WORD, size), shape)
    index = reshape(iota(np.dtype("uint64"), size), shape)
    return convert_element_type(shift_right_logical(index, 32), _WORD), convert_element_type(index, _WORD)


@compound
def _split(words: Any, *, shape: tuple[int, ...]) -> Array:
    return children(words, shape)


@compound
def _fold_in(words: Any, data: Any) -> Array:
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    return _paired(*threefry2x32(key0, key1, _ZERO, convert_element_type(data, _WORD)))


def _seeded(name: str, seed: Any, impl: str | None) -> Array:
    _check_impl(name, impl)
    _check_integer(name, "the seed", seed)
    if isinstance(seed, Array):
        return _words_of_seed(seed, default_bits=config.default_bits)
    bits = config.default_bits
    if not hasattr(seed, "dtype"):
        dtypes.check_fits(seed, np.dtype("int64"))
    elif seed.dtype.itemsize < 8 or (bits == 32 and not -(2**31) <= seed < 2**32):
        bits = max(32, 8 * seed.dtype.itemsize)
    high, low = divmod(int(seed) % 2**bits, 2**32)
    return tnp.asarray(np.array([high, low], _WORD))


@compound
def _words_of_seed(seed: Any, *, default_bits: int) -> Array:
    low, dtype = convert_element_type(seed, _WORD), aval_of(seed).dtype
    if dtype.itemsize < 8:
        return _paired(_ZERO, low)
    high = convert_element_type(shift_right_logical(seed, 32), _WORD)
    if default_bits == 32 and dtypes.is_signed(dtype):  # JAX has none of 64 bits then: what fits 32 is the same there
        high = tnp.where((seed < 0) & (seed >= -(2**31)), _ZERO, high)
    return _paired(high, low)


def _paired(word0: Any, word1: Any) -> Array:
    """Two words [...] as [..., 2]."""
    axis = ndim(word0)
    return concatenate([expand_dims(word, (axis,)) for word in (word0, word1)], axis)


def _in_form_of(key: Any, words: Array) -> Any:
    return Key(words) if isinstance(key, Key) else words


def _checked(name: str, words: Any) -> Any:
    """The words of keys, if these are of the right type."""
    if not isinstance(words, (Array, np.ndarray)):
        raise TypeError(f"{name}: {words!r} is not a key. Make one with random.key(seed).")
    aval = aval_of(words)
    if aval.dtype != _WORD or aval.shape[-1:] != (2,):
        raise TypeError(f"{name}: a key is uint32[2], not {aval}. Make one with random.key(seed).")
    return words


def _check_integer(name: str, what: str, x: Any) -> None:
    if isinstance(x, Key) or not is_arraylike(x):
        raise TypeError(f"{name}: {what} must be an integer, not {x!r}.")
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"{name}: {what} must be an integer, not {x!r} ({aval}).")
    if aval.shape:
        raise TypeError(f"{name}: {what} must be one integer, not {aval}: vmap {name} over an array of them.")


def _check_impl(name: str, impl: str | None) -> None:
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"{name}: the generator is threefry2x32; there is no {impl!r}.")
