"""Reductions over segments against NumPy: dtypes, empty segments, segments that there are not, buckets, derivatives."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import ops

pytestmark = pytest.mark.usefixtures("eager_by_steps")

IDS = np.array([2, 0, 2, 5, -1, 0, 9, 2])
UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
EMPTY = {"sum": lambda d: 0, "prod": lambda d: 1, "max": lambda d: limits(d)[0], "min": lambda d: limits(d)[1]}


def limits(dtype: Any) -> tuple[Any, Any]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    return (False, True) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def expected(how: str, data: Any, ids: Any, count: int) -> Any:
    found = np.full((count, *data.shape[1:]), EMPTY[how](data.dtype), data.dtype)
    inside = (ids >= 0) & (ids < count)
    UFUNCS[how].at(found, ids[inside], data[inside])
    return found


@pytest.mark.parametrize("bucket_size", [None, 1, 3, 100])
@pytest.mark.parametrize("how", UFUNCS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int32"])
def test_agrees_with_numpy(how: str, dtype: str, bucket_size: int | None):
    data = np.random.default_rng(0).integers(1, 4, (8, 2)).astype(dtype)
    f = getattr(ops, f"segment_{how}")
    for ids in (IDS, IDS.astype("int8"), np.abs(IDS).astype("uint8")):
        found = f(data, ids, 6, bucket_size=bucket_size)
        assert found.dtype == data.dtype
        np.testing.assert_array_equal(found, expected(how, data, ids, 6))
        np.testing.assert_array_equal(tl.jit(lambda data, ids: f(data, ids, 6))(data, ids), found)


@pytest.mark.parametrize("how", ["max", "min"])
def test_truth_values(how: str):
    data = np.array([True, False, False, True, False, False, True, False])
    found = getattr(ops, f"segment_{how}")(data, IDS, 6)
    np.testing.assert_array_equal(found, expected(how, data, IDS, 6))


def test_how_many_and_none():
    assert ops.segment_sum(np.ones(3), np.array([0, 3, 1])).shape == (4,)
    assert ops.segment_sum(np.ones((0, 2)), np.zeros(0, int)).shape == (0, 2)
    assert ops.segment_max(np.zeros((0, 2)), np.zeros(0, int), 3).tolist() == [[-np.inf] * 2] * 3


def test_modes():
    data = np.arange(8.0)
    clipped = ops.segment_sum(data, IDS, 4, mode="clip")
    np.testing.assert_array_equal(clipped, expected("sum", data, np.clip(IDS, 0, 3), 4))
    inside = np.abs(IDS) % 4
    np.testing.assert_array_equal(
        ops.segment_sum(data, inside, 4, mode="promise_in_bounds"), expected("sum", data, inside, 4)
    )


@pytest.mark.parametrize("name", ["segment_sum", "segment_max"])
def test_segment_ids_are_positions_as_they_are(name: str):
    """A scatter drops what is outside, so nothing is computed of the ids, of which there are as many as data."""
    text = tl.jit(lambda data, ids: getattr(ops, name)(data, ids, 6)).lower(np.ones(8), IDS).as_text()
    assert text.count('"stablehlo.scatter"(') == 1
    assert not [word for word in ("select", "compare", "clamp") if f"stablehlo.{word}" in text]


def test_derivatives_are_reads():
    weights, data = np.linspace(1, 2, 6), np.linspace(-1, 1, 8)
    inside = (IDS >= 0) & (IDS < 6)

    def total(data: Any) -> Any:
        return tnp.sum(ops.segment_sum(data, IDS, 6) * weights)

    np.testing.assert_allclose(tl.grad(total)(data), np.where(inside, weights[np.clip(IDS, 0, 5)], 0), rtol=1e-6)
    largest = tl.grad(lambda data: tnp.sum(ops.segment_max(data, np.zeros(8, int), 1)))(data)
    assert largest.tolist() == [0] * 7 + [1]
    mapped = tl.vmap(lambda ids: ops.segment_sum(data, ids, 6))(np.stack([IDS, IDS[::-1]]))
    np.testing.assert_allclose(mapped[1], expected("sum", data, IDS[::-1], 6), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ops.segment_sum(np.ones(2), np.ones(2)), TypeError, "segment_sum: segment_ids must be integers"),
        (lambda: ops.segment_max(np.ones(2), np.ones(3, int)), ValueError, "one number for each of the data"),
        (lambda: ops.segment_min(np.ones(2), np.ones(2, int), -1), ValueError, "num_segments must be at least 0"),
        (lambda: ops.segment_prod(np.ones(2), np.ones(2, int), 2, bucket_size=0), ValueError, "bucket_size must be at"),
        (lambda: ops.segment_sum(np.ones(2), np.ones(2, int), 2, mode="wrap"), ValueError, "mode 'wrap' is none of"),
    ],
)
def test_refused(call: Any, error: type[Exception], text: str):
    with pytest.raises(error, match=text):
        call()


def test_unknown_segments_need_their_number():
    with pytest.raises(TypeError, match="Give num_segments"):
        tl.jit(lambda ids: ops.segment_sum(np.ones(2), ids))(np.ones(2, int))


@pytest.mark.parametrize("factors", [[2, 0, 3, 5, 0, 7, 0, 4, 1], [2, 3, 3, 5, 0.5, 7, -1, 4, 1]])
def test_derivatives_of_products_of_segments(factors):
    """Of two orders and all modes, with several zeros, ids that are dropped, and an empty segment."""
    ids, x = np.array([0, 2, 0, 2, 2, -1, 3, 0, 9]), np.array(factors, float)

    def segments(x):
        return ops.segment_prod(x, ids, 4)

    def products(x):
        return tnp.stack([tnp.prod(x[ids == k]) for k in range(4)])

    def derivatives(f):
        return [tl.jacrev(f)(x), tl.jacfwd(f)(x), tl.jacfwd(tl.jacrev(f))(x), tl.jacrev(tl.jacrev(f))(x)]

    for found, expected in zip(*(tl.jit(lambda f=f: derivatives(f))() for f in (segments, products))):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_derivatives_of_products_of_windows():
    """Rows of a matrix that are multiplied more than once; positions and factors are mapped, too."""
    places, x = np.array([[0, 1, 0, 2], [1, 1, 1, 1]]), np.arange(-4.0, 5).reshape(3, 3)
    factors = np.array([[2.0, 3, 0, 5], [0, 0, 4, 2]])

    def at_once(x, factors, places):
        return x.at[places].multiply(factors[:, None] * tnp.ones(3))

    def one_by_one(x, factors, places):
        for k in range(4):
            x = x.at[places[k]].set(x[places[k]] * factors[k])
        return x

    def hessian(f):
        def total(x, factors, places):
            return tnp.sum(f(x, factors, places) ** 2)

        return tl.jit(tl.vmap(tl.hessian(total, (0, 1)), (None, 0, 0)))(x, factors, places)

    for found, expected in zip(tl.tree.leaves(hessian(at_once)), tl.tree.leaves(hessian(one_by_one))):
        np.testing.assert_allclose(found, expected, atol=1e-12)
