"""Counter-based random bits, the source of all random numbers, and the keys that determine them.

A generator without state: bits are a function of a key and a position, so any part of a stream can be computed
by itself, in any order and on any device. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

import enum
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import not_supported
from tapeless.tracer.extended_dtypes import KEYS
from tapeless.tracer.primitives.kinds import joint_type
from tapeless.tracer.primitives.shape import static_shape
from tapeless.tracer.types import ShapedArray, keys_of_words, physical


def threefry2x32(key0: ArrayLike, key1: ArrayLike, count0: ArrayLike, count1: ArrayLike) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: a pair of 32-bit words encrypted under a key of two words, elementwise.

    Args:
      key0, key1: words of the key, [...] or scalars; uint32.
      count0, count1: words of the position, [...] or scalars; uint32.
    Returns: two words of 32 random bits each, [...], uint32.
    Raises: TypeError if a dtype is not uint32, ValueError if shapes differ; all are named.
    Source: Salmon et al. 2011, section 3.2; test vectors of the library Random123.
    """
    word0, word1 = threefry2x32_p.bind(key0, key1, count0, count1)
    return word0, word1


def _threefry2x32_type(*words: ShapedArray) -> tuple[ShapedArray, ...]:
    out = joint_type("threefry2x32", words)
    if out.dtype != np.uint32:
        raise TypeError(f"threefry2x32: keys and positions must be uint32, not {' and '.join(map(str, words))}.")
    return out.strong(), out.strong()


threefry2x32_p: Final = Primitive("threefry2x32", _threefry2x32_type)


# ---- XLA's generators ----------------------------------------------------------------------------------------


class RandomAlgorithm(enum.IntEnum):
    """Generators of `rng_bit_generator`: the platform's own, Threefry-2x32, Philox-4x32."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


_BITS = tuple(np.dtype(f"uint{n}") for n in (8, 16, 32, 64))


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: None = None,
) -> tuple[Array, Array]:
    """Draw random bits from XLA's generators, and return the new state. Most programs want `tapeless.random`.

    Args:
      key: the state, a key and a counter: uint32[4] or uint64[2].
      dtype: uint8, uint16, uint32 or uint64.
      algorithm: RNG_DEFAULT is Philox on CPU; other platforms may have others.
    Returns: the next state, in the form of `key`, and bits of `shape` and `dtype`.
    Raises: TypeError if the state or the dtype is another, naming it; NotImplementedError for a sharding.
    Source: StableHLO spec, rng_bit_generator; Salmon et al. 2011.
    """
    if out_sharding is not None:
        raise not_supported("rng_bit_generator", "out_sharding", out_sharding)
    sizes, of = static_shape(shape, "rng_bit_generator"), dtypes.canonical(dtype)
    state, bits = rng_bit_generator_p.bind(key, shape=sizes, dtype=of, algorithm=RandomAlgorithm(algorithm))
    return state, bits


def _rng_bit_generator_type(
    key: ShapedArray, *, shape: tuple[int, ...], dtype: Any, algorithm: RandomAlgorithm
) -> tuple[ShapedArray, ...]:
    if (key.shape, key.dtype) not in (((4,), np.uint32), ((2,), np.uint64)):
        raise TypeError(f"rng_bit_generator: the state must be uint32[4] or uint64[2], not {key}.")
    if dtype not in _BITS:
        raise TypeError(f"rng_bit_generator: bits are of {', '.join(map(str, _BITS))}, not of {dtype}.")
    return key.strong(), ShapedArray(shape, dtype)


rng_bit_generator_p: Final = Primitive("rng_bit_generator", _rng_bit_generator_type)
GENERATORS: Final = frozenset((threefry2x32_p, rng_bit_generator_p))

# ---- keys ----------------------------------------------------------------------------------------------------


def random_wrap(words: ArrayLike, impl: str = "threefry2x32") -> Array:
    """Make keys for the generator `impl`, [...], from their words, uint32[..., n].

    Raises: TypeError naming its type if `words` is anything else.
    """
    return random_wrap_p.bind(words, impl=impl)[0]


def _random_wrap_type(words: ShapedArray, *, impl: str) -> tuple[ShapedArray, ...]:
    return (keys_of_words(words, KEYS[impl]),)


random_wrap_p: Final = Primitive("random_wrap", _random_wrap_type, takes_keys=True)


def random_unwrap(keys: ArrayLike, *, spends: bool = False) -> Array:
    """Return the words of keys, uint32[..., n].

    Args:
      spends: whether random numbers or other keys are made from the words, which a key allows once: see
        `tracer.keys.key_reuse`.
    Raises: TypeError naming its type if `keys` holds anything else.
    """
    return random_unwrap_p.bind(keys, spends=spends)[0]


def _random_unwrap_type(keys: ShapedArray, *, spends: bool) -> tuple[ShapedArray, ...]:
    words = physical(keys)
    if words is keys:
        raise TypeError(f"random_unwrap takes keys, not {keys}. Make one with random.key(seed).")
    return (words,)


random_unwrap_p: Final = Primitive("random_unwrap", _random_unwrap_type, takes_keys=True)
