"""Keys for generators other than threefry: the bits of jax.random on the CPU, and the ways that keys go."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, random
from tests.messages import raises

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")
OTHERS = IMPLS[1:]


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


def of_jax(keys: Any) -> Any:
    """Elements of an array of JAX, keys as their words."""
    jax = pytest.importorskip("jax")
    is_key = jax.dtypes.issubdtype(keys.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(keys) if is_key else keys)


MADE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "key": lambda r, np_, key: key,
    "split": lambda r, np_, key: r.split(key, 3),
    "split into a shape": lambda r, np_, key: r.split(key, (2, 3)),
    "split twice": lambda r, np_, key: r.split(r.split(key)[1], 2),
    "split into none": lambda r, np_, key: r.split(key, 0),
    "fold_in": lambda r, np_, key: r.fold_in(key, 2**32 - 1),
    "8 bits": lambda r, np_, key: r.bits(key, (7,), np_.uint8),
    "16 bits": lambda r, np_, key: r.bits(key, (7,), np_.uint16),
    "32 bits": lambda r, np_, key: r.bits(key, (3, 5), np_.uint32),
    "no bits": lambda r, np_, key: r.bits(key, (0, 5), np_.uint32),
    "uniform": lambda r, np_, key: r.uniform(key, (5,)),
    "half uniform": lambda r, np_, key: r.uniform(key, (5,), np_.bfloat16),
    "randint": lambda r, np_, key: r.randint(key, (9,), -5, 1000),
    "permutation": lambda r, np_, key: r.permutation(key, 20),
    "choice": lambda r, np_, key: r.choice(key, 20, (4,), replace=False),
    "bernoulli": lambda r, np_, key: r.bernoulli(key, 0.3, (9,)),
    "rademacher": lambda r, np_, key: r.rademacher(key, (9,)),
}


def check_made(name: str, impl: str, partitionable: bool) -> None:
    jax = pytest.importorskip("jax")
    with jax.threefry_partitionable(partitionable):
        expected = of_jax(MADE[name](jax.random, jax.numpy, jax.random.key(42, impl=impl)))
    with tl.threefry_partitionable(partitionable):
        found = MADE[name](random, tnp, random.key(42, impl=impl))
    found = random.key_data(found) if tl.dtypes.issubdtype(found.dtype, tl.dtypes.prng_key) else found
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected, name)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("name", MADE)
def test_bits_are_those_of_jax(name: str, impl: str):
    check_made(name, impl, True)


@pytest.mark.parametrize("impl", ("threefry2x32", "rbg"))
def test_bits_of_threefry_counting_a_stream_as_a_whole_are_those_of_jax(impl: str):
    for name in MADE:
        check_made(name, impl, False)


def test_threefry_counting_a_stream_as_a_whole():
    """The numbers are those that JAX 0.10.2 prints; an odd number of words is drawn in another way than an even one."""
    key = random.key(7)
    jitted = tl.jit(random.bits, static_argnums=(1, 2))
    partitionable = jitted(key, (5,), np.uint32)
    with tl.threefry_partitionable(False):
        split = [[276534068, 861967409], [1905761346, 1641862660], [2900896126, 1402713516]]
        assert words(random.split(key, 3)) == split
        for bits in (random.bits, jitted):
            assert bits(key, (5,), np.uint8).tolist() == [191, 40, 160, 11, 191]
            assert bits(key, (9,), np.uint16).tolist()[:5] == [37684, 4219, 37937, 13152, 32622]
            assert bits(key, (5,), np.uint32).tolist() == [276534068, 861967409, 2793701230, 1641862660, 2900896126]
            assert bits(key, (2, 2), np.uint32).tolist() == [[966301609, 989289821], [1948237315, 1058547403]]
            assert bits(key, (3,), np.uint64).tolist() == [
                1187704779931702788,
                3702121834773752190,
                8185182656453653932,
            ]
        keys = random.split(key, 3)
        batch = tl.vmap(lambda key: random.bits(key, (3,)))(keys)
        assert batch.tolist() == [random.bits(key, (3,)).tolist() for key in keys]
        with pytest.raises(NotImplementedError, match=f"threefry2x32 counts below .* {2**32} words were asked for"):
            tl.eval_shape(lambda: random.bits(key, (2**32,)))
    assert jitted(key, (5,), np.uint32).tolist() == partitionable.tolist() == random.bits(key, (5,)).tolist()


@pytest.mark.parametrize("impl", OTHERS)
def test_64_bits_are_those_of_jax(impl: str):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        expected = np.asarray(jax.random.bits(jax.random.key(1, impl=impl), (5,), np.uint64))
    np.testing.assert_array_equal(np.asarray(random.bits(random.key(1, impl=impl), (5,), np.uint64)), expected)


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda r, key: r.normal(key, (5,)),
    "gumbel": lambda r, key: r.gumbel(key, (5,)),
    "gamma": lambda r, key: r.gamma(key, 0.7, (5,)),
    "beta": lambda r, key: r.beta(key, 0.7, 2.0, (5,)),
    "dirichlet": lambda r, key: r.dirichlet(key, np.ones(3, np.float32), (2,)),
    "t": lambda r, key: r.t(key, 3.0, (5,)),
    "binomial": lambda r, key: r.binomial(key, 20, 0.4, (5,)),
    "multivariate_normal": lambda r, key: r.multivariate_normal(key, np.zeros(2, np.float32), np.eye(2, dtype="f4")),
    "orthogonal": lambda r, key: r.orthogonal(key, 3),
}


@pytest.mark.parametrize("impl", OTHERS)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_jax(name: str, impl: str):
    """As far as elementary functions are: a few units in the last place."""
    jax = pytest.importorskip("jax")
    found, expected = (
        NUMBERS[name](random, random.key(3, impl=impl)),
        NUMBERS[name](jax.random, jax.random.key(3, impl=impl)),
    )
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("impl", OTHERS)
def test_samplers_that_jax_refuses_follow_their_distribution(impl: str):
    """Poisson numbers of rate 4: the mean of 4000 is within five deviations, 2 / sqrt(4000) each."""
    drawn = np.asarray(random.poisson(random.key(0, impl=impl), 4.0, (4000,)))
    assert abs(drawn.mean() - 4) < 5 * 2 / np.sqrt(4000)


@pytest.mark.parametrize("impl", OTHERS)
def test_vmap_draws_what_a_loop_draws(impl: str):
    """JAX draws the bits of all examples from the first key, and so others than without vmap."""
    keys = random.split(random.key(5, impl=impl), 4)

    def drawn(key: Any) -> Any:
        return random.bits(key, (3,)), random.key_data(random.split(key)), random.key_data(random.fold_in(key, 7))

    for f in (tl.vmap(drawn), tl.jit(tl.vmap(drawn))):
        for found, expected in zip(f(keys), zip(*map(drawn, keys)), strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.stack([np.asarray(x) for x in expected]))


@pytest.mark.parametrize("impl", OTHERS)
def test_keys_move_as_others_do(impl: str):
    keys = random.split(random.key(1, impl=impl), (2, 3))
    tag = {"rbg": "rbg", "unsafe_rbg": "urbg"}[impl]
    assert (str(keys.dtype), keys.dtype.itemsize, keys.nbytes) == (f"key<{tag}>", 16, 96)
    expected = np.asarray(random.key_data(keys))
    moved: list[tuple[Any, Any]] = [
        (keys.T, expected.transpose(1, 0, 2)),
        (keys[:, ::-1], expected[:, ::-1]),
        (keys.reshape(-1), expected.reshape(6, 4)),
        (tnp.concatenate([keys, keys]), np.concatenate([expected] * 2)),
        (tnp.where(np.array([True, False, True]), keys[0], keys[1]), expected[[0, 1, 0], np.arange(3)]),
        (keys.at[0, 1].set(keys[1, 2])[0], [expected[0, 0], expected[1, 2], expected[0, 2]]),
        (tl.jit(lambda k, i: k[i])(keys, 1), expected[1]),
        (tnp.zeros_like(keys), np.zeros_like(expected)),
        (lax.fori_loop(0, 1, lambda i, k: k[::-1], keys), expected[::-1]),
        (tnp.copy(keys), expected),
        (lax.pad(keys[0], keys[1, 0], [(1, 1, 0)]), [expected[1, 0], *expected[0], expected[1, 0]]),
    ]
    for found, wanted in moved:
        assert found.dtype == keys.dtype and words(found) == np.asarray(wanted).tolist()
    again = pickle.loads(pickle.dumps(keys))
    assert again.dtype is keys.dtype and words(again) == words(keys)
    assert [each.dtype for each in keys[0]] == [keys.dtype] * 3
    assert bool((keys == keys).all()) and not (keys != keys).any()


@pytest.mark.parametrize("impl", OTHERS)
def test_programs_are_read_back(impl: str):
    key = random.key(2, impl=impl)
    program = tl.make_jaxpr(lambda x: x * random.uniform(key))(2.0)
    assert f"random_wrap[impl={impl!r}]" in str(program) or f"key<{key.dtype.tag}>" in str(program)
    text = tl.program_text(program, constants=True)
    again = tl.parse_jaxpr(text)
    assert tl.program_text(again, constants=True) == text


def test_files_keep_the_generator(tmp_path: Any):
    tree = {impl: random.split(random.key(1, impl=impl), 2) for impl in IMPLS}
    tl.save(tmp_path / "keys.safetensors", tree)
    for loaded in (tl.load(tmp_path / "keys.safetensors"), tl.load(tmp_path / "keys.safetensors", like=tree)):
        for impl in IMPLS:
            assert loaded[impl].dtype == tree[impl].dtype and words(loaded[impl]) == words(tree[impl])


@pytest.mark.parametrize("impl", OTHERS)
def test_the_default_generator(impl: str):
    """Of keys, and of what bare words mean."""
    jax = pytest.importorskip("jax")
    with tl.default_prng_impl(impl), jax.default_prng_impl(impl):
        assert random.key_impl(random.key(0)) == impl == tl.config.jax_default_prng_impl
        found, expected = random.PRNGKey(9), jax.random.PRNGKey(9)
        assert found.shape == (4,) and random.key_impl(found) == impl
        for f in (
            lambda r, k: k,
            lambda r, k: r.split(k, 3),
            lambda r, k: r.fold_in(k, 3),
            lambda r, k: r.bits(k, (4,)),
        ):
            np.testing.assert_array_equal(np.asarray(f(random, found)), np.asarray(f(jax.random, expected)))
        assert words(random.wrap_key_data(found)) == words(found)
        with raises(
            TypeError,
            f"split: a key's words for {impl} are uint32[4], not uint32[2]. Make a key with random.key(seed).",
        ):
            random.split(np.zeros(2, np.uint32))
    assert random.key_impl(random.key(0)) == "threefry2x32"


def test_callbacks_are_given_keys_of_their_generator():
    seen: list[Any] = []
    key = random.key(6, impl="rbg")
    tl.jit(lambda k: tl.debug.callback(lambda x, k: seen.append((x.shape, k)), tnp.ones(2), k))(key)
    tl.effects_barrier()
    assert seen[0][0] == (2,) and seen[0][1].dtype == key.dtype and words(seen[0][1]) == words(key)


def test_wrapping_names_the_generator():
    data = np.arange(8, dtype=np.uint32).reshape(2, 4)
    for impl in OTHERS:
        keys = random.wrap_key_data(data, impl=impl)
        assert random.key_impl(keys) == impl and keys.dtype == random.key_dtype(impl) and words(keys) == data.tolist()
        assert random.wrap_key_data(data, dtype=keys.dtype).dtype == keys.dtype
    with raises(
        TypeError, "wrap_key_data: a key's words are uint32[2], not uint32[2,4]. Make a key with random.key(seed)."
    ):
        random.wrap_key_data(data)
    rbg, fry = random.key(0, impl="rbg"), random.key(0)
    with raises(
        TypeError, "key<rbg> has no common dtype with key<fry>: keys go with keys alone, of the same generator."
    ):
        tnp.result_type(rbg, fry)
