"""Random keys: make them from seeds, from other keys, and from their words.

A key is a value, not a generator: the same key gives the same numbers every time. So a key is used once, and `split`
or `fold_in` make the next ones. It is an element of an array of dtype `key<fry>`, or of the dtype of another generator;
or bare words, as `PRNGKey` makes it, for the generator `config.default_prng_impl`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import dtypes, source
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import compound
from tapeless.tracer.extended_dtypes import KEY, KEYS
from tapeless.tracer.primitives.bits import shift_right_logical
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import ndim
from tapeless.tracer.primitives.random import random_unwrap, random_wrap, rng_bit_generator, threefry2x32
from tapeless.tracer.primitives.shape import (
    concatenate,
    expand_dims,
    index_in_dim,
    iota,
    reshape,
    slice_in_dim,
    static_shape,
)
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import aval_of, by_protocol, holds_keys, is_arraylike

# ---- making keys ---------------------------------------------------------------------------------------------


def key(seed: int | ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """Make a key from a seed: an array without axes, of dtype `key<fry>`, or the dtype of another generator.

    Args:
      seed: an integer. Python's counts modulo 2**32, or 2**64 where the default width is 64 bits, as in JAX; one with
        a dtype counts in full, where one that fits 32 bits is a number of 32 bits unless the default width is 64.
      impl, dtype: one of them names the generator, threefry2x32, rbg or unsafe_rbg, or is the dtype of its keys;
        `config.default_prng_impl` if both are None.
    Raises: TypeError if the seed is not one integer, or a dtype is not of keys; OverflowError if the seed has more than
      64 bits; ValueError if there is no such generator, or for both an `impl` and a `dtype`.

    >>> key(0, dtype="rbg").dtype == key(0, impl=key_dtype("rbg")).dtype
    True
    """
    impl = _generator("key", impl, dtype)
    return random_wrap(_seeded("key", seed, impl), impl)


def PRNGKey(seed: int | ArrayLike, *, impl: Any = None) -> Array:
    """Make a key as bare words, uint32[n], the older form of a key; as `key` if `config.enable_custom_prng`.

    Args, Raises: as for `key`.
    """
    impl = _known_impl("PRNGKey", impl)
    words = _seeded("PRNGKey", seed, impl)
    return random_wrap(words, impl) if config.enable_custom_prng else words


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys, uint32[..., n], in the same memory. Raises: TypeError if there are no keys."""
    return _words("key_data", keys)


def wrap_key_data(key_bits_array: ArrayLike, *, impl: Any = None, dtype: Any = None) -> Array:
    """Make keys from their words, uint32[..., n].

    Args:
      impl, dtype: one of them names the generator that they are for, or is the dtype of its keys;
        `config.default_prng_impl` if both are None.
    Raises: TypeError if it is given other words, keys included, and for a dtype of no keys; ValueError if there is no
      such generator, or for both an `impl` and a `dtype`.
    """
    impl = _generator("wrap_key_data", impl, dtype)
    return random_wrap(tnp.asarray(_checked("wrap_key_data", key_bits_array, impl)), impl)


def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator of keys. Raises: TypeError if there are no keys."""
    return _typed("key_impl", keys).dtype.impl


def key_dtype(impl: Any = None) -> Any:
    """Return the dtype of keys for a generator, given by name or by that dtype.

    Raises: ValueError if there is no such generator; TypeError for a dtype of no keys.
    """
    return KEYS[_known_impl("key_dtype", impl)]


def clone(key: Array) -> Array:
    """Return the same keys, for an intended second use of them. Raises: TypeError if there are no keys."""
    words = _words("clone", key)
    return random_wrap(words, key_impl(key)) if _holds_keys(key) else key


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Split a key into new keys.

    Args:
      key: one key, as `key` or as `PRNGKey` makes it.
      num: how many, or the shape of the array of keys.
    Returns: an array of keys in the form of `key`: key<fry>[num], or uint32[num, 2].
    Raises: TypeError if `key` is not one key.
    """
    return _in_form_of(key, _split(one_key("split", key), shape=shape_of_result("split", num)))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """Make a new key from a key and an integer: `fold_in(key, step)` in a loop needs no key in the carry.

    Args:
      key: one key.
      data: an integer from 0 to 2**32 - 1; of an array of integers only the low 32 bits count.
    Returns: one key in the form of `key`.
    Raises: TypeError if `key` is not one key or `data` not one integer, OverflowError if `data` does not fit.
    """
    one, data = one_key("fold_in", key), by_protocol(data)
    _check_integer("fold_in", "data", data)
    if isinstance(data, int):
        dtypes.check_fits(data, WORD)
        data = np.array(data, WORD)
    return _in_form_of(key, _fold_in(one, data))


# ---- keys in samplers ----------------------------------------------------------------------------------------


def one_key(name: str, key: ArrayLike) -> Array:
    """Convert an argument to one key, of a dtype of keys. Raises: TypeError in the name of `name` for anything else."""
    found = _typed(name, key)
    if config.legacy_prng_key != "allow" and found is not key:
        _object_to_words(name, config.legacy_prng_key)
    if found.shape:
        raise TypeError(f"{name} takes one key, not {found.shape} of them: index the array, or vmap {name} over it.")
    return found


def children(key: Any, shape: tuple[int, ...]) -> Array:
    """Split a key into keys, [*shape]."""
    impl = key.dtype.impl
    return random_wrap(GENERATORS[impl].split(random_unwrap(key, spends=True), shape), impl)


def random_bits(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draw random bits from a key, as unsigned integers of `dtype`, [*shape]."""
    return GENERATORS[key.dtype.impl].bits(random_unwrap(key, spends=True), shape, dtype)


def _object_to_words(name: str, how: str) -> None:
    """Warn of bare words given as a key, or raise ValueError if `how`, of `config.legacy_prng_key`, is "error"."""
    message = (
        f"{name}: the key is bare words, which config.legacy_prng_key objects to.\n  Make it with random.key(seed)."
    )
    if how == "error":
        raise ValueError(message)
    source.warn(message)


def shape_of_result(name: str, shape: Any) -> tuple[int, ...]:
    """Convert a shape to a tuple; an integer stands for one axis.

    Raises: TypeError if it does not consist of known integers, ValueError if one is negative.
    """
    one = isinstance(shape, int) or getattr(shape, "ndim", 1) == 0
    return static_shape((shape,) if one else shape, name)


@compound
def _split(key: Any, *, shape: tuple[int, ...]) -> Array:
    return children(key, shape)


@compound
def _fold_in(key: Any, data: Any) -> Array:
    impl = key.dtype.impl
    return random_wrap(GENERATORS[impl].fold_in(random_unwrap(key), convert_element_type(data, WORD)), impl)


# ---- words ---------------------------------------------------------------------------------------------------


def _seeded(name: str, seed: Any, impl: str) -> Array:
    """Make the words of a key from a seed, uint32[n]."""
    return GENERATORS[impl].seeded(_seed_words(name, seed))


def _seed_words(name: str, seed: Any) -> Array:
    """Convert a seed to two words, uint32[2]."""
    _check_integer(name, "the seed", seed)
    if isinstance(seed, Array):
        return _words_of_seed(seed, default_bits=config.default_bits)
    bits = config.default_bits
    if not hasattr(seed, "dtype"):
        dtypes.check_fits(seed, np.dtype("int64"))
    elif seed.dtype.itemsize < 8 or (bits == 32 and not -(2**31) <= seed < 2**32):
        bits = max(32, 8 * seed.dtype.itemsize)
    high, low = divmod(int(seed) % 2**bits, 2**32)
    return tnp.asarray(np.array([high, low], WORD))


@compound
def _words_of_seed(seed: Any, *, default_bits: int) -> Array:
    low, dtype = convert_element_type(seed, WORD), aval_of(seed).dtype
    if dtype.itemsize < 8:
        return paired(np.zeros((), WORD), low)
    high = convert_element_type(shift_right_logical(seed, 32), WORD)
    if default_bits == 32 and dtypes.is_signed(dtype):  # JAX has no 64 bits then: seeds that fit 32 give the same keys
        high = tnp.where((seed < 0) & (seed >= -(2**31)), np.zeros((), WORD), high)
    return paired(high, low)


def _in_form_of(key: Any, made: Array) -> Array:
    """Return keys in the form of `key`: as they are, or as bare words."""
    return made if _holds_keys(key) else random_unwrap(made)


def _holds_keys(x: Any) -> bool:
    return isinstance(x, Array) and holds_keys(x.aval)


def _words(name: str, keys: Any) -> Any:
    """Return the words of keys, in either form. Raises: TypeError in the name of `name` if these are no keys."""
    return random_unwrap(keys) if _holds_keys(keys) else _checked(name, keys, config.default_prng_impl)


def _typed(name: str, keys: Any) -> Any:
    """Convert keys, in either form, to an array of a dtype of keys. Raises: TypeError naming `name` for others."""
    return keys if _holds_keys(keys) else random_wrap(_words(name, keys), config.default_prng_impl)


def _checked(name: str, words: Any, impl: str) -> Any:
    """Check that `words` are those of keys for a generator, by their type; return them. Raises: TypeError."""
    if not isinstance(words, (Array, np.ndarray)):
        order = " The key comes before the shape." if isinstance(words, (tuple, list)) else ""
        raise TypeError(f"{name}: {words!r} is not a key. Make one with random.key(seed).{order}")
    aval = aval_of(words)
    n = KEYS[impl].words
    if aval.dtype != WORD or aval.shape[-1:] != (n,):
        of = "" if impl == "threefry2x32" else f" for {impl}"
        raise TypeError(f"{name}: a key's words{of} are uint32[{n}], not {aval}. Make a key with random.key(seed).")
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


def _generator(name: str, impl: Any, dtype: Any) -> str:
    """Return the name of the generator that `impl` or `dtype` gives. Raises: ValueError for both."""
    if dtype is not None and impl is not None:
        raise ValueError(f"{name}: give impl or dtype, not both: {impl!r}, {dtype}.")
    if isinstance(dtype, str) and dtype not in KEYS:
        raise TypeError(f"{name}: dtype must be {KEY}, or that of other keys, not {dtype!r}.")
    return _known_impl(name, impl if dtype is None else dtype)


def _known_impl(name: str, impl: Any) -> str:
    """Return the name of a generator, given by name or the dtype of its keys; the default one for None.

    Raises: ValueError if there is no such generator; TypeError for what is no name and no dtype of keys.
    """
    if impl is None:
        return config.default_prng_impl
    if dtypes.is_key(impl):
        return impl.impl
    if not isinstance(impl, str):
        raise TypeError(f"{name}: dtype must be {KEY}, or that of other keys, not {impl!r}.")
    if impl not in KEYS:
        raise ValueError(f"{name}: the generators are {', '.join(KEYS)}; there is no {impl!r}.")
    return impl


# ---- generators ----------------------------------------------------------------------------------------------
# Generators of random bits: how the words of a key make bits, and the words of other keys.
#
# The bits, and the keys, are those of jax.random ("partitionable" threefry). A threefry key is split into keys by
# encrypting their numbers. `rbg` and `unsafe_rbg` take their bits from XLA's own generator, which is fast on
# accelerators, but differs between platforms; `rbg` derives keys as threefry does, from each half of a key by itself,
# `unsafe_rbg` from its bits, which nobody has proved to be independent. Left out: jax.random's philox2x32,
# philox4x32, threefry4x32.


Shape = tuple[int, ...]

WORD: Final = np.dtype("uint32")
_ZERO = np.zeros((), WORD)


class BitGenerator(NamedTuple):
    """Functions of the words of one key, uint32[n].

    seeded: two words of a seed, [2], to the words of a key. split: makes the words of keys of a shape, [*shape, n].
    fold_in: words of a key and a number, uint32, to the words of another key. bits: makes unsigned integers of a shape
    and dtype.
    """

    seeded: Callable[[Array], Array]
    split: Callable[[Any, Shape], Array]
    fold_in: Callable[[Any, Any], Array]
    bits: Callable[[Any, Shape, Any], Array]


def paired(word0: Any, word1: Any) -> Array:
    """Stack two words [...] to [..., 2]."""
    axis = ndim(word0)
    return concatenate([expand_dims(word, (axis,)) for word in (word0, word1)], axis)


# ---- threefry2x32 --------------------------------------------------------------------------------------------


def _encrypted(words: Any, shape: Shape) -> tuple[Array, Array]:
    """Encrypt the row-major index of each element of `shape`, and return two words, [*shape]."""
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    return threefry2x32(key0, key1, *_indices(shape))


def _indices(shape: Shape) -> tuple[Any, Array]:
    """Return the high and the low word of the row-major index of each element."""
    size = math.prod(shape)
    if size <= 2**32:
        return _ZERO, reshape(iota(WORD, size), shape)
    index = reshape(iota(np.dtype("uint64"), size), shape)
    return convert_element_type(shift_right_logical(index, 32), WORD), convert_element_type(index, WORD)


def _threefry_split(words: Any, shape: Shape) -> Array:
    if not config.threefry_partitionable:
        return reshape(_stream(words, 2 * math.prod(shape)), (*shape, 2))
    return paired(*_encrypted(words, shape))


def _threefry_fold_in(words: Any, data: Any) -> Array:
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    return paired(*threefry2x32(key0, key1, _ZERO, data))


def _threefry_bits(words: Any, shape: Shape, dtype: Any) -> Array:
    if not config.threefry_partitionable:
        return reshape(_stream_bits(words, math.prod(shape), dtype), shape)
    high, low = _encrypted(words, shape)
    return convert_element_type(high ^ low, dtype) if dtypes.bits_of(dtype) < 64 else _joined(high, low, dtype)


def _joined(high: Array, low: Array, dtype: Any) -> Array:
    """Join words to integers of 64 bits."""
    return convert_element_type(high, dtype) << 32 | convert_element_type(low, dtype)


def _stream(words: Any, size: int) -> Array:
    """Encrypt the counts below `size`, each of their first half with one of the second; return words, [size].

    This is how threefry counts if it is not partitionable: a word depends on the size.
    Raises: NotImplementedError if the counts have more than 32 bits.
    """
    if size >= 2**32:
        raise NotImplementedError(
            f"threefry2x32 counts below 2**32 without config.threefry_partitionable; {size} words were asked for."
        )
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    half, odd = (size + 1) // 2, size % 2
    first, second = iota(WORD, half), iota(WORD, half - odd) + np.array(half, WORD)
    if odd:
        second = concatenate([second, np.zeros(1, WORD)], 0)
    return slice_in_dim(concatenate(threefry2x32(key0, key1, first, second), 0), 0, size)


def _stream_bits(words: Any, size: int, dtype: Any) -> Array:
    """Make integers of a stream, [size]: several of a word, or of one word in each half of the stream."""
    bits = dtypes.bits_of(dtype)
    stream = _stream(words, -(-bits * size // 32))
    if bits == 64:
        return _joined(slice_in_dim(stream, 0, size), slice_in_dim(stream, size, None), dtype)
    if bits < 32:
        parts = np.arange(0, 32, bits, dtype=WORD)
        stream = reshape(expand_dims(stream, (1,)) >> parts, (stream.size * parts.size,))
    return slice_in_dim(convert_element_type(stream, dtype), 0, size)


# ---- XLA's generator -----------------------------------------------------------------------------------------


def _doubled(words: Array) -> Array:
    return concatenate([words, words], 0)


def _by_halves(derive: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """Derive keys as threefry does, from each half of the words by itself."""

    def derived(words: Any, by: Any) -> Array:
        halves = [derive(slice_in_dim(words, i, i + 2), by) for i in (0, 2)]
        return concatenate(halves, halves[0].ndim - 1)

    return derived


def _xla_bits(words: Any, shape: Shape, dtype: Any) -> Array:
    return rng_bit_generator(words, shape, dtype)[1]


_APART = 10  # one in ten rows of bits is a key: the others are thrown away, to mix the words better


def _bits_split(words: Any, shape: Shape) -> Array:
    rows = _xla_bits(words, (_APART * math.prod(shape), 4), WORD)
    return reshape(slice_in_dim(rows, 0, None, _APART), (*shape, 4))


def _bits_fold_in(words: Any, data: Any) -> Array:
    rows = _xla_bits(_doubled(paired(_ZERO, data)), (_APART, 4), WORD)
    return words ^ index_in_dim(rows, -1, keepdims=False)


GENERATORS: Final[dict[str, BitGenerator]] = {
    "threefry2x32": BitGenerator(lambda words: words, _threefry_split, _threefry_fold_in, _threefry_bits),
    "rbg": BitGenerator(_doubled, _by_halves(_threefry_split), _by_halves(_threefry_fold_in), _xla_bits),
    "unsafe_rbg": BitGenerator(_doubled, _bits_split, _bits_fold_in, _xla_bits),
}
