"""Generators of random bits: how the words of a key make bits, and the words of other keys.

The bits, and the keys, are those of jax.random ("partitionable" threefry). A threefry key is split
into keys by encrypting their numbers. `rbg` and `unsafe_rbg` take their bits from XLA's own generator, which is fast on
accelerators, but differs between platforms; `rbg` derives keys as threefry does, from each half of a key by itself,
`unsafe_rbg` from its bits, which nobody has proved to be independent. Left out: jax.random's philox2x32, philox4x32,
threefry4x32.
"""

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.primitives.bits import shift_right_logical
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import ndim
from tapeless.tracer.primitives.random import rng_bit_generator, threefry2x32
from tapeless.tracer.primitives.shape import (
    concatenate,
    expand_dims,
    index_in_dim,
    iota,
    reshape,
    slice_in_dim,
)

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
    return paired(*_encrypted(words, shape))


def _threefry_fold_in(words: Any, data: Any) -> Array:
    key0, key1 = (index_in_dim(words, i, keepdims=False) for i in range(2))
    return paired(*threefry2x32(key0, key1, _ZERO, data))


def _threefry_bits(words: Any, shape: Shape, dtype: Any) -> Array:
    high, low = _encrypted(words, shape)
    if dtypes.bits_of(dtype) < 64:
        return convert_element_type(high ^ low, dtype)
    return convert_element_type(high, dtype) << 32 | convert_element_type(low, dtype)


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
