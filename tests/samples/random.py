"""Samples of the random bits."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.random import (
    RandomAlgorithm,
    random_unwrap_p,
    random_wrap_p,
    rng_bit_generator_p,
    threefry2x32_p,
)
from tests.samples.sample import RECORD, Sample, keys

_FRY = {"impl": "threefry2x32"}
_KEY = tuple(np.array(word, np.uint32) for word in (0x13198A2E, 0x03707344))
_ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24]


def threefry2x32(key0: Any, key1: Any, count0: Any, count1: Any) -> tuple[Any, Any]:
    """Twenty rounds with Python's integers, as the paper's equations have them."""
    return np.vectorize(_threefry2x32, otypes=[np.uint32, np.uint32])(key0, key1, count0, count1)


def _threefry2x32(*words: Any) -> tuple[int, int]:
    key0, key1, x0, x1 = map(int, words)
    schedule = [key0, key1, 0x1BD11BDA ^ key0 ^ key1]
    for i in range(20):
        if i % 4 == 0:
            x0, x1 = x0 + schedule[i // 4 % 3], x1 + schedule[(i // 4 + 1) % 3] + i // 4
        x0 = (x0 + x1) % 2**32
        n = _ROTATIONS[i % 8]
        x1 %= 2**32
        x1 = (x1 << n | x1 >> (32 - n)) % 2**32 ^ x0
    return (x0 + schedule[2]) % 2**32, (x1 + schedule[0] + 5) % 2**32


def generator(state: Any, *, shape: tuple[int, ...], dtype: Any, algorithm: Any) -> tuple[Any, Any]:
    """Threefry of a counter, two words of 32 bits each; state and results as XLA has them."""
    key, counter = (int(x) for x in np.ascontiguousarray(state).view(np.uint64))
    (n,), halves = shape, [key % 2**32, key >> 32]
    blocks = [_threefry2x32(*halves, (counter + i) % 2**32, (counter + i) >> 32) for i in range(-(-n // 2))]
    after = np.array([key, (counter + len(blocks)) % 2**64], np.uint64).view(state.dtype)
    return after, np.array(blocks, np.uint32).reshape(-1)[:n].astype(dtype)


def words(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 2**32, shape, np.uint32)


ROWS = [
    Sample(
        threefry2x32_p,
        (*_KEY, words(3, 2), words(3, 2, seed=1)),
        threefry2x32,
        bad=(
            ((*_KEY, words(3), words(4)), {}, ValueError),
            ((*_KEY, np.arange(3), words(3)), {}, TypeError),
            ((np.ones(3, np.float32),) * 4, {}, TypeError),
        ),
    ),
    Sample(threefry2x32_p, (words(5), words(5, seed=1), _KEY[0], words(5, seed=2)), threefry2x32, label="several-keys"),
    Sample(threefry2x32_p, (*_KEY, words(0), words(0)), threefry2x32, label="empty"),
    *(
        Sample(
            rng_bit_generator_p,
            (state,),
            generator,
            {"shape": (n,), "dtype": np.dtype(np.uint32), "algorithm": RandomAlgorithm.RNG_THREE_FRY},
            bad=(((words(3),), {"shape": (2,), "dtype": np.dtype(np.uint32), "algorithm": 1}, TypeError),),
            label=label,
        )
        for label, state, n in (("32", words(4), 7), ("64", words(4).view(np.uint64), 4))
    ),
    Sample(
        random_wrap_p,
        (words(3, 2),),
        lambda words, impl: words.view(RECORD)[..., 0],
        _FRY,
        bad=(
            ((words(2, 3),), _FRY, TypeError),
            ((words(2, 2),), {"impl": "rbg"}, TypeError),
            ((words(2).astype(np.int32),), _FRY, TypeError),
            ((words(1)[0],), _FRY, TypeError),
            ((keys(2),), _FRY, TypeError),
        ),
    ),
    Sample(random_wrap_p, (words(0, 2),), lambda words, impl: words.view(RECORD)[..., 0], _FRY, label="empty"),
    Sample(
        random_unwrap_p,
        (keys(3),),
        lambda keys, spends: np.asarray(keys).view(np.uint32).reshape(-1, 2),
        {"spends": False},
        bad=(((words(3, 2),), {"spends": False}, TypeError),),
    ),
]
