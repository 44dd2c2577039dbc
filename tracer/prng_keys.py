"""Keys of random numbers: how they are made, from seeds, from other keys, from the two words that each of them is.

A key is a value, not a generator: the same key gives the same numbers every time. So a key is used once, and `split`
or `fold_in` make the next ones. It is an element of an array of dtype `key<fry>`, or bare words, as `PRNGKey` makes it.
Key number i of the keys that a key is split into is what it encrypts i to, hence `split(key, n)[i]` is
`fold_in(key, i)`. The bits are those of jax.random ("partitionable" threefry).
Left out: generators other than threefry2x32.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.config import config
from tapeless.tracer.core import compound
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.primitives.bits import shift_right_logical
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import ndim
from tapeless.tracer.primitives.random import random_unwrap, random_wrap, threefry2x32
from tapeless.tracer.primitives.shape import (
    concatenate,
    expand_dims,
    index_in_dim,
    iota,
    reshape,
    static_shape,
)
from tapeless.tracer.types import aval_of, by_protocol, holds_keys, is_arraylike

_IMPL = "threefry2x32"
_WORD = np.dtype("uint32")
_ZERO = np.zeros((), _WORD)


# ---- making keys ---------------------------------------------------------------------------------------------


def key(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """A key from a seed: an array without axes, of dtype `key<fry>`.

    Args:
      seed: an integer. Python's counts modulo 2**32, or 2**64 where the default width is 64 bits, as in JAX; one with
        a dtype counts in full, where one that fits 32 bits is a number of 32 bits unless the default width is 64.
      impl: the generator: threefry2x32, or None for the same.
    Raises: TypeError if the seed is not one integer, OverflowError if it has more than 64 bits.
    """
    return random_wrap(_seeded("key", seed, impl))


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """Like `key`, as the bare words: uint32[2], the older form of a key; a key with `config.enable_custom_prng`."""
    if config.enable_custom_prng:
        return key(seed, impl=impl)
    return _seeded("PRNGKey", seed, impl)


def key_data(keys: ArrayLike) -> Array:
    """The words of keys, uint32[..., 2], in the same memory. Raises: TypeError if there are no keys."""
    return _words("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Keys from their words, uint32[..., 2].

    Args:
      impl: name of the generator that they are for. dtype: or the dtype of the keys.
    Raises: TypeError if it is given other words, keys included, and for a dtype of no keys; ValueError for both an
      `impl` and a dtype.
    """
    if dtype is not None and impl is not None:
        raise ValueError(f"wrap_key_data: give impl or dtype, not both: {impl!r}, {dtype}.")
    if dtype not in (None, KEY):
        raise TypeError(f"wrap_key_data: dtype must be {KEY}, the dtype of keys, not {dtype!r}.")
    _check_impl("wrap_key_data", impl)
    return random_wrap(tnp.asarray(_checked("wrap_key_data", key_bits_array)))


def key_impl(keys: ArrayLike) -> str:
    """The name of the generator that keys are for. Raises: TypeError if there are no keys."""
    _words("key_impl", keys)
    return _IMPL


def key_dtype(impl: str | None = None) -> Any:
    """The dtype of keys for a generator. Raises: ValueError if there is no such generator."""
    _check_impl("key_dtype", impl)
    return KEY


def clone(key: Array) -> Array:
    """The same key: says that a second use of it is meant. Raises: TypeError if it is none."""
    _words("clone", key)
    return key


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys from one.

    Args:
      key: one key, as `key` or as `PRNGKey` makes it.
      num: how many, or the shape of the array of keys.
    Returns: an array of keys in the form of `key`: key<fry>[num], or uint32[num, 2].
    Raises: TypeError if `key` is not one key.
    """
    return _in_form_of(key, _split(words_of("split", key), shape=shape_of_result("split", num)))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """A new key from a key and an integer: `fold_in(key, step)` in a loop saves carrying keys along.

    Args:
      key: one key.
      data: an integer from 0 to 2**32 - 1; of an array of integers only the low 32 bits count.
    Returns: one key in the form of `key`.
    Raises: TypeError if `key` is not one key or `data` not one integer, OverflowError if `data` does not fit.
    """
    words, data = words_of("fold_in", key), by_protocol(data)
    _check_integer("fold_in", "data", data)
    if isinstance(data, int):
        dtypes.check_fits(data, _WORD)
        data = np.array(data, _WORD)
    return _in_form_of(key, _fold_in(words, data))


# ---- words ---------------------------------------------------------------------------------------------------


def words_of(name: str, key: ArrayLike) -> Any:
    """The words of one key, uint32[2]. Raises: TypeError in the name of `name` if it is anything else."""
    words = _words(name, key)
    if config.legacy_prng_key != "allow" and not _holds_keys(key):
        _object_to_words(name, config.legacy_prng_key)
    shape = words.shape[:-1]
    if shape:
        raise TypeError(f"{name} takes one key, not {shape} of them: index the array, or vmap {name} over it.")
    return words


def _object_to_words(name: str, how: str) -> None:
    """Warn of bare words given as a key, or raise ValueError: as `config.legacy_prng_key` says."""
    message = (
        f"{name}: the key is bare words, which config.legacy_prng_key objects to.\n  Make it with random.key(seed)."
    )
    if how == "error":
        raise ValueError(message)
    warnings.warn(message, stacklevel=4)


def encrypted(words: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Encrypt the row-major index of each element of `shape` with a key, [2]: two words, [*shape]."""
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


def _in_form_of(key: Any, words: Array) -> Array:
    return random_wrap(words) if _holds_keys(key) else words


def _holds_keys(x: Any) -> bool:
    return isinstance(x, Array) and holds_keys(x.aval)


def _words(name: str, keys: Any) -> Any:
    """The words of keys, in either form. Raises: TypeError in the name of `name` if these are no keys."""
    return random_unwrap(keys) if _holds_keys(keys) else _checked(name, keys)


def _checked(name: str, words: Any) -> Any:
    """The words of keys, if these are of the right type."""
    if not isinstance(words, (Array, np.ndarray)):
        raise TypeError(f"{name}: {words!r} is not a key. Make one with random.key(seed).")
    aval = aval_of(words)
    if aval.dtype != _WORD or aval.shape[-1:] != (2,):
        raise TypeError(f"{name}: a key's words are uint32[2], not {aval}. Make a key with random.key(seed).")
    return words


def _check_integer(name: str, what: str, x: Any) -> None:
    if not is_arraylike(x):
        raise TypeError(f"{name}: {what} must be an integer, not {x!r}.")
    aval = aval_of(x)
    if not dtypes.is_integer(aval.dtype):
        shown = aval if holds_keys(aval) else f"{x!r} ({aval})"
        raise TypeError(f"{name}: {what} must be an integer, not {shown}.")
    if aval.shape:
        raise TypeError(f"{name}: {what} must be one integer, not {aval}: vmap {name} over an array of them.")


def _check_impl(name: str, impl: str | None) -> None:
    if impl not in (None, _IMPL):
        raise ValueError(f"{name}: the generator is {_IMPL}; there is no {impl!r}.")
