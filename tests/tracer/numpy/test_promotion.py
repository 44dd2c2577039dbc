"""Integers that give way to another dtype: those that do not fit are refused wherever they are known."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

BYTES = np.ones(3, np.int8)
TOO_BIG = "the integer 300 does not fit int8, which holds -128 to 127: use an array of a wider dtype, such as int16."


@pytest.mark.parametrize("f", [
    lambda x, n: x + n,
    lambda x, n: n * x,
    lambda x, n: x < n,
    lambda x, n: x // n,
    lambda x, n: x & n,
    lambda x, n: tnp.maximum(x, n),
    lambda x, n: tnp.clip(x, 0, n),
    lambda x, n: tnp.where(x > 0, x, n),
    lambda x, n: tnp.concatenate([x, tnp.ravel(n)]),
    lambda x, n: tnp.stack([x[0], n]),
    lambda x, n: tnp.append(x, n),
    lambda x, n: tnp.insert(x, 0, n),
    lambda x, n: tnp.pad(x, 1, constant_values=n),
    lambda x, n: tnp.full_like(x, n),
    lambda x, n: tnp.full(3, n, np.int8),
    lambda x, n: tnp.searchsorted(x, n),
    lambda x, n: tnp.select([x > 0], [x], n),
    lambda x, n: tl.grad(lambda y: (y * (x + n)).sum())(1.0),
])  # fmt: skip
@pytest.mark.parametrize("number", [int, np.int64, tnp.asarray, lambda n: tnp.asarray(np.int64(n))])
def test_weak_integers_that_do_not_fit(f, number):
    with raises(OverflowError, TOO_BIG):
        f(tnp.asarray(BYTES), number(300))
    f(tnp.asarray(BYTES), number(3))


@pytest.mark.parametrize("f", [
    lambda n: tnp.full_like(BYTES, n),
    lambda n: tnp.full(3, n, np.int8),
    lambda n: tnp.pad(tnp.asarray(BYTES), 1, constant_values=n),
])  # fmt: skip
@pytest.mark.parametrize("array", [np.array, lambda n: tnp.asarray(np.array(n))])
def test_strong_integers_that_take_the_dtype_of_an_array(f, array):
    with raises(OverflowError, TOO_BIG):
        f(array(300))
    assert f(array(3)).dtype == np.int8


def test_signs_of_weak_integers():
    with pytest.raises(OverflowError, match="-1 does not fit uint8"):
        tnp.ones(3, np.uint8) + tnp.asarray(-1)
    with pytest.raises(OverflowError, match="-1 does not fit uint64"):
        tnp.asarray(np.uint64(3)) + tnp.asarray(-1)
    assert tnp.ones(3, np.uint32) + tnp.asarray(7) == pytest.approx(8)


def test_arrays_widen_instead():
    x = tnp.asarray(BYTES)
    assert (x + np.array(300)).dtype == np.int64
    assert (x + tnp.array([300])).dtype == np.int32
    assert (x + tnp.asarray(np.int16(300)).astype(np.int16)).dtype == np.int16


def test_what_wraps_because_it_was_asked_to():
    n = tnp.asarray(300)
    assert n.astype(np.int8) == tnp.array(n, np.int8) == tnp.array(np.array(300), np.int8) == 44
    assert tl.jit(lambda n: n.astype(np.int8))(300) == 44


@pytest.mark.parametrize("full", [tnp.full, tl.lax.full], ids=["numpy", "lax"])
@pytest.mark.parametrize(("number", "dtype", "expected"), [
    (3.0, int, 3), (-2.7, int, -2), (2.7, np.uint8, 2), (0.5, bool, True), (2j, bool, True),
    (1e10, np.float16, np.inf), (np.float64(2.7), np.int8, 2), (3, np.complex64, 3), (True, np.int8, 1),
])  # fmt: skip
def test_filling_converts(full, number, dtype, expected):
    found = full((2,), number, dtype)
    assert found.dtype == tl.tracer.dtypes.canonical(dtype)
    assert found.tolist() == [expected, expected]


@pytest.mark.parametrize("full", [tnp.full, tl.lax.full], ids=["numpy", "lax"])
def test_filling_refuses_what_would_lose_more_than_a_fraction(full):
    for number, dtype, error in (
        (1 + 2j, np.float32, TypeError),
        (np.nan, int, ValueError),
        (300.0, np.int8, OverflowError),
    ):
        with pytest.raises(error):
            full((2,), number, dtype)


def test_filling_converts_to_the_dtype_of_an_array():
    for full_like in (tnp.full_like, tl.lax.full_like):
        assert full_like(BYTES, 2.7).tolist() == [2] * len(BYTES)
        assert full_like(BYTES, 2.7).dtype == np.int8
    assert tnp.full(2, np.array(2.7), int).tolist() == [2, 2]


def test_ranges_that_do_not_fit():
    with pytest.raises(OverflowError, match="the integer 299 does not fit int8"):
        tnp.indices((300,), np.int8)
    assert tl.lax.iota(np.int8, 300)[299] == 43  # which wraps around, as in JAX
    for under in (lambda f: f, tl.jit):
        with pytest.raises(OverflowError, match="the integer 128 does not fit int8"):
            under(lambda: tnp.arange(129, dtype=np.int8))()
    assert tnp.arange(128, dtype=np.int8)[-1] == 127
    assert tnp.arange(100, -129, -4, dtype=np.int8)[-1] == -128


def test_numbers_of_lax_that_do_not_fit():
    for f in (
        lambda n: tl.lax.full((2,), n, np.int8),
        lambda n: tl.lax.full_like(BYTES, n),
        lambda n: tl.lax.add(tnp.asarray(BYTES), n),
        lambda n: tl.lax.convert_element_type(n, np.int8),
    ):
        with raises(OverflowError, TOO_BIG):
            f(300)
    assert tl.lax.full((2,), np.array(3), np.int8).dtype == tl.lax.full((2,), tnp.asarray(3), np.int8).dtype == np.int8


X = np.array([0.3, 0.7, 0.11, 0.9])


@pytest.mark.parametrize("f", [
    lambda lib, x: lib.percentile(x, 30),
    lambda lib, x: lib.nanquantile(x, 0.1),
    lambda lib, x: lib.diff(x, prepend=0.1, append=0.3),
    lambda lib, x: lib.ediff1d(x, to_begin=0.1, to_end=0.3),
    lambda lib, x: lib.append(x, 0.1),
    lambda lib, x: lib.append(0.1, x),
    lambda lib, x: lib.insert(x, 1, 0.1),
    lambda lib, x: lib.block([x, 0.1]),
    lambda lib, x: lib.hstack([x, 0.1]),
    lambda lib, x: lib.vstack([x[0], 0.1]),
    lambda lib, x: lib.stack([x[0], 0.1]),
    lambda lib, x: lib.column_stack([x[:1], 0.1]),
    lambda lib, x: lib.polyadd(x, 0.1),
    lambda lib, x: lib.full_like(x, 0.1),
    lambda lib, x: lib.pad(x, 1, constant_values=0.1),
    lambda lib, x: lib.gradient(x, 0.1),
    lambda lib, x: lib.where(x > 0.5, x, 0.1),
    lambda lib, x: lib.linspace(x[0], 0.1, 4),
    lambda lib, x: x + 16777217,
])  # fmt: skip
def test_numbers_are_not_rounded_on_their_way_to_wide_arrays(f):
    found = f(tnp, tnp.asarray(X))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, f(np, X), rtol=1e-14)  # a few roundings of float64; of float32 it would be 1e-8


INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32)]


@pytest.mark.parametrize("x", [*INTEGERS, "bool", "float16", "bfloat16", "float32", "complex64"])
def test_32_bits_stay_32_bits_for_programs_from_jax(x: str):
    """With numpy_bits=32 as in JAX without x64; at 64 bits as in NumPy."""
    jnp = pytest.importorskip("jax.numpy")
    for y in INTEGERS:
        with tl.config.scope(numpy_bits=32):
            found = (tnp.ones(2, x) + tnp.ones(2, y)).dtype, tnp.promote_types(x, y)
        assert found == ((jnp.ones(2, x) + jnp.ones(2, y)).dtype, jnp.promote_types(x, y))
        if x in INTEGERS:
            assert (tnp.ones(2, x) + tnp.ones(2, y)).dtype == np.promote_types(x, y)
    with tl.config.scope(numpy_bits=32):
        assert (tnp.ones(2, np.uint32) + tnp.ones(2, np.int64)).dtype == np.int64  # which was asked for
        with tl.enable_x64():
            assert (tnp.ones(2, np.uint32) + tnp.ones(2, np.int32)).dtype == np.int64
