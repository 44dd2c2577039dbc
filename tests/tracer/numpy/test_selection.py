"""Selection and sets whose results have a given size, under `jit`; indices that do not wrap."""

import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
DTYPES = ("int8", "float32", "complex64")
SETS = ("intersect1d", "setdiff1d", "setxor1d", "union1d")


def some(dtype, n):
    drawn = RNG.integers(0, 6, n)
    return (drawn + 1j * RNG.integers(0, 2, n) if dtype == "complex64" else drawn).astype(dtype)


PAIRS = [(some(d, m), some(d, n)) for d in DTYPES for m, n in itertools.product((0, 7), (0, 5))]
PAIRS += [(np.array([np.nan, 1, np.inf, np.nan, 2], np.float32), np.array([np.nan, np.inf, -np.inf], np.float32))]


def filled(values, size, fill):
    """What NumPy finds, cut or filled up."""
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), fill, values.dtype)])


@pytest.mark.parametrize("name", SETS)
def test_sets_of_a_given_size(name):
    sizes = (3, 14)
    ours, theirs = getattr(tnp, name), getattr(np, name)
    found = tl.jit(lambda pairs: [[ours(x, y, size=n, fill_value=5) for n in sizes] for x, y in pairs])(PAIRS)
    for (x, y), results in zip(PAIRS, found, strict=True):
        for n, result in zip(sizes, results, strict=True):
            np.testing.assert_array_equal(result, filled(theirs(x, y), n, 5), err_msg=f"{x} {y} {n}")
            assert result.dtype == x.dtype


def test_what_they_are_filled_with():
    x, y = np.array([3, 1, 2, 1]), np.array([2, 3, 4])
    assert tl.jit(lambda x, y: tnp.intersect1d(x, y, size=4))(x, y).tolist() == [2, 3, 2, 2]
    assert tl.jit(lambda x, y: tnp.setxor1d(x, y, size=4))(x, y).tolist() == [1, 4, 1, 1]
    assert tl.jit(lambda x, y: tnp.setdiff1d(x, y, size=2))(x, y).tolist() == [1, 0]
    assert tl.jit(lambda x, y: tnp.setdiff1d(x, y, assume_unique=True, size=3))(x[::-1], y).tolist() == [1, 1, 0]


def test_positions_of_an_intersection():
    def f(x, y):
        return tnp.intersect1d(x, y, return_indices=True, size=6, fill_value=0)

    for x, y in PAIRS:
        values, first, second = (np.asarray(v) for v in tl.jit(f)(x, y))
        wanted = np.intersect1d(x, y, return_indices=True)
        np.testing.assert_array_equal(values, filled(wanted[0], 6, 0))
        np.testing.assert_array_equal(first, filled(wanted[1], 6, len(x)))
        np.testing.assert_array_equal(second, filled(wanted[2], 6, len(y)))


def test_compress_extract_and_delete_of_what_is_traced():
    x, mask = np.arange(12.0).reshape(3, 4), np.array([True, False, True])

    def f(x, mask):
        short = tnp.compress(mask, x, 0, size=1)
        return short, tnp.compress(mask, x, 0, size=3, fill_value=9), tnp.extract(x > 4, x, size=9, fill_value=-1)

    short, long, extracted = tl.jit(f)(x, mask)
    np.testing.assert_array_equal(short, x[:1])
    np.testing.assert_array_equal(long, np.vstack([x[mask], np.full((1, 4), 9.0)]))
    np.testing.assert_array_equal(extracted, filled(x[x > 4], 9, -1))
    remove = tl.jit(lambda x, i: tnp.delete(x, i, 1, assume_unique_indices=True))
    np.testing.assert_array_equal(remove(x, np.array([-1, 0])), np.delete(x, [-1, 0], 1))
    with pytest.raises(TypeError, match="traced"):
        tl.jit(tnp.delete)(x, np.array([1]))
    gradient = tl.grad(lambda x: (tnp.compress(mask, x, 0, size=3) ** 2).sum())(x)
    np.testing.assert_array_equal(gradient, 2 * x * mask[:, None])


def test_placing_and_choosing_are_differentiable(rng: np.random.Generator):
    x, y = rng.normal(size=(2, 5)).astype(np.float32)
    mask, t = x > 0, rng.normal(size=5).astype(np.float32)

    def f(x, y):
        put = tnp.put(x, [0, 3, 3], y[:2], "clip", inplace=False)
        return (put * tnp.place(x, mask, y, inplace=False) + tnp.choose(mask, [x, y])).sum()

    gradients = tl.grad(f, (0, 1))(x, y)
    pushed = tl.jvp(f, (x, y), (t, t))[1]
    np.testing.assert_allclose(sum((np.asarray(g) * t).sum() for g in gradients), pushed, rtol=1e-5)


def test_negative_indices_that_do_not_wrap():
    x, i = tnp.arange(5.0), np.array([-1, 2, 7])
    for f in (lambda f: f, tl.jit):
        write = f(lambda x, i: x.at[i].set(9.0, mode="drop", wrap_negative_indices=False))
        np.testing.assert_array_equal(write(x, i), [0, 1, 9, 3, 4])
        read = f(lambda x, i: x.at[i].get(mode="fill", fill_value=-2, wrap_negative_indices=False))
        np.testing.assert_array_equal(read(x, i), [-2, 2, -2])
        clip = f(lambda x, i: x.at[i].get(mode="clip", wrap_negative_indices=False))
        np.testing.assert_array_equal(clip(x, i), [0, 2, 4])
        along = f(lambda x, i: tnp.take_along_axis(x, i, 0, mode="fill", wrap_negative_indices=False))
        np.testing.assert_array_equal(along(x, i), [np.nan, 2, np.nan])
        once = f(lambda x: x.at[-1].add(1.0, mode="drop", wrap_negative_indices=False))
        np.testing.assert_array_equal(once(x), x)
        twice = f(lambda x, i: x.at[i].apply(tnp.square, mode="drop", wrap_negative_indices=False))
        np.testing.assert_array_equal(twice(x, np.array([2, -1, 2])), [0, 1, 16, 3, 4])
    with raises(IndexError, "index -1 is out of bounds for axis 0 with size 5, of an array of shape (5,)."):
        x.at[-1].get(wrap_negative_indices=False)


@pytest.mark.parametrize("name", ["set", "add", "multiply", "divide", "power", "min", "max", "apply"])
def test_writes_take_their_options_and_no_others(name):
    value = tnp.sin if name == "apply" else 2.0
    with pytest.raises(TypeError):
        getattr(tnp.ones(3).at[0], name)(value, indices_sorted=True)
    options = {"mode": "clip", "indices_are_sorted": True, "unique_indices": True, "wrap_negative_indices": True}
    assert getattr(tnp.ones(3).at[np.array([0, 5])], name)(value, **options).shape == (3,)


def test_what_is_refused():
    x = tnp.arange(4.0)
    for f in (tnp.put, tnp.place):
        with pytest.raises(ValueError, match="arrays are never changed in place; pass inplace=False"):
            f(x, x > 1, 2.0)
    with pytest.raises(NotImplementedError, match="arrays are never changed in place; pass inplace=False"):
        tnp.fill_diagonal(tnp.ones((2, 2)), 2.0)
    for name in ("isin", "digitize", "searchsorted"):
        with raises(ValueError, f"{name}: there is no method 'fast'."):
            getattr(tnp, name)(x, x, method="fast")
    with raises(ValueError, "compress: the condition is true at 4, outside of axis 0 of float32[4]."):
        tnp.compress([False, True, False, False, True], x)
    with raises(TypeError, "argsort: positions are integers, which float32 are not."):
        tnp.argsort(x, dtype=np.float32)
    with pytest.raises(OverflowError):
        tnp.argsort(tnp.zeros(300), dtype=np.int8)
    assert tnp.argsort(-x, dtype=np.uint8).dtype == np.uint8
