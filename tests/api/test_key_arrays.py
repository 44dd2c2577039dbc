"""Keys as arrays, dtype `key<fry>`: they are indexed, joined and chosen, and pass through transformations and loops.

What is done to keys is compared with what NumPy does to records of their words; the words themselves are JAX's, which
tests/tracer/keys/test_prng_keys.py knows. Everything runs eagerly and compiled.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, random
from tests.messages import place, raises
from tests.samples.sample import RECORD, numpys

KEY = random.key(7)
KEYS = random.split(KEY, (3, 4))
ROW = KEYS[0]
MASK = np.array([True, False, True])


def words(keys: Any) -> Any:
    return np.asarray(random.key_data(keys)).tolist()


# ---- what they are


def test_one_leaf_with_the_attributes_of_an_array():
    (leaf,) = tl.tree.leaves({"keys": KEYS})
    assert leaf is KEYS
    assert isinstance(KEYS, tl.Array)
    assert (KEYS.shape, KEYS.ndim, KEYS.size, len(KEYS), KEYS.itemsize, KEYS.nbytes) == ((3, 4), 2, 12, 3, 8, 96)
    assert (str(KEYS.dtype), KEYS.dtype.name, KEYS.weak_type) == ("key<fry>", "key<fry>", False)


def test_dtype():
    dtype = KEY.dtype
    assert (
        dtype == ROW.dtype
        and dtype != np.dtype("uint32")
        and np.dtype("uint32") != dtype
        and len({dtype, ROW.dtype}) == 1
    )
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype
    for category in (tl.dtypes.prng_key, tl.dtypes.extended, np.generic):
        assert tnp.issubdtype(dtype, category)
    assert not any(tnp.issubdtype(dtype, kind) for kind in (np.number, np.integer, np.floating, np.inexact))
    assert not tnp.issubdtype(np.uint32, tl.dtypes.prng_key)
    assert tnp.issubdtype(tl.dtypes.prng_key, tl.dtypes.extended)
    assert tnp.result_type(KEY, KEYS) == dtype and not tnp.can_cast(dtype, np.uint32)


def test_printing_is_that_of_jax():
    jax = pytest.importorskip("jax")
    key = random.split(random.key(0))
    assert repr(key) == str(key) == f"{key}"
    assert repr(key) == repr(jax.random.split(jax.random.key(0)))
    assert repr(key).startswith("Array((2,), dtype=key<fry>) overlaying:\n[[")
    assert repr(random.key(3)) == "Array((), dtype=key<fry>) overlaying:\n[0 3]"


def test_programs_name_their_type():
    program = str(tl.make_jaxpr(lambda keys: (keys[1], random.key_data(keys)))(ROW))
    assert (
        "a:key<fry>[4]" in program
        and ":key<fry>[] = reshape" in program
        and ":u32[4,2] = random_unwrap[spends=False] a" in program
    )


def test_memory_is_shared_with_words():
    """Wrapping and unwrapping compute nothing; a deleted array says so."""
    row = random.split(random.key(0), tnp.asarray(3))
    data = random.key_data(row)
    assert row.unsafe_buffer_pointer() == data.unsafe_buffer_pointer()
    row.delete()
    assert repr(row) == "<deleted Array: key<fry>[3]>"
    with pytest.raises(RuntimeError, match="deleted"):
        random.key_data(row)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), tnp.copy, tl.device_put]
)
def test_copies(again: Callable[[Any], Any]):
    assert again(ROW).aval is ROW.aval and words(again(ROW)) == words(ROW)
    assert words(tl.device_get(ROW)) == words(ROW)


def test_iteration_gives_keys():
    assert [key.aval is KEY.aval for key in ROW] == [True] * 4
    first, *_ = ROW
    assert words(first) == words(ROW)[0]
    assert tl.jit(lambda keys: [random.key_data(key) for key in keys])(ROW)[2].tolist() == words(ROW)[2]
    for refused in (len, iter):
        with pytest.raises(TypeError):
            refused(KEY)


# ---- what moves elements moves keys

MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda np, x: x[1],
    "index from the end": lambda np, x: x[-1, -2],
    "slice": lambda np, x: x[1:, ::2],
    "reversed slice": lambda np, x: x[::-1, 3:0:-2],
    "new axis": lambda np, x: x[None, ..., None, 0],
    "positions": lambda np, x: x[[2, 0, 2]],
    "pairs of positions": lambda np, x: x[[2, 0], [1, -1]],
    "position behind a slice": lambda np, x: x[:, [3, 1]],
    "mask": lambda np, x: x[MASK],
    "reshape": lambda np, x: x.reshape(2, 6),
    "ravel": lambda np, x: x.ravel(),
    "transposed": lambda np, x: x.T,
    "moveaxis": lambda np, x: np.moveaxis(x[None], 0, -1),
    "squeeze": lambda np, x: np.squeeze(x[None]),
    "expand_dims": lambda np, x: np.expand_dims(x, 1),
    "broadcast_to": lambda np, x: np.broadcast_to(x[:, :1], (2, 3, 4)),
    "stack": lambda np, x: np.stack([x[0], x[1]], -1),
    "concatenate": lambda np, x: np.concatenate([x, x[:1]], 0),
    "split": lambda np, x: np.split(x, [1, 3], 1),
    "vstack": lambda np, x: np.vstack([x, x[0]]),
    "where": lambda np, x: np.where(MASK[:, None], x, x[:, ::-1]),
    "where with one key": lambda np, x: np.where(MASK[:, None], x[0, 0], x),
    "take": lambda np, x: np.take(x, np.array([1, 0]), 1),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.array([[1], [0], [3]]), 1),
    "tile": lambda np, x: np.tile(x, (2, 1)),
    "repeat": lambda np, x: np.repeat(x, 2, 1),
    "roll": lambda np, x: np.roll(x, 1, 1),
    "flip": lambda np, x: np.flip(x),
    "rot90": lambda np, x: np.rot90(x),
    "delete": lambda np, x: np.delete(x, 1, 0),
    "append": lambda np, x: np.append(x, x[:, :1], 1),
    "diagonal": lambda np, x: np.diagonal(x),
    "atleast_3d": lambda np, x: np.atleast_3d(x),
    "equal": lambda np, x: x == x[:1],
    "differing": lambda np, x: x != x[1, 1],
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str):
    """Eagerly and compiled, keys go where NumPy puts records."""
    move = MOVES[name]
    expected = move(np, numpys(KEYS))
    for compute in (move, tl.jit(move, static_argnums=0)):
        found = tl.tree.map(numpys, compute(tnp, KEYS))
        tl.tree.map(np.testing.assert_array_equal, found, list(expected) if isinstance(found, list) else expected)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "row": lambda x, y: (x.at[1].set(y[0]), (1,), y[0]),
    "part": lambda x, y: (x.at[:2, 1:3].set(y[:2, :2]), np.s_[:2, 1:3], y[:2, :2]),
    "one key": lambda x, y: (x.at[2, 3].set(y[0, 0]), (2, 3), y[0, 0]),
    "positions": lambda x, y: (x.at[np.array([2, 0])].set(y[:2]), ([2, 0],), y[:2]),
    "steps": lambda x, y: (x.at[:, ::2].set(y[:, :2]), np.s_[:, ::2], y[:, :2]),
    "mask": lambda x, y: (x.at[MASK].set(y[0, 0]), (MASK,), y[0, 0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str):
    other = random.split(random.key(8), (3, 4))
    _, place, new = WRITES[name](KEYS, other)
    expected = numpys(KEYS).copy()
    expected[place] = numpys(new)
    for compute in (lambda *xs: WRITES[name](*xs)[0], tl.jit(lambda *xs: WRITES[name](*xs)[0])):
        np.testing.assert_array_equal(numpys(compute(KEYS, other)), expected)


def test_traced_positions():
    i = tnp.asarray(2)
    for f in (lambda x, i: x[i], lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False), lambda x, i: x[i - 3]):
        assert words(f(KEYS, i)) == words(tl.jit(f)(KEYS, i)) == words(KEYS)[2]
    write = tl.jit(lambda x, i: x.at[i, i + 1].set(KEY))
    assert words(write(KEYS, i)) == words(KEYS.at[2, 3].set(KEY))
    assert words(ROW.at[9].get(mode="fill")) == [2**32 - 1] * 2
    assert words(ROW.at[9].get(mode="clip")) == words(ROW)[3]
    assert words(ROW.at[9].set(KEY, mode="drop")) == words(ROW)


def test_creation():
    assert words(tnp.asarray([KEY, KEY])) == words(tnp.full((2,), KEY)) == words(tnp.stack([KEY, KEY]))
    assert tnp.asarray(ROW) is ROW and words(ROW.astype(KEY.dtype)) == words(tnp.asarray(ROW, KEY.dtype)) == words(ROW)
    for zeros in (tnp.zeros((2,), KEY.dtype), tnp.zeros_like(ROW[:2]), tnp.empty_like(ROW, shape=(2,))):
        assert zeros.dtype == KEY.dtype and words(zeros) == [[0, 0], [0, 0]]


# ---- transformations


def drawn(key: Any) -> Any:
    return random.normal(key, (2,))


def test_jit_takes_and_gives_keys():
    @tl.jit
    def step(state):
        key, used = random.split(state["key"])
        return {"key": key, "drawn": drawn(used)}

    state = {"key": KEY, "drawn": drawn(KEY)}
    for _ in range(2):
        key, used = random.split(state["key"])
        state = step(state)
        assert words(state["key"]) == words(key)
        np.testing.assert_array_equal(state["drawn"], drawn(used))


def test_donated_keys():
    row = random.split(random.key(3), 4)
    expected = words(row)[::-1]
    assert words(tl.jit(lambda x: x[::-1], donate_argnums=0)(row)) == expected
    assert row.is_deleted()


def test_keys_that_programs_close_over():
    f = tl.jit(lambda x: x + drawn(KEY) + drawn(ROW[1]))
    np.testing.assert_allclose(f(1.0), 1 + drawn(KEY) + drawn(ROW[1]), rtol=1e-6)
    assert words(tl.jit(lambda: KEY)()) == words(KEY)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vmap(axis: int):
    f = tl.vmap(tl.vmap(drawn), in_axes=axis)
    rows = KEYS if axis == 0 else KEYS.T
    expected = np.stack([np.stack([drawn(key) for key in row]) for row in rows])
    for compute in (f, tl.jit(f)):
        np.testing.assert_array_equal(compute(KEYS), expected)


def repeated(row: Any, n: Any) -> Any:
    """The first key split n times."""
    return lax.while_loop(lambda c: c[1] < n, lambda c: (random.split(c[0])[1], c[1] + 1), (row[0], 0))[0]


MAPPED: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda row, i: row[i],
    "write": lambda row, i: row.at[i].set(KEY),
    "where": lambda row, i: tnp.where(i > 1, row, row[::-1]),
    "split": lambda row, i: tl.vmap(random.split, out_axes=1)(row)[i // 2],
    "pad": lambda row, i: lax.pad(row, row[i], [(1, 2, 1)]),
    "equal": lambda row, i: random.wrap_key_data(random.key_data(row) * (row == row[i])[:, None].astype("uint32")),
    "cond": lambda row, i: lax.cond(i > 1, lambda row: row[0], lambda row: random.fold_in(row[1], 5), row),
    "switch": lambda row, i: lax.switch(i, [lambda row: row[0], lambda row: random.split(row[1])[0]] * 2, row),
    "while_loop": repeated,
    "scan": lambda row, i: lax.scan(lambda key, x: (random.fold_in(key, i), x), row[0], row)[0],
}


@pytest.mark.parametrize("name", MAPPED)
def test_vmap_of_what_moves_keys(name: str):
    f, i = MAPPED[name], np.array([3, 0, 2], np.int32)
    looped = [words(f(KEYS[k], i[k])) for k in range(3)]
    assert words(tl.vmap(f)(KEYS, i)) == words(tl.jit(tl.vmap(f))(KEYS, i)) == looped


def test_loops_carry_and_scan_keys():
    def body(key, other):
        key, used = random.split(key)
        return key, (used, random.uniform(other), other)

    def unrolled():
        key, used, numbers = KEY, [], []
        for other in ROW:
            key, one = random.split(key)
            used.append(words(one))
            numbers.append(float(random.uniform(other)))
        return words(key), used, numbers

    for run in (
        lambda: lax.scan(body, KEY, ROW),
        tl.jit(lambda: lax.scan(body, KEY, ROW)),
        lambda: lax.scan(body, KEY, ROW, unroll=3),
    ):
        key, (used, numbers, same) = run()
        assert (words(key), words(used), numbers.tolist()) == unrolled()
        assert words(same) == words(ROW)
    backwards = lax.scan(lambda c, k: (c, k), 0, ROW, reverse=True)[1]
    assert words(backwards) == words(ROW)
    split_thrice = lax.fori_loop(0, 3, lambda _, k: random.split(k)[0], KEY)
    assert words(split_thrice) == words(random.split(random.split(random.split(KEY)[0])[0])[0])
    filled = lax.fori_loop(0, 4, lambda i, keys: keys.at[i].set(random.fold_in(KEY, i)), ROW)
    assert words(filled) == words(random.split(KEY, 4))
    assert words(lax.map(lambda k: random.split(k)[1], ROW)) == words(tl.vmap(random.split)(ROW)[:, 1])


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool):
    f = lambda flag, keys: lax.cond(flag, lambda k: (k[0], k), lambda k: (random.split(k[1])[0], k[::-1]), keys)  # noqa: E731
    expected = (words(ROW[0]), words(ROW)) if flag else (words(random.split(ROW[1])[0]), words(ROW)[::-1])
    for compute in (f, tl.jit(f)):
        assert tuple(map(words, compute(flag, ROW))) == expected
    assert (
        words(tl.jit(lambda i: lax.switch(i, [lambda k: k[0], lambda k: k[1], lambda k: k[3]], ROW))(2))
        == words(ROW)[3]
    )


def test_shapes_and_stages():
    f = lambda key: {"more": random.split(key, 5), "one": key}  # noqa: E731
    struct = tl.ShapeDtypeStruct((), KEY.dtype)
    shapes = tl.eval_shape(f, KEY)
    assert shapes == tl.eval_shape(f, struct) == {"more": tl.ShapeDtypeStruct((5,), KEY.dtype), "one": struct}
    assert str(shapes["more"]) == "ShapeDtypeStruct(shape=(5,), dtype=key<fry>)"
    lowered = tl.jit(f).lower(struct)
    assert "(%arg0: tensor<2xui32>) -> (tensor<5x2xui32>, tensor<2xui32>)" in lowered.as_text()
    compiled = lowered.compile()
    assert words(compiled(KEY)["more"]) == words(random.split(KEY, 5))
    saved = tl.stages.load(tl.jit(lambda key: (key, ROW[1])).lower(struct).compile().serialize())
    assert [*map(words, saved(KEY))] == [words(KEY), words(ROW[1])]
    with raises(TypeError, f"{place(f)} was compiled for key<fry>[] as argument key, but called with uint32[2]."):
        compiled(random.key_data(KEY))


# ---- derivatives: keys have none


def noisy(x: Any, keys: Any) -> Any:
    return tnp.sum(x**2 * drawn(keys[0])) + tnp.sum(tnp.where(random.bernoulli(keys[1], 0.5, x.shape), x, 0))


def test_derivatives_beside_keys():
    x = tnp.array([0.5, -2.0])
    g = 2 * x * drawn(ROW[0]) + random.bernoulli(ROW[1], 0.5, (2,))
    for grad in (tl.grad(noisy), tl.jit(tl.grad(noisy)), tl.grad(tl.checkpoint(noisy)), tl.jit(tl.jacfwd(noisy))):
        np.testing.assert_allclose(grad(x, ROW), g, rtol=1e-6)
    np.testing.assert_allclose(tl.vmap(tl.grad(noisy), (None, 0))(x, KEYS)[0], g, rtol=1e-6)


def test_derivatives_of_loops_that_carry_keys():
    def loss(x, key):
        def step(carry, _):
            x, key = carry
            key, used = random.split(key)
            return (x * (1 + 0.1 * drawn(used)), key), None

        return tnp.sum(lax.scan(step, (x, key), length=3)[0][0])

    x, factor, key = tnp.ones(2), 1.0, KEY
    for _ in range(3):
        key, used = random.split(key)
        factor = factor * (1 + 0.1 * drawn(used))
    for f in (loss, tl.checkpoint(loss), lambda x, key: loss(x, lax.stop_gradient(key))):
        for grad in (tl.grad(f), tl.jit(tl.grad(f)), tl.jacfwd(f)):
            np.testing.assert_allclose(grad(x, KEY), factor, rtol=1e-5)


def test_tangents_of_keys_are_float0():
    zero = np.zeros((), tl.dtypes.float0)
    out, tangent = tl.jvp(lambda x, key: x * drawn(key), (2.0, KEY), (1.0, zero))
    np.testing.assert_allclose(tangent, out / 2, rtol=1e-6)
    _, pull = tl.vjp(lambda x, keys: (x * 2, keys[1]), 2.0, ROW)
    x_bar, keys_bar = pull((1.0, zero))
    assert float(x_bar) == 2 and keys_bar.dtype == tl.dtypes.float0 and keys_bar.shape == (4,)
    given = tl.grad(lambda key: drawn(key)[0], allow_int=True)(KEY)
    assert given.dtype == tl.dtypes.float0 and given.shape == ()
    x_bar, key = tl.grad(lambda x: (x**2, KEY), has_aux=True)(3.0)
    assert float(x_bar) == 6 and words(key) == words(KEY)


def test_custom_rules_take_keys():
    @tl.custom_vjp
    def dropped(x, key):
        return x * random.bernoulli(key, 0.5, x.shape)

    dropped.defvjp(
        lambda x, key: (dropped(x, key), key), lambda key, ct: (ct * random.bernoulli(key, 0.5, ct.shape), None)
    )
    x = tnp.arange(1.0, 9.0)
    mask = np.asarray(random.bernoulli(KEY, 0.5, (8,)), float)
    for f in (tl.grad(lambda x: dropped(x, KEY).sum()), tl.jit(tl.jacfwd(lambda x: dropped(x, KEY).sum()))):
        np.testing.assert_array_equal(f(x), mask)


def test_rules_of_vmap_close_over_keys():
    @tl.custom_batching.custom_vmap
    def f(x):
        return x * 2

    f.def_vmap(lambda size, mapped, x: (x * 2 + drawn(KEY)[0] + drawn(ROW[1])[0], mapped[0]))
    expected = np.arange(3.0) * 2 + drawn(KEY)[0] + drawn(ROW[1])[0]
    for compute in (tl.vmap(f), tl.jit(tl.vmap(f)), tl.vmap(tl.jit(f))):
        np.testing.assert_allclose(compute(tnp.arange(3.0)), expected, rtol=1e-6)


# ---- the host


def test_callbacks_are_given_keys(capsys: Any):
    f = tl.jit(
        lambda k: tl.pure_callback(lambda k: np.asarray(random.key_data(k)), tl.ShapeDtypeStruct((2,), "uint32"), k)
    )
    assert f(KEY).tolist() == words(KEY)
    tl.jit(lambda k: tl.debug.print("{k} {n}", k=k, n=1))(KEY)
    tl.effects_barrier()
    assert capsys.readouterr().out == f"{KEY} 1\n"


def test_nan_to_num_returns_keys_as_they_are():
    """As integers: a function over all leaves of a state, one of them a key, needs no case of its own."""
    assert tl.random.key_data(tnp.nan_to_num(KEY)).tolist() == words(KEY)
    assert tl.random.key_data(tl.jit(tnp.nan_to_num)(ROW)).tolist() == tl.random.key_data(ROW).tolist()


# ---- what is refused

NOT_NUMPY = (
    "an array of keys does not become a NumPy array or a Python number: key<fry>[].\n"
    "  Their words, which are uint32, are random.key_data(keys)."
)


@pytest.mark.parametrize(
    "convert",
    [np.asarray, np.array, float, int, complex, bool, lambda k: k.item(), lambda k: k.tolist(), [0].__getitem__],
)
def test_no_conversion_to_numbers(convert: Callable[[Any], Any]):
    with raises(TypeError, NOT_NUMPY):
        convert(KEY)


def test_no_other_way_out():
    with pytest.raises(TypeError, match="key_data"):
        np.stack([KEY, KEY])
    with raises(TypeError, "an array is not hashable: key<fry>[]. Use random.key_data(keys).tolist(), or id(keys)."):
        hash(KEY)
    for export in (np.from_dlpack, tl.from_dlpack):
        with pytest.raises(BufferError, match="key_data"):
            export(ROW.__class__(ROW.buf, ROW.dtype) if export is np.from_dlpack else _Foreign(ROW))
    with raises(TypeError, "keys have no format '>3': key<fry>[]."):
        f"{KEY:>3}"


class _Foreign:
    """What has the protocol of dlpack, and keys behind it."""

    def __init__(self, keys: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = keys.__dlpack__, keys.__dlpack_device__


ARITHMETIC: dict[str, Callable[[], Any]] = {
    "add": lambda: KEY + 1,
    "subtract": lambda: 1.5 - KEY,
    "multiply": lambda: np.ones(3, np.float32) * KEY,
    "negative": lambda: -KEY,
    "bitwise_xor": lambda: KEY ^ KEY,
    "less": lambda: KEYS < KEY,
    "equal": lambda: KEY == 1,
    "not_equal": lambda: random.key_data(KEY) != KEY,
    "sin": lambda: tnp.sin(KEY),
    "real": lambda: KEY.real,
    "round": lambda: round(ROW),
    "conj": lambda: ROW.conj(),
    "positive": lambda: +ROW,
    "abs": lambda: abs(ROW),
    "sum": lambda: ROW.sum(),
    "any": lambda: ROW.any(),
    "max": lambda: ROW.max(),
    "argmax": lambda: ROW.argmax(),
    "sort": lambda: ROW.sort(),
    "matmul": lambda: KEYS @ ROW,
    "where": lambda: tnp.where(True, KEY, 0),
    "concatenate": lambda: tnp.concatenate([ROW, random.key_data(KEY)]),
    "clip": lambda: tnp.clip(KEY, 0, 1),
    "astype": lambda: KEY.astype("uint32"),
    "view": lambda: KEY.view("uint32"),
    "bitcast_convert_type": lambda: lax.bitcast_convert_type(KEY, "uint32"),
    "iota": lambda: lax.iota(KEY.dtype, 3),
    "scatter_add": lambda: ROW.at[np.array([0, 1])].add(KEY),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_no_arithmetic(name: str):
    """The message names the operation and the dtype."""
    with pytest.raises(TypeError) as raised:
        ARITHMETIC[name]()
    assert str(raised.value).startswith(f"{name} is not defined for keys of random numbers: ")
    assert "key<fry>" in str(raised.value) and "key_data" in str(raised.value)


REFUSED = [
    (lambda: ROW.at[1].set(0), "at[...].set: int32[] cannot be written into key<fry>[4]: keys go with keys alone."),
    (lambda: tnp.ones((2,), KEY.dtype), "the number 1 is no key, key<fry>. Make one with random.key(seed)."),
    (lambda: tnp.arange(3)[KEY], "an index must be integer or boolean, not key<fry>[]. Convert with astype(int)."),
    (
        lambda: tl.grad(lambda key: drawn(key)[0])(KEY),
        "grad: argument key of <lambda> is key<fry>[], and keys of random numbers have no derivative.\n"
        "  Choose others with argnums=, or pass allow_int=True for float0 zeros.",
    ),
    (
        lambda: tl.grad(lambda x: KEY)(1.0),
        "grad: <lambda> returned key<fry>[], and keys of random numbers have no derivative.",
    ),
    (
        lambda: tnp.result_type(KEY, 1.0),
        "key<fry> has no common dtype with a weak float: keys go with keys alone, of the same generator.",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(call: Callable[[], Any], message: str):
    with raises(TypeError, message):
        call()


def test_results_of_callbacks_are_no_keys():
    with pytest.raises(TypeError, match="a function on the host gives no keys"):
        tl.pure_callback(lambda: KEY, tl.ShapeDtypeStruct((), KEY.dtype))


def test_nan_checks_let_keys_be():
    with tl.config.scope(debug_nans=True):
        f = tl.jit(lambda x: x / drawn(KEY) * drawn(ROW[0]))
        assert np.isfinite(f(1.0)).all()
        with pytest.raises(FloatingPointError, match="nan"):
            tl.jit(lambda x: drawn(KEY) * (x / x))(0.0)


def test_records_stand_for_keys():
    """What these tests compare with: NumPy's records are the words."""
    assert numpys(ROW).dtype == RECORD and numpys(ROW).view(np.uint32).reshape(-1, 2).tolist() == words(ROW)
