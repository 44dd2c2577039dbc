"""Keys that are used twice: `debug_key_reuse`. What is an error in JAX, and what is none, is one, and none, here."""

import types
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, random
from tapeless.errors import KeyReuseError


@pytest.fixture(autouse=True)
def _watched() -> Generator[None]:
    with tl.debug_key_reuse(True):
        yield


def draw(key: Any) -> Any:
    return random.uniform(key)


def twice(key: Any) -> Any:
    return draw(key) + random.normal(key)


def split_and_draw(key: Any) -> Any:
    return random.split(key)[0], draw(key)


def scan_over_constant(key: Any) -> Any:
    return lax.scan(lambda c, _: (c + draw(key), None), 0.0, None, length=3)[0]


def scan_carry_stays(key: Any) -> Any:
    return lax.scan(lambda k, _: (k, draw(k)), key, None, length=3)[1]


def while_stays(key: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + draw(s[1]), s[1]), (0.0, key))[0]


def while_condition(key: Any) -> Any:
    return lax.while_loop(lambda s: draw(key) < s, lambda s: s / 2, 1.0)


def in_a_branch_and_after(key: Any) -> Any:
    return lax.cond(tnp.sin(1.0) > 0, lambda k: draw(k), lambda k: 1.0, key) + draw(key)


def of_an_array(key: Any) -> Any:
    keys = random.split(key, 3)
    return draw(keys[1]) + tl.vmap(draw)(keys).sum()


def moved(key: Any) -> Any:
    keys = random.split(key, 4).reshape(2, 2).T
    return draw(keys[0, 1]) + draw(keys[::-1][1, 1])


def copies(key: Any) -> Any:
    return tl.vmap(draw)(tnp.broadcast_to(key, (3,)))


def joined(key: Any) -> Any:
    return tl.vmap(draw)(tnp.stack([key, random.fold_in(key, 1), key]))


def in_a_call(key: Any) -> Any:
    return tl.jit(draw)(key) + tl.jit(draw)(key)


def in_a_custom_rule(key: Any) -> Any:
    @tl.custom_jvp
    def f(x: Any, key: Any) -> Any:
        return x * draw(key)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return f(1.0, key) + draw(key)


def in_a_checkpoint(key: Any) -> Any:
    return tl.checkpoint(lambda x: x * draw(key))(2.0) + draw(key)


def chosen_among_used(key: Any) -> Any:
    keys = random.split(key, 3)
    return tl.vmap(draw)(keys).sum() + draw(keys[lax.convert_element_type(tnp.sin(1.0), int)])


USED_TWICE: list[Callable[[Any], Any]] = [
    twice,
    split_and_draw,
    scan_over_constant,
    scan_carry_stays,
    while_stays,
    while_condition,
    in_a_branch_and_after,
    of_an_array,
    moved,
    copies,
    joined,
    in_a_call,
    in_a_custom_rule,
    in_a_checkpoint,
    chosen_among_used,
]


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
@pytest.mark.parametrize("compute", [lambda f: f, tl.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", USED_TWICE, ids=lambda f: f.__name__)
def test_used_twice(f: Callable[[Any], Any], compute: Any, impl: str):
    with pytest.raises(KeyReuseError, match="a random key is used twice"):
        compute(f)(random.key(0, impl=impl))


def one_of_each(key: Any) -> Any:
    a, b, c = random.split(key, 3)
    return draw(a), random.normal(b, (3,)), random.split(c)


def folded(key: Any) -> Any:
    return draw(random.fold_in(key, 1)) + draw(random.fold_in(key, 2)) + draw(key)


def cloned(key: Any) -> Any:
    return draw(key) + draw(random.clone(key))


def words_do_not_count(key: Any) -> Any:
    return random.key_data(key), random.key_data(key), key == key, draw(key)


def scan_that_splits(key: Any) -> Any:
    def step(key: Any, _: Any) -> Any:
        key, sub = random.split(key)
        return key, draw(sub)

    key, drawn = lax.scan(step, key, None, length=4)
    return drawn, draw(key)


def scan_over_keys(key: Any) -> Any:
    return lax.scan(lambda c, k: (c + draw(k), None), 0.0, random.split(key, 4))[0]


def scan_that_makes_keys(key: Any) -> Any:
    keys = lax.scan(lambda k, i: (random.split(k)[0], random.fold_in(k, i)), key, tnp.arange(3))[1]
    return tl.vmap(draw)(keys)


def loop_over_an_index(key: Any) -> Any:
    """JAX takes the array for one key, and refuses this."""
    keys = random.split(key, 3)
    return lax.fori_loop(0, 3, lambda i, x: x + draw(keys[i]), 0.0)


def loop_that_folds(key: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, x: x + draw(random.fold_in(key, i)), 0.0)


def in_both_branches(key: Any) -> Any:
    return lax.cond(tnp.sin(1.0) > 0, lambda k: draw(k), lambda k: random.normal(k), key)


def from_either_branch(key: Any) -> Any:
    a, b = random.split(key)
    return draw(lax.cond(tnp.sin(1.0) > 0, lambda: a, lambda: b))


def parts_of_an_array(key: Any) -> Any:
    keys = random.split(key, (2, 3))
    return draw(keys[0, 1]), tl.vmap(draw)(keys[1]), draw(keys[0, 0]), draw(keys[:, 2][0])


def mapped(key: Any) -> Any:
    return tl.vmap(lambda k: one_of_each(k)[0])(random.split(key, 4))


def gradients(key: Any) -> Any:
    def loss(x: Any, key: Any) -> Any:
        def step(x: Any, key: Any) -> Any:
            return tnp.sin(x * random.normal(key, x.shape)), None

        return lax.scan(tl.checkpoint(step), x, random.split(key, 3))[0].sum()

    a, b, c = random.split(key, 3)
    return tl.grad(loss)(tnp.ones(2), a), tl.jit(tl.grad(loss))(tnp.ones(2), b), tl.jacfwd(loss)(tnp.ones(2), c)


def rejection(key: Any) -> Any:
    a, b = random.split(key)
    return random.gamma(a, tnp.ones(3)), random.poisson(b, 3.0, (4,))


def samplers(key: Any) -> Any:
    keys = random.split(key, 6)
    return (
        random.permutation(keys[0], 5),
        random.choice(keys[1], 5, (2,), p=tnp.ones(5) / 5),
        random.categorical(keys[2], tnp.zeros(4)),
        random.multivariate_normal(keys[3], tnp.zeros(2), tnp.eye(2)),
        random.beta(keys[4], 1.0, 2.0),
        random.binomial(keys[5], 5, 0.5),
    )


USED_ONCE: list[Callable[[Any], Any]] = [
    draw,
    one_of_each,
    folded,
    cloned,
    words_do_not_count,
    scan_that_splits,
    scan_over_keys,
    scan_that_makes_keys,
    loop_over_an_index,
    loop_that_folds,
    in_both_branches,
    from_either_branch,
    parts_of_an_array,
    mapped,
    gradients,
    rejection,
    samplers,
]


def elements(tree: Any) -> list[Any]:
    is_key = lambda x: tl.dtypes.issubdtype(x.dtype, tl.dtypes.prng_key)  # noqa: E731
    return [np.asarray(random.key_data(x) if is_key(x) else x) for x in tl.tree.leaves(tree)]


@pytest.mark.parametrize("compute", [lambda f: f, tl.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", USED_ONCE, ids=lambda f: f.__name__)
def test_used_once(f: Callable[[Any], Any], compute: Any):
    """The numbers are those that are drawn without watching."""
    found = elements(compute(f)(random.key(0)))
    with tl.debug_key_reuse(False):
        expected = elements(compute(f)(random.key(0)))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_both_lines_are_named():
    key = random.key(0)
    random.normal(key)
    with pytest.raises(KeyReuseError) as caught:
        random.uniform(key)
    lines = str(caught.value).splitlines()
    assert lines[0] == "a random key is used twice, and the same numbers are drawn: at"
    assert "test_key_reuse.py" in lines[1] and lines[1].endswith("random.normal(key),")
    assert lines[2] == "  and at" and lines[3].endswith("random.uniform(key).")
    assert lines[4].startswith("  Use every key once: key, subkey = random.split(key).")


def test_lines_of_a_program_and_of_its_calls():
    """A program names its own lines, two calls name the lines that call."""

    def f(key: Any) -> Any:
        x = random.normal(key)
        return x + random.uniform(key)

    with pytest.raises(
        KeyReuseError, match=r"x = random.normal\(key\),\n  and at\n.*return x \+ random.uniform\(key\)"
    ):
        tl.jit(f).lower(random.key(0))
    key, g = random.key(0), tl.jit(draw)
    g(key)
    with pytest.raises(KeyReuseError, match=r"g\(key\),\n  and at\n.*again = g\(key\)"):
        again = g(key)
        del again
    with pytest.raises(KeyReuseError, match=r"g\(key\),\n  and at\n.*random.split\(key\)"):
        random.split(key)


def test_a_line_that_is_run_again():
    key = random.key(0)
    with pytest.raises(KeyReuseError, match="which is run again, or draws from one key several times"):
        for _ in range(2):
            random.normal(key)


def test_a_key_that_a_function_closes_over():
    key = random.key(0)
    f = tl.jit(lambda x: x * random.normal(key))
    f(1.0)
    with pytest.raises(KeyReuseError):
        f(2.0)
    keys = random.split(random.key(1))
    g = tl.jit(lambda x: x * random.normal(keys[0]))
    g(1.0)
    random.normal(keys[1])
    with pytest.raises(KeyReuseError):
        random.normal(keys[0])


def test_keys_of_an_array_one_by_one():
    keys = random.split(random.key(0), 3)
    for key in keys:
        random.normal(key)
    with pytest.raises(KeyReuseError):
        tl.vmap(draw)(keys)


def test_a_call_that_fails_uses_nothing():
    key = random.key(0)
    with pytest.raises(ValueError, match="twice"):
        tl.jit(lambda k: (draw(k), 1 / int("twice")))(key)
    random.normal(key)


def test_off_by_default_and_in_the_configuration():
    with tl.config.scope(debug_key_reuse=False):
        key = random.key(0)
        assert float(random.normal(key)) == float(random.normal(key))
    assert tl.config.jax_debug_key_reuse

    @tl.debug_key_reuse(False)
    def unwatched() -> Any:
        return twice(random.key(0)) + tl.jit(twice)(random.key(0))

    unwatched()


def test_bare_words_are_not_followed():
    key = random.PRNGKey(0)
    random.normal(key), random.normal(key)


def as_in_jax(f: Callable[[Any], Any], jax: Any) -> Callable[[Any], Any]:
    """A function of this file on the names of JAX."""
    names: dict[str, Any] = {"tl": jax, "tnp": jax.numpy, "lax": jax.lax, "random": jax.random}
    names["draw"] = jax.random.uniform
    return types.FunctionType(f.__code__, {**globals(), **names})


@pytest.mark.parametrize("f", [f for f in USED_TWICE if f not in (moved, copies)], ids=lambda f: f.__name__)
def test_jax_refuses_the_same(f: Callable[[Any], Any]):
    """But for copies by broadcasting, one key in JAX, and transposed arrays, whose keys are always used there."""
    jax = pytest.importorskip("jax")
    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(as_in_jax(f, jax))(jax.random.key(0))


@pytest.mark.parametrize("f", [one_of_each, folded, cloned, scan_that_splits, scan_over_keys, in_both_branches])
def test_jax_allows_the_same(f: Callable[[Any], Any]):
    jax = pytest.importorskip("jax")
    with jax.debug_key_reuse(True):
        jax.jit(as_in_jax(f, jax))(jax.random.key(0))
