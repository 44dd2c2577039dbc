"""Shaping, joining, padding, creating and structured matrices against NumPy: one row per call."""

import re

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.float32)

ROWS = [
    ("reshape", (X, (4, -1)), {}),
    ("reshape", (X, (4, 6)), {"order": "F"}),
    ("ravel", (X,), {}),
    ("ravel", (X,), {"order": "F"}),
    ("transpose", (X,), {}),
    ("transpose", (X, (1, 0, 2)), {}),
    ("swapaxes", (X, 0, -1), {}),
    ("moveaxis", (X, (0, 1), (-1, 0)), {}),
    ("rollaxis", (X, 2, 1), {}),
    ("expand_dims", (X, (0, -1)), {}),
    ("squeeze", (X[:1, None],), {}),
    ("squeeze", (X[:1, None], 1), {}),
    ("broadcast_to", (M[:, :1], (2, 3, 4)), {}),
    ("atleast_1d", (np.float32(1),), {}),
    ("atleast_2d", (V,), {}),
    ("atleast_3d", (V,), {}),
    ("atleast_3d", (M,), {}),
    ("flip", (X,), {}),
    ("flip", (X, (0, 2)), {}),
    ("fliplr", (M,), {}),
    ("flipud", (M,), {}),
    ("rot90", (M,), {}),
    ("rot90", (X, 3, (1, 2)), {}),
    ("rot90", (X, 2), {}),
    ("roll", (X, 5), {}),
    ("roll", (X, (1, -2), (0, 2)), {}),
    ("concatenate", ([M, M[:1]],), {}),
    ("concatenate", ([M, V],), {"axis": None}),
    ("stack", ([M, M],), {"axis": -1}),
    ("vstack", ([V, V],), {}),
    ("hstack", ([V, V],), {}),
    ("hstack", ([M, M],), {}),
    ("dstack", ([V, V],), {}),
    ("column_stack", ([V, V],), {}),
    ("block", ([[M, M], [M, M]],), {}),
    ("split", (M, 2, 1), {}),
    ("split", (V, [1, 3]), {}),
    ("split", (V, [1, 9]), {}),
    ("array_split", (V, 3), {}),
    ("hsplit", (M, 2), {}),
    ("vsplit", (M, 3), {}),
    ("dsplit", (X, 2), {}),
    ("tile", (M, (2, 1, 3)), {}),
    ("tile", (X, 2), {}),
    ("repeat", (M, 2), {}),
    ("repeat", (M, 3, 1), {}),
    ("repeat", (M, np.array([1, 0, 2]), 0), {}),
    ("append", (M, M, 0), {}),
    ("append", (M, V), {}),
    ("insert", (M, 1, V[:4], 0), {}),
    ("insert", (V, 2, np.float32(9)), {}),
    ("delete", (M, 1, 0), {}),
    ("delete", (V, [0, -1]), {}),
    ("resize", (M, (2, 7)), {}),
    ("trim_zeros", (np.array([0, 0, 1, 2, 0], np.float32),), {}),
    ("pad", (M, 1), {}),
    ("pad", (M, ((1, 2), (0, 3))), {"constant_values": 5}),
    ("pad", (M, ((1, 2), (0, 3))), {"constant_values": ((1, 2), (3, 4))}),
    *(("pad", (M, ((1, 2), (0, 3))), {"mode": m}) for m in "edge reflect symmetric wrap maximum minimum mean".split()),
    ("pad", (V, (3, 4)), {"mode": "linear_ramp", "end_values": (5, -4)}),
    ("pad", (V, (9, 9)), {"mode": "reflect"}),
    ("diag", (V,), {}),
    ("diag", (V, -2), {}),
    ("diag", (M, 1), {}),
    ("diagflat", (M, 1), {}),
    ("diagonal", (X, 1, 2, 0), {}),
    ("diagonal", (M, -1), {}),
    ("diagonal", (M, 9), {}),
    ("trace", (X, 1), {}),
    ("tril", (X, 1), {}),
    ("triu", (X, -1), {}),
    ("vander", (V,), {}),
    ("vander", (V, 3, True), {}),
    ("take", (X, np.array([[1, 0], [-1, 2]]), 1), {}),
    ("compress", (np.array([True, False, True]), M, 0), {}),
    ("extract", (M > 3, M), {}),
    ("unstack", (M,), {"axis": 1}),
]
CREATED = [
    ("zeros", ((2, 3),), {}),
    ("ones", (3, np.int32), {}),
    ("full", ((2, 2), 7.0), {}),
    ("eye", (3, 4, 1), {}),
    ("identity", (3,), {}),
    ("tri", (3, 4, -1), {}),
    ("arange", (5,), {}),
    ("arange", (2, 9, 3), {}),
    ("arange", (0.0, 1.0, 0.3), {}),
    ("arange", (5, 0, -2), {}),
    ("linspace", (0, 1, 5), {}),
    ("linspace", (-1.0, 2.0, 7), {"endpoint": False}),
    ("linspace", (V, 2 * V, 3), {"axis": 1}),
    ("linspace", (3.0, 4.0, 1), {}),
    ("linspace", (0, 10, 4), {"dtype": np.int32}),
    ("logspace", (0, 2, 4), {}),
    ("geomspace", (1.0, 100.0, 5), {}),
    ("geomspace", (-1.0, -100.0, 5), {}),
    ("indices", ((2, 3),), {}),
    ("meshgrid", (V, V[:2]), {}),
    ("meshgrid", (V, V[:2], V[:3]), {"indexing": "ij"}),
    ("meshgrid", (V, V[:2]), {"sparse": True}),
    ("tril_indices", (4, 1), {}),
    ("zeros_like", (M,), {}),
    ("ix_", (np.array([0, 2]), np.array([1, 3])), {}),
    ("unravel_index", (np.array([5, 11]), (3, 4)), {}),
    ("ravel_multi_index", ((np.array([1, 2]), np.array([1, 3])), (3, 4)), {}),
    ("ravel_multi_index", ((np.array([1, 5]), np.array([-1, 3])), (3, 4)), {"mode": "wrap"}),
    ("ravel_multi_index", ((np.array([1, 5]), np.array([-1, 3])), (3, 4)), {"mode": "clip"}),
    ("hanning", (5,), {}),
    ("kaiser", (5, 2.0), {}),
    ("triu_indices_from", (M,), {}),
    ("full_like", (M, 3), {}),
    ("ones_like", (M,), {"dtype": np.int8}),
]


def check(actual, expected):
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            check(ours, theirs)
        return
    assert actual.shape == expected.shape
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6)  # ranges are computed in float32


@pytest.mark.parametrize(("name", "args", "kwargs"), ROWS + CREATED, ids=lambda v: v if isinstance(v, str) else "")
def test_like_numpy(name, args, kwargs):
    check(getattr(tnp, name)(*args, **kwargs), getattr(np, name)(*args, **kwargs))


@pytest.mark.parametrize(("name", "args", "kwargs"), ROWS, ids=lambda v: v if isinstance(v, str) else "")
def test_traced(name, args, kwargs):
    first, *rest = args
    if name in ("compress", "extract", "trim_zeros"):
        return  # they depend on the elements
    found = tl.jit(lambda x: getattr(tnp, name)(x, *rest, **kwargs))(first)
    check(found, getattr(np, name)(*args, **kwargs))


@given(hnp.array_shapes(min_dims=1, max_dims=3, max_side=5), st.data())
@settings(max_examples=30, deadline=None)
def test_roll_and_repeat(shape, data):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    axis, shift = data.draw(st.integers(-len(shape), len(shape) - 1)), data.draw(st.integers(-9, 9))
    check(tnp.roll(x, shift, axis), np.roll(x, shift, axis))
    counts = data.draw(hnp.arrays(np.int32, shape[axis], elements=st.integers(0, 3)))
    check(tnp.repeat(x, counts, axis), np.repeat(x, counts, axis))
    total = int(counts.sum())
    if total:
        check(
            tl.jit(lambda x, n: tnp.repeat(x, n, axis, total_repeat_length=total))(x, counts),
            np.repeat(x, counts, axis),
        )


def test_grids():
    check(tnp.mgrid[0:3, 0:1:5j], np.mgrid[0:3, 0:1:5j])
    check(tnp.ogrid[0:3, 1:5:2], np.ogrid[0:3, 1:5:2])
    expected = M.copy()
    np.put_along_axis(expected, np.array([[1], [0], [3]]), 9, 1)
    check(tnp.put_along_axis(M, np.array([[1], [0], [3]]), 9, 1, inplace=False), expected)


def test_traced_shift():
    check(tl.jit(lambda x, n: tnp.roll(x, n))(V, 2), np.roll(V, 2))


# ---- array ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "weak"),
    [
        (1, "int32", True),
        (1.5, "float32", True),
        (1j, "complex64", True),
        (True, "bool", False),
        ([1, 2], "int32", False),
        ([1, 2.0], "float32", False),
        ([], "float32", False),
        ([True], "bool", False),
        ([[1j]], "complex64", False),
        (np.zeros(2), "float64", False),
        ([np.float64(1), 2], "float64", False),
        ([np.zeros(2), np.ones(2)], "float64", False),
        (np.int64(1), "int64", True),
        (range(0), np.float32, False),
    ],
    ids=repr,
)
def test_dtype_of_array(value, dtype, weak):
    if dtype is None:
        with pytest.raises(TypeError, match=r"array: "):
            tnp.array(value)
        return
    x = tnp.array(value)
    assert (x.dtype, x.weak_type, x.shape) == (dtype, weak, np.shape(value))
    np.testing.assert_array_equal(x, value)


def test_arrays_of_arrays():
    x = tnp.ones(2)
    np.testing.assert_array_equal(tnp.array([x, 2 * x]), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(tl.jit(lambda x: tnp.array([x[0], 3, [x[1]][0]]))(x), [1, 3, 1])
    assert tnp.array([x[0], 1]).dtype == np.float32
    assert tnp.array(x, ndmin=3).shape == (1, 1, 2)
    assert tnp.asarray(x) is x


def test_integers_that_do_not_fit():
    with pytest.raises(OverflowError):
        tnp.array([2**40])
    with pytest.raises(OverflowError):
        tnp.array(300, "int8")
    assert tnp.array([2**40], "int64")[0] == 2**40


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tnp.reshape(tnp.ones((2, 3)), (4, 2)),
            ValueError,
            "reshape: float32[2,3] has 6 elements, an array of shape (4, 2)",
        ),
        (
            lambda: tnp.reshape(tnp.ones((2, 3)), (4, -1)),
            ValueError,
            "reshape: float32[2,3] has 6 elements, which do not make",
        ),
        (lambda: tnp.concatenate([tnp.ones((2, 3)), tnp.ones((2, 4))]), ValueError, "float32[2,3], float32[2,4]"),
        (
            lambda: tnp.stack([tnp.ones(2), tnp.ones(3)]),
            ValueError,
            "stack: arrays must have the same shape: float32[2], float32[3]",
        ),
        (lambda: tnp.concatenate([]), ValueError, "concatenate: at least one array is needed."),
        (lambda: tnp.squeeze(tnp.ones((2, 1)), 0), ValueError, "squeeze: axis 0 of float32[2,1] has length 2, not 1."),
        (
            lambda: tnp.split(tnp.ones(5), 2),
            ValueError,
            "split: axis 0 of float32[5] does not divide into 2 equal parts.",
        ),
        (
            lambda: tnp.broadcast_to(tnp.ones(3), (2, 4)),
            ValueError,
            "broadcast_to: shape (3) does not broadcast to (2,4).",
        ),
        (lambda: tnp.array([[1], [1, 2]]), ValueError, "array: the parts of a list differ in shape"),
        (lambda: tnp.array("abc"), TypeError, "array: 'abc' of type str is not an array"),
        (lambda: tl.jit(tnp.arange)(3), TypeError, "arange: the arguments say how long the result is"),
        (lambda: tnp.pad(tnp.ones(2), 1, mode="x"), ValueError, "pad: mode must be one of constant, empty, edge"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("number", [0, -1, np.int64(0)])
def test_what_cannot_be_cut(number):
    for cut in (tnp.split, tnp.array_split):
        with pytest.raises(ValueError, match=f"^{cut.__name__}: an array is cut into 1 part or more, not {number}\\.$"):
            cut(tnp.ones(4), number)
    assert len(tnp.array_split(tnp.ones(4), np.int64(3))) == 3


def test_tiles_of_negative_number():
    with pytest.raises(ValueError, match=r"^tile: reps must not be negative, but are \(2, -1\)\.$"):
        tnp.tile(tnp.ones(3), (2, -1))
    with pytest.raises(ValueError, match=r"^tile: reps must not be negative, but are -1\.$"):
        tnp.tile(tnp.ones(3), -1)
    assert tnp.tile(tnp.ones(3), ()).shape == (3,)


def test_arrays_of_ranges():
    assert tnp.array(range(3)).tolist() == [0, 1, 2] and tnp.array(range(3)).dtype == np.int32
    assert tnp.array(range(0)).shape == (0,)
    assert tnp.asarray([range(2), range(2)], float).tolist() == [[0, 1], [0, 1]]
