"""Keys: where they come from, and what is refused. What they are as arrays is in tests/api/test_key_arrays.py."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import random


def words(key):
    return np.asarray(random.key_data(key)).tolist()


# ---- making keys


def test_seed_is_the_key():
    assert words(random.key(5)) == [0, 5]
    assert words(random.PRNGKey(5)) == [0, 5]
    assert words(random.key(np.int32(-1))) == [0, 2**32 - 1]
    assert words(random.key(np.int64(2**40 + 5))) == [2**8, 5]


def test_python_seed_counts_modulo_the_default_width():
    assert words(random.key(2**40 + 5)) == [0, 5]
    with tl.enable_x64():
        assert words(random.key(2**40 + 5)) == [2**8, 5]
        assert words(random.key(-1)) == [2**32 - 1, 2**32 - 1]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_seeds_of_every_dtype(dtype, bits):
    """The stream of -3 is that of JAX, in which a default width of 32 bits knows no other, however it is given."""
    with tl.enable_x64(bits == 64):
        for seed in (7, -3) if dtype.startswith("i") else (7,):
            array = np.array(seed, dtype)
            high = 2**32 - 1 if seed < 0 and dtype == "int64" and bits == 64 else 0
            for given in (array, array[()], tnp.asarray(array)):
                assert words(random.key(given)) == [high, seed % 2**32]
            assert words(tl.jit(random.key)(array)) == [high, seed % 2**32]


def test_wide_seeds_count_in_full():
    for seed in (2**40 + 5, -(2**40), 2**63 - 1, -(2**31) - 1):
        expected = [seed % 2**64 // 2**32, seed % 2**32]
        assert words(random.key(np.int64(seed))) == words(tl.jit(random.key)(np.array(seed))) == expected


def test_split_as_published():
    """The values that jax.random has given since its threefry is "partitionable"."""
    assert words(random.split(random.key(0))) == [[1797259609, 2579123966], [928981903, 3453687069]]


def test_split_is_fold_in_of_positions():
    key = random.key(3)
    assert words(random.split(key, 5)) == [words(random.fold_in(key, i)) for i in range(5)]
    assert words(random.split(key, (2, 3))) == words(random.split(key, 6).reshape(2, 3))


def test_split_into_none():
    assert random.split(random.key(0), 0).shape == (0,)


def test_children_are_distinct():
    key = random.key(0)
    made = [key, *random.split(key, 100), *(random.fold_in(key, 1000 + i) for i in range(5))]
    assert len({tuple(words(k)) for k in made}) == len(made)


def test_fold_in_takes_traced_data():
    fold = tl.jit(random.fold_in)
    assert words(fold(random.key(1), tnp.asarray(9))) == words(random.fold_in(random.key(1), 9))


def test_form_is_kept():
    assert str(random.split(random.key(0)).aval) == "key<fry>[2]"
    assert str(random.fold_in(random.key(0), 1).aval) == "key<fry>[]"
    assert random.split(random.PRNGKey(0), 3).shape == (3, 2)
    assert random.fold_in(random.PRNGKey(0), 1).dtype == np.uint32
    assert words(random.split(random.key(4))) == words(random.split(random.PRNGKey(4)))


def test_wrapping_words():
    key = random.key(8)
    assert words(random.wrap_key_data(random.key_data(key))) == words(key)
    assert random.wrap_key_data(np.zeros((4, 2), np.uint32), dtype=key.dtype).shape == (4,)
    with pytest.raises(TypeError, match="dtype must be key<fry>, or that of other keys, not 'uint32'"):
        random.wrap_key_data(random.key_data(key), dtype="uint32")
    with pytest.raises(ValueError, match="give impl or dtype, not both"):
        random.wrap_key_data(random.key_data(key), impl="threefry2x32", dtype=key.dtype)


def test_clone_is_the_same_key():
    key, old = random.key(8), random.PRNGKey(8)
    assert random.clone(old) is old
    assert words(random.clone(key)) == words(key)
    assert random.clone(key).unsafe_buffer_pointer() == key.unsafe_buffer_pointer()


def test_generator():
    assert random.key_impl(random.key(0)) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert words(random.key(3, impl=random.key_impl(random.key(0)))) == [0, 3]


def test_key_passes_through_transformations():
    @tl.jit
    def step(key, x):
        key, drawn = random.split(key)
        return key, x + random.normal(drawn, x.shape)

    key, x = random.key(0), np.zeros(3, np.float32)
    next_key, y = step(key, x)
    expected = random.split(key)
    assert words(next_key) == words(expected[0])
    assert np.array_equal(y, random.normal(expected[1], (3,)))


def test_gradient_with_a_key_as_another_argument():
    def loss(x, key):
        return (x * random.normal(key, x.shape)).sum()

    key = random.key(0)
    assert np.array_equal(tl.grad(loss)(np.ones(4, np.float32), key), random.normal(key, (4,)))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_generators_by_name_and_by_the_dtype_of_their_keys(impl):
    dtype, known = random.key_dtype(impl), random.key(3, impl=impl)
    for given in (impl, dtype):
        for found in (random.key(3, impl=given), random.key(3, dtype=given)):
            assert found.dtype == known.dtype == dtype and np.array_equal(
                random.key_data(found), random.key_data(known)
            )
        words = random.PRNGKey(3, impl=given)
        for found in (random.wrap_key_data(words, impl=given), random.wrap_key_data(words, dtype=given)):
            assert found.dtype == dtype == random.key_dtype(given) and np.array_equal(random.key_data(found), words)


# ---- errors

ONE, SEVERAL = (random.wrap_key_data(np.zeros(shape, np.uint32)) for shape in (2, (4, 2)))

REFUSED = [
    (lambda: random.key(1.0), TypeError, "key: the seed must be an integer, not 1.0 (float32[])."),
    (lambda: random.key(np.arange(2)), TypeError, "key: the seed must be one integer, not int64[2]: vmap key"),
    (lambda: random.key(ONE), TypeError, "key: the seed must be an integer, not key<fry>[]."),
    (lambda: random.PRNGKey("a"), TypeError, "PRNGKey: the seed must be an integer, not 'a'."),
    (lambda: random.key(2**64), OverflowError, "does not fit int64"),
    (
        lambda: random.key(0, impl="r"),
        ValueError,
        "key: the generators are threefry2x32, rbg, unsafe_rbg; there is no 'r'.",
    ),
    (
        lambda: random.key(0, dtype=np.float32),
        TypeError,
        "key: dtype must be key<fry>, or that of other keys, not <class",
    ),
    (lambda: random.key(0, impl="rbg", dtype="rbg"), ValueError, "key: give impl or dtype, not both: 'rbg', rbg."),
    (
        lambda: random.wrap_key_data(np.zeros(2, np.uint32), impl=random.key_dtype(), dtype="rbg"),
        ValueError,
        "wrap_key_data: give impl or dtype, not both: key<fry>, rbg.",
    ),
    (lambda: random.split(0), TypeError, "split: 0 is not a key. Make one with random.key(seed)."),
    (lambda: random.split(np.zeros(2)), TypeError, "split: a key's words are uint32[2], not float64[2]."),
    (lambda: random.split(np.zeros(3, np.uint32)), TypeError, "split: a key's words are uint32[2], not uint32[3]."),
    (lambda: random.split(SEVERAL), TypeError, "split takes one key, not (4,) of them: index the array, or vmap"),
    (lambda: random.split(ONE, 2.0), TypeError, "split: shape must be a sequence of integers, not 2.0."),
    (lambda: random.split(ONE, -1), ValueError, "split: shape (-1,) has a negative size."),
    (lambda: random.fold_in(ONE, 1.0), TypeError, "fold_in: data must be an integer, not 1.0"),
    (lambda: random.fold_in(ONE, -1), OverflowError, "-1 does not fit uint32"),
    (lambda: random.fold_in(ONE, np.arange(3)), TypeError, "fold_in: data must be one integer, not int64[3]"),
    (lambda: random.wrap_key_data(ONE), TypeError, "wrap_key_data: a key's words are uint32[2], not key<fry>[]."),
    (lambda: random.key_data(3), TypeError, "key_data: 3 is not a key."),
    (lambda: random.key_impl(np.zeros(2)), TypeError, "key_impl: a key's words are uint32[2], not float64[2]."),
    (lambda: random.clone("key"), TypeError, "clone: 'key' is not a key."),
    (
        lambda: random.wrap_key_data(np.zeros(2)),
        TypeError,
        "wrap_key_data: a key's words are uint32[2], not float64[2].",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_refused(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
