"""Positions that indices and elements of arrays make, near the ends of integer types, against loops in Python."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.test_random_bodies import Reader

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.arange(1.0, 7.0)
HELD = {
    "p": np.array([5, -3, 0, 17, 2, 2**31 - 1], np.int32),
    "q": np.array([2**30, 3, -(2**31), -1, 2**31 - 1, 1], np.int32),
    "bytes_": np.array([250, 0, 128, 1, 2, 5], np.uint8),
    "words": np.array([2**32 - 1, 0, 3, 1, 2**31, 5], np.uint32),
    "wide": np.array([2**40, -(2**40), 2**32 + 1, 2**32, 4, 1], np.int64),
    "huge": np.array([2**64 - 1, 0, 3, 1, 2**63, 5], np.uint64),
}
READS = [
    "x[p[i]]", "x[p[i] + 1]", "x[i - p[i]]", "x[2 * p[i]]", "x[-p[i]]", "x[p[i] + p[5]]", "x[p[i] // 2]", "x[p[i] % 4]",
    "x[4 * q[i]]", "x[2 * q[i] + 2 * q[i]]", "x[q[i] + q[0] + q[0] + q[0]]", "x[1 - q[i]]", "x[q[i] - q[4]]",
    "x[bytes_[i]]", "x[bytes_[i] + 6]", "x[i - bytes_[i]]", "x[3 - bytes_[i]]", "x[2 * bytes_[i]]",
    "x[words[i]]", "x[words[i] + 1]", "x[i - words[i]]", "x[2 * words[i]]", "x[huge[i]]", "x[huge[i] + 1]",
    "x[wide[i]]", "x[wide[i] + 1]", "x[wide[i] - 4]", "x[-wide[i]]", "x[wide[i] - 2 * i]", "x[wide[i] - wide[3]]",
    "x[i * 2**31]", "x[i * 2**33 + 1]", "x[i + 2**32]", "x[(i * 2**38) // 2**38]", "x[(i * 2**31 + 3) % 4]",
    "x[i // 2**33]", "x[i % 2**33]", "x[i - 2**31]", "x[abs(i - 3)]", "x[(i << 1) >> 2]", "x[-i & 3]", "x[i**2 - 3]",
    "(i * 2**31 >= 2**31) * x[i]", "(i + 2**31 > 2**31 + 2) * x[i]", "(i < 2**40) * x[i]", "(wide[i] > i) * x[i]",
    "(words[i] - i > 0) * x[i]", "(i * 2**31) * 1.0", "(i * 1_500_000_000) / 2", "(i + 2**40) * 1.0",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_positions_do_not_wrap_around(text: str):
    loops = [eval(text, {"x": Reader(X), "i": i, **{k: v.tolist() for k, v in HELD.items()}}) for i in range(6)]
    with tl.enable_x64():
        names = {"x": tnp.asarray(X), **{k: tnp.asarray(v) for k, v in HELD.items()}}
        bulk = lambda: ix.build(6, lambda i: eval(text, {**names, "i": i}))  # noqa: E731
        for f in (bulk, tl.jit(bulk)):
            np.testing.assert_allclose(f(), np.array(loops, float), rtol=1e-7)


@pytest.mark.parametrize(
    ("shape", "index", "place"),
    [
        (ix.range("k", 5, periodic=True), lambda i: i + 2, lambda i: (i + 2) % 5),
        (ix.range("k", 5, periodic=True), lambda i: 3 * i - 7, lambda i: (3 * i - 7) % 5),
        (ix.range("b", 5, symmetric=True), lambda i: i - 2, lambda i: i),
        (ix.range("b", 3, symmetric=True), lambda i: 2 * i - 6, lambda i: 2 * i - 5),
        (3, lambda i: tnp.asarray(HELD["wide"])[i], lambda i: HELD["wide"].tolist()[i]),
        (3, lambda i: 4 * tnp.asarray(HELD["q"])[i], lambda i: 4 * HELD["q"].tolist()[i]),
    ],
)
def test_scatter(shape: Any, index: Any, place: Any):
    """Modulo the size of a periodic range; to -m, .., m of a symmetric one: `place` says where the loop adds."""
    n = int(shape.__index__())
    expected, weights = np.zeros(n), np.arange(1.0, n + 1)
    for i, value in enumerate(X):
        if 0 <= place(i) < n:
            expected[place(i)] += value
    with tl.enable_x64():
        np.testing.assert_array_equal(ix.scatter(shape, X, index), expected)
        slope = tl.grad(lambda x: (ix.scatter(shape, x, index) * weights).sum())(X)
    np.testing.assert_array_equal(slope, [Reader(weights)[place(i)] for i in range(6)])


@pytest.mark.parametrize(
    ("index", "found"), [(lambda i: i / 2, r"float32\[\]"), (lambda i: i > 1, r"bool\[\]"), (lambda i: 1.0, "1.0")]
)
def test_places_are_integers(index: Any, found: str):
    with pytest.raises(TypeError, match=rf"index\.scatter: .* returns {found}, and not an index, an integer\."):
        ix.scatter(3, X, index)


COMPUTED = [
    lambda i: i, lambda i: 2 * i - 1, lambda i: i - i + 3, lambda i: i // 2, lambda i: i**2, lambda i: abs(i),
    lambda i: i / 3, lambda i: 1 / (i + 1), lambda i: 0.5 * i, lambda i: tnp.sqrt(i), lambda i: tnp.cos(i),
    lambda i: i * tnp.float32(1), lambda i: i + tnp.int8(1), lambda i: tl.jit(lambda: (i + 3) // 2)(),
]  # fmt: skip


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("f", COMPUTED)
def test_an_index_is_an_integer_of_the_default_width(f, bits: int):
    """What is computed of an index has the type, and the digits, of what is computed of `arange`."""
    with tl.enable_x64(bits == 64):
        expected = tl.vmap(f)(tnp.arange(4))
        for found in (ix.build(4, f), ix.scan(lambda c, i: (c, f(i)), 0, 4)[1]):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


# ---- arrays of positions -----------------------------------------------------------------------------------------

TABLE = np.arange(12.0).reshape(3, 4)
AT_ARRAYS = {
    "of an index": (lambda x, i: x[tnp.arange(3) - 1 + i], lambda i: [X[k - 1 + i] if k + i else 0 for k in range(3)]),
    "of numbers": (lambda x, i: x[tnp.array([-1, 7, 5])] + i, lambda i: [i, i, 6 + i]),
    "along the second axis": (
        lambda x, i: tnp.asarray(TABLE)[1:, tnp.arange(2) + i + 1],
        lambda i: [[TABLE[r, c] if c < 4 else 0 for c in (i + 1, i + 2)] for r in (1, 2)],
    ),
    "along both axes": (
        lambda x, i: tnp.asarray(TABLE)[tnp.arange(2) + i - 1, tnp.arange(2)],
        lambda i: [TABLE[k + i - 1, k] if k + i else 0 for k in range(2)],
    ),
    "of truth values": (
        lambda x, i: (x > 2)[tnp.arange(2) - i],
        lambda i: [k >= i and X[k - i] > 2 for k in range(2)],
    ),
}


@pytest.mark.parametrize("name", AT_ARRAYS)
def test_outside_of_an_array_is_zero_at_arrays_of_positions(name: str):
    body, element = AT_ARRAYS[name]
    x, expected = tnp.asarray(X), np.array([element(i) for i in range(3)])
    for f in (lambda: ix.build(3, lambda i: body(x, i)), lambda: ix.scan(lambda c, i: (c, body(x, i)), 0, 3)[1]):
        np.testing.assert_array_equal(f(), expected)
        np.testing.assert_array_equal(tl.jit(f)(), expected)


def test_gradient_at_arrays_of_positions():
    f = lambda x: ix.sum(3, lambda i: x[tnp.arange(3) - 1 + i].sum())  # noqa: E731
    np.testing.assert_array_equal(tl.grad(f)(tnp.asarray(X)), [2, 3, 2, 1, 0, 0])


def test_functions_of_ours_read_as_elsewhere_in_a_body():
    """What they wrap and clip is theirs: only what a body itself reads is total."""
    x = tnp.asarray(X)
    found = ix.build(2, lambda i: tnp.roll(x, i + 1)[0] + tnp.take(x, tnp.array([-1]), mode="wrap")[0])
    np.testing.assert_array_equal(found, [12, 11])


def test_numbers_outside_in_a_list_are_an_error():
    for index in ([-1, 0], np.array([0, 6])):
        with pytest.raises(IndexError, match=r"index (-1|6) is out of bounds for axis 0 with size 6"):
            ix.build(2, lambda i, index=index: tnp.asarray(X)[index] * i)


def test_an_array_beside_an_index():
    with pytest.raises(TypeError, match=r"axis 1 of float\d+\[3,4\] is read by an array of type int32\[2\] beside an"):
        ix.build(2, lambda i: tnp.asarray(TABLE)[i, tnp.arange(2)])
