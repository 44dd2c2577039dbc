"""rng_bit_generator: the bits that XLA gives, known from JAX 0.10.2; under vmap those of each state by itself."""

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax
from tests.messages import raises

STATE = np.array([5, 2**40 + 7], np.uint64)
KNOWN = {  # dtype, algorithm -> counter afterwards, bits
    ("uint32", 1): (3, [0x8F4F0D7F, 0x23617FD3, 0x0327709E, 0x30C34AE1, 0xA13FDDC9]),
    ("uint32", 2): (2, [0xE33269BE, 0xD5011DF9, 0x0768AE49, 0x8A78D3ED, 0x416AD47C]),
    ("uint64", 1): (5, [0x23617FD38F4F0D7F, 0x30C34AE10327709E, 0x4B38CEF8A13FDDC9]),
    ("uint64", 2): (3, [0xD5011DF9E33269BE, 0x8A78D3ED0768AE49, 0x2AD2A242416AD47C]),
    ("uint16", 2): (2, [0x69BE, 0x1DF9, 0xAE49, 0xD3ED, 0xD47C]),
    ("uint8", 1): (5, [0x7F, 0xD3, 0x9E, 0xE1, 0xC9]),
}


@pytest.mark.parametrize(("dtype", "algorithm"), KNOWN)
def test_known_bits(dtype, algorithm):
    _, bits = KNOWN[dtype, algorithm]
    _, found = lax.rng_bit_generator(STATE, (len(bits),), dtype, lax.RandomAlgorithm(algorithm))
    np.testing.assert_array_equal(found, np.array(bits, dtype))
    _, again = tl.jit(lambda s: lax.rng_bit_generator(s.view(np.uint32), (len(bits),), dtype, algorithm))(STATE)
    np.testing.assert_array_equal(again, np.array(bits, dtype))


def test_the_state_moves_on_and_the_default_is_philox():
    state, _ = lax.rng_bit_generator(STATE, (7,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    np.testing.assert_array_equal(state, STATE + np.array([0, 4], np.uint64))
    for shape in ((), (2, 3), (0,)):
        default, philox = (lax.rng_bit_generator(STATE, shape, algorithm=a)[1] for a in (0, 2))
        np.testing.assert_array_equal(default, philox)
        assert default.shape == shape


def test_vmap():
    states = np.arange(8, dtype=np.uint32).reshape(2, 4)
    found = tl.vmap(lambda s: lax.rng_bit_generator(s, (3,)))(states)
    for i, s in enumerate(states):
        for y, want in zip(found, lax.rng_bit_generator(s, (3,)), strict=True):
            np.testing.assert_array_equal(y[i], want)


def test_bad_states_and_dtypes():
    with raises(TypeError, "rng_bit_generator: the state must be uint32[4] or uint64[2], not uint32[2]."):
        lax.rng_bit_generator(np.zeros(2, np.uint32), (3,))
    with raises(TypeError, "rng_bit_generator: bits are of uint8, uint16, uint32, uint64, not of int32."):
        lax.rng_bit_generator(STATE, (3,), np.int32)
    with raises(ValueError, "3 is not a valid RandomAlgorithm"):
        lax.rng_bit_generator(STATE, (3,), algorithm=3)


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    state = np.arange(4, dtype=np.uint32)
    for algorithm in lax.RandomAlgorithm:
        for shape in ((3, 5), (8,), ()):
            theirs = jax.lax.rng_bit_generator(state, shape, algorithm=jax.lax.RandomAlgorithm(algorithm))
            for y, want in zip(lax.rng_bit_generator(state, shape, algorithm=algorithm), theirs, strict=True):
                np.testing.assert_array_equal(y, want)
