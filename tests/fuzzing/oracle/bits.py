"""Operations on bits, and random bits."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning, meanings, plain
from tests.fuzzing.oracle.values import Values, bits_of, keys_of, kind_of, words_of

# ---- logic and shifts ------------------------------------------------------------------------------------------

meanings["not"] = plain(np.invert)
meanings["and"] = plain(np.bitwise_and)
meanings["or"] = plain(np.bitwise_or)
meanings["xor"] = plain(np.bitwise_xor)


def as_bits(x: Values, dtype: Any) -> Values:
    """Integers by their bits: not negative, below 2^bits."""
    return x.astype(np.uint64) & np.uint64(2 ** bits_of(dtype) - 1)


@meaning("shift_left", "shift_right_logical")
def _shift(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """Nothing is left of bits moved by their number or more, or by a negative number."""
    dtype = eqn.outvars[0].aval.dtype
    count, word = as_bits(y, dtype), as_bits(x, dtype)
    inside = count < bits_of(dtype)
    safe = np.where(inside, count, np.uint64(0))
    moved = word << safe if eqn.primitive.name == "shift_left" else word >> safe
    return np.where(inside, moved, np.uint64(0))


@meaning("shift_right_arithmetic")
def _shift_arithmetic(run: Run, eqn: Any, x: Values, y: Values) -> Any:
    """The sign is moved in; that is the highest bit of unsigned integers, too."""
    dtype = eqn.outvars[0].aval.dtype
    bits = bits_of(dtype)
    sign = np.uint64(1 << (bits - 1))
    signed = ((as_bits(x, dtype) ^ sign) - sign).astype(np.int64)
    count = np.minimum(as_bits(y, dtype), np.uint64(bits - 1)).astype(np.int64)
    return signed >> count


@meaning("population_count")
def _population_count(run: Run, eqn: Any, x: Values) -> Any:
    return np.bitwise_count(as_bits(x, eqn.invars[0].aval.dtype)).astype(np.uint64)


@meaning("clz")
def _clz(run: Run, eqn: Any, x: Values) -> Any:
    """Bits above the highest that is set."""
    dtype = eqn.invars[0].aval.dtype
    word, used = as_bits(x, dtype), np.zeros(x.shape, np.int64)
    while np.any(word):
        used, word = used + (word != 0), word >> np.uint64(1)
    return bits_of(dtype) - used


# ---- representation --------------------------------------------------------------------------------------------


@meaning("bitcast_convert_type")
def _bitcast(run: Run, eqn: Any, x: Values) -> Any:
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if old == new:
        return x
    if is_stepped(x) and kind_of(old) != "c":
        raise NotHolomorphicError("bitcast_convert_type")
    return _from_words(_resized(_words(x, old), bits_of(old), bits_of(new)), new)


def _words(x: Values, dtype: Any) -> Values:
    """The bits of every element, as an integer."""
    if kind_of(dtype) in "iu":
        return as_bits(x, dtype)
    return x.astype(dtype).view(f"u{np.dtype(dtype).itemsize}").astype(np.uint64)


def _resized(words: Values, old: int, new: int) -> Values:
    """Words cut along a new last axis, or joined along the last, lowest bits first."""
    if old >= new:
        shifts = np.arange(0, old, new, dtype=np.uint64)
        cut = (words[..., None] >> shifts) & np.uint64(2**new - 1)
        return cut if old > new else cut[..., 0]
    shifts = np.arange(0, new, old, dtype=np.uint64)
    return np.bitwise_or.reduce(words << shifts, axis=-1)


def _from_words(words: Values, dtype: Any) -> Values:
    if kind_of(dtype) in "iu":
        return words
    return words.astype(f"u{np.dtype(dtype).itemsize}").view(dtype).astype(np.float64)


# ---- random bits -----------------------------------------------------------------------------------------------

# Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", table 2 and section 3.2.
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_WORD = np.uint64(2**32 - 1)


@meaning("threefry2x32")
def _threefry2x32(run: Run, eqn: Any, key0: Values, key1: Values, count0: Values, count1: Values) -> Any:
    shape = eqn.outvars[0].aval.shape
    return tuple(np.broadcast_to(words, shape) for words in _threefry(key0, key1, count0, count1))


def _threefry(key0: Values, key1: Values, count0: Values, count1: Values) -> tuple[Values, Values]:
    """Twenty rounds; the key is added before the first and after every fourth."""
    keys = np.broadcast_arrays(key0, key1, key0 ^ key1 ^ np.uint64(_PARITY))
    left, right = np.broadcast_arrays(count0, count1)
    left, right = (left + keys[0]) & _WORD, (right + keys[1]) & _WORD
    for r in range(20):
        n = np.uint64(_ROTATIONS[r % 8])
        left = (left + right) & _WORD
        right = ((right << n | right >> (np.uint64(32) - n)) & _WORD) ^ left
        if r % 4 == 3:
            k = r // 4 + 1
            left = (left + keys[k % 3]) & _WORD
            right = (right + keys[(k + 1) % 3] + np.uint64(k)) & _WORD
    return left, right


@meaning("rng_bit_generator")
def _rng_bit_generator(run: Run, eqn: Any, state: Values) -> Any:
    """Threefry of a counter: the first two words of the state are its key, the others the counter."""
    assert eqn.params["algorithm"] == 1, "of the generators that XLA has, only Threefry has a meaning here"
    kind = eqn.invars[0].aval.dtype
    key, counter = (int(x) for x in np.ascontiguousarray(state.astype(kind)).view(np.uint64))
    n = -(-eqn.params["shape"][0] // 2)
    counts = (counter + np.arange(n, dtype=np.uint64)).astype(np.uint64)
    halves = [np.uint64(key) & _WORD, np.uint64(key) >> np.uint64(32)]
    left, right = _threefry(*halves, counts & _WORD, counts >> np.uint64(32))
    after = np.array([key, (counter + n) % 2**64], np.uint64).view(kind)
    return after.astype(state.dtype), np.stack([left, right], 1).reshape(-1)[: eqn.params["shape"][0]]


@meaning("random_wrap")
def _random_wrap(run: Run, eqn: Any, words: Values) -> Any:
    return keys_of(words[..., 0], words[..., 1])


@meaning("random_unwrap")
def _random_unwrap(run: Run, eqn: Any, keys: Values) -> Any:
    return np.stack(words_of(keys), -1)
