"""Shaping, joining, padding, creating and structured matrices: what rows of tests/numpy_agreement do not say."""

import math
import re

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.float32)


ENDS = [(0, 10, 4), (-3, 3, 4), (-30, 105, 28), (1, 1000, 4), (0, 2**24 + 1, 2), (7, -30, 12)]


@pytest.mark.parametrize(("start", "stop", "num"), ENDS)
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("bits", [32, 64])
def test_linear_ranges_of_integers_are_exact(start, stop, num, endpoint, bits):
    """Quotients of Python's integers, rounded down."""
    gaps = num - 1 if endpoint else num
    expected = [(start * gaps + (stop - start) * i) // gaps for i in range(num)]
    with tl.config.scope(default_bits=bits):
        assert tnp.linspace(start, stop, num, endpoint, dtype=int).tolist() == expected


@pytest.mark.parametrize(("base", "power"), [(2, 8), (10, 3), (3, 12), (-1, 5)])
@pytest.mark.parametrize("bits", [32, 64])
def test_geometric_ranges_of_integers_are_exact(base, power, bits):
    """Whole powers are not rounded down by a rounding error of the logarithm."""
    powers = [abs(base) ** i for i in range(power + 1)]
    sign, last = (1 if base > 0 else -1), max(powers)
    with tl.config.scope(default_bits=bits):
        assert tnp.geomspace(sign, sign * last, power + 1, dtype=int).tolist() == [sign * v for v in powers]
        assert tnp.logspace(0, power, power + 1, base=abs(base), dtype=int).tolist() == powers


def test_geometric_ranges_have_their_ends():
    found = tnp.geomspace(np.array([1.0, -3.0]), np.array([1000.0, -7.0]), 5)
    assert found[0].tolist() == [1.0, -3.0] and found[-1].tolist() == [1000.0, -7.0]


@pytest.mark.parametrize(("dtype", "expected"), [(None, "float32"), (int, "float32"), ("float16", "float16")])
def test_the_step_of_a_range_is_strongly_typed(dtype, expected):
    step = tnp.linspace(0, 5, 5, retstep=True, dtype=dtype)[1]
    assert (step.dtype, step.weak_type, float(step)) == (expected, False, 1.25)


def test_ranges_of_64_bits_from_numbers_of_32():
    with tl.config.scope(numpy_bits=32):
        assert float(tnp.linspace(0, 1, 4, dtype=np.float64)[1]) == 1 / 3


def check(actual, expected):
    if isinstance(expected, int):
        assert actual == expected
        return
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            check(ours, theirs)
        return
    assert actual.shape == expected.shape
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=2e-6)  # ranges are computed in float32


def test_ramps_of_64_bits_are_exact():
    """NumPy's are rounded to float64."""
    most = 2**64 - 1
    found = tnp.pad(np.array([most, 0], np.uint64), 3, "linear_ramp", end_values=(0, 7))
    assert found.tolist() == [0, most // 3, 2 * (most // 3), most, 0, 2, 4, 7]


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
    assert tnp.mgrid[()].shape == np.mgrid[()].shape == (0,)
    expected = M.copy()
    np.put_along_axis(expected, np.array([[1], [0], [3]]), 9, 1)
    check(tnp.put_along_axis(M, np.array([[1], [0], [3]]), 9, 1, inplace=False), expected)


def test_shapes_and_ends_that_are_arrays():
    """A shape may be an integer array of rank 0; ends of a range are broadcast."""
    assert tnp.zeros(np.array(4)).shape == tnp.full(tnp.array(4), 1.5).shape == (4,)
    with raises(TypeError, "zeros: shape must be a sequence of integers, not (array(1.5),)."):
        tnp.zeros(np.array(1.5))
    low, high = np.array([1, 2], np.float32), np.array([[3], [4]], np.float32)
    check(tnp.linspace(low, high, 3, retstep=True), np.linspace(low, high, 3, retstep=True))
    check(tnp.geomspace(low, high, 3, axis=1), np.geomspace(low, high, 3, axis=1))
    for num, endpoint in [(0, True), (0, False), (1, True), (1, False)]:
        steps = [f(0, 1, num, endpoint, retstep=True)[1] for f in (tnp.linspace, np.linspace)]
        np.testing.assert_array_equal(*steps)


def test_traced_shift():
    check(tl.jit(lambda x, n: tnp.roll(x, n))(V, 2), np.roll(V, 2))
    check(tl.jit(lambda x, n: tnp.roll(x, n, (0, 2)))(X, np.array([1, -2])), np.roll(X, (1, -2), (0, 2)))


def test_traced_insertions():
    """Repeated, narrow and unsigned positions; those outside are moved to the ends."""
    for axis, places, values in [
        (0, np.array([3, 0, 3, -1], np.int8), np.float32(9)),
        (1, np.array([4, 1, 1], np.uint8), V[:3]),
        (1, np.int32(-2), V[:3]),
        (None, np.array([5]), V),
    ]:
        found = tl.jit(lambda x, i, v, axis=axis: tnp.insert(x, i, v, axis))(M, places, values)
        check(found, np.insert(M, places.astype(np.int64), values, axis))
    check(tl.jit(lambda i: tnp.insert(V, i, V[:1]))(77), np.append(V, V[:1]))


def test_positions_of_flat_positions():
    """Of a narrow dtype, negative, outside; and back."""
    places = np.array([200, 3, 255], np.uint8)
    for f in (tnp.unravel_index, tl.jit(tnp.unravel_index, static_argnums=1)):
        check(f(places, (20, 30)), np.unravel_index(places, (20, 30)))
        check(f(places, (2, 600)), np.unravel_index(places, (2, 600)))
        check(f(np.array([-1, -7, 99, -99]), (2, 3)), ([1, 0, 1, 0], [2, 0, 2, 0]))
    assert tnp.unravel_index(places, (20, 30))[0].dtype == np.uint8
    rows, columns = np.array([3, 19, 0], np.uint8), np.array([29, 0, 1], np.int8)
    for order in "CF":
        expected = np.ravel_multi_index((rows, columns), (20, 30), order=order)
        check(tnp.ravel_multi_index((rows, columns), (20, 30), order=order), expected)
    for mode in ("clip", "wrap"):
        found = tl.jit(lambda *p, mode=mode: tnp.ravel_multi_index(p, (5, 300), mode))(rows, columns)
        check(found, np.ravel_multi_index((rows, columns), (5, 300), mode))


def test_copies_survive_the_donation_of_what_they_copy():
    add = tl.jit(lambda x: x + 1, donate_argnums=0)
    for copied in (
        tnp.array,
        lambda x: tnp.asarray(x, copy=True),
        lambda x: x.copy(),
        lambda x: tnp.astype(x, x.dtype, copy=True),
        lambda x: tnp.array(x, np.float32),
        tl.jit(tnp.array),
    ):
        x = tnp.asarray(V)
        found = copied(x)
        add(x)
        np.testing.assert_array_equal(found, V)
    with raises(ValueError, "asarray: [1] becomes an array only by a copy, which copy=False forbids."):
        tnp.asarray([1], copy=False)


# ---- view ----------------------------------------------------------------------------------------------------

VIEWS = "bool int8 uint8 int16 float16 int32 uint32 float32 int64 float64 complex64 complex128".split()


@pytest.mark.parametrize("old", VIEWS)
def test_views(old):
    """One program of all types that the last axis divides into."""
    x = (np.arange(32).reshape(2, 16) % 2).astype(old)
    wanted = [d for d in VIEWS if d != "bool" or old in ("bool", "int8", "uint8")]
    found = tl.jit(lambda x: [x.view(d) for d in wanted])(x)
    for y, dtype in zip(found, wanted, strict=True):
        expected = x.view(dtype)
        assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(np.asarray(y).view(np.uint8), expected.view(np.uint8))
    assert tnp.asarray(x[0, 0]).view(wanted[-1] if x.itemsize == 16 else old).shape == ()


def test_views_that_are_none():
    with raises(ValueError, "view: the last axis of int16[2,3] has 6 bytes, which do not make elements of int32."):
        tnp.ones((2, 3), np.int16).view(np.int32)
    message = "view: int16[] has no axis that its elements of 2 bytes could be divided along, or joined."
    with raises(ValueError, message):
        tnp.ones((), np.int16).view(np.int8)
    with raises(TypeError, "view: int8[4] as int4: a type of less than a byte cannot be viewed as another."):
        tnp.ones(4, np.int8).view("int4")


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


def test_masked_arrays_do_not_lose_their_masks():
    masked = np.ma.masked_array([1, 2, 3], [False, True, False])
    lost = "A masked array would lose its mask: fill it, x.filled(value), or pass x.data and x.mask apart."
    refusing = [tnp.array, tnp.asarray, tnp.sum, tl.jit(tnp.sum), tl.device_put]
    for f in (*refusing, lambda x: tnp.ones(3) + x, lambda x: x + tnp.ones(3)):
        for bits in (64, 32):
            with tl.config.scope(numpy_bits=bits), pytest.raises(TypeError, match=re.escape(lost)):
                f(masked)
    with pytest.raises(TypeError, match="in a list is not a number or an array"):
        tnp.array([1, masked[1]])
    np.testing.assert_array_equal(tnp.array(masked.filled(0)), [1, 0, 3])


def test_masked_arrays_do_not_lose_their_masks_as_positions():
    x, masked = tnp.arange(3.0), np.ma.masked_array([0, 1, 2], [False, True, False])
    advice = "\n  A masked array would lose its mask: fill it, x.filled(value), or pass x.data and x.mask apart."
    for index in (masked, [masked], (masked,), masked > 0, np.ma.masked):
        with raises(TypeError, "an index is a masked array." + advice):
            x[index]
    with raises(TypeError, "an index is a masked array." + advice):
        x.at[masked].set(1.0)
    for f in (tnp.delete, tnp.repeat, lambda x, i: tnp.insert(x, i, 1.0), lambda x, i: tnp.compress(i, x)):
        with pytest.raises(TypeError, match=re.escape(": an argument is a masked array." + advice)):
            f(x, masked)
    with raises(TypeError, "array_split: indices_or_sections is a masked array." + advice):
        tnp.split(x, masked)


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
            "broadcast_to: shape (3,) does not broadcast to (2,4).",
        ),
        (lambda: tnp.array([[1], [1, 2]]), ValueError, "array: the parts of a list differ in shape"),
        (lambda: tnp.array("abc"), TypeError, "array: 'abc' of type str is not an array"),
        (lambda: tl.jit(tnp.arange)(3), TypeError, "arange: the arguments say how long the result is"),
        (lambda: tnp.pad(tnp.ones(2), 1, mode="x"), ValueError, "pad: mode must be one of constant, empty, edge"),
        (lambda: tnp.pad(tnp.ones(2), 1.5), TypeError, "pad: widths must be integers, not 1.5."),
        (lambda: tnp.pad(tnp.ones(2), 1, "edge", stat_length=1), ValueError, "pad: mode 'edge' takes no stat_length."),
        (
            lambda: tnp.insert(tnp.ones(2), 3, 1),
            IndexError,
            "insert: position 3 is out of bounds for axis 0 of float32[2]",
        ),
        (lambda: tnp.insert(V, [0, 1], V[:3]), ValueError, "insert: values float32[3] do not broadcast to (2,)"),
        (lambda: tnp.insert(V, 0.5, 1), TypeError, "insert: positions must be integers, a slice or a mask, not 0.5."),
        (lambda: tnp.roll(V, 1.5), TypeError, "roll: a shift must be an integer, not 1.5."),
        (lambda: tnp.roll(X, (1, 2, 3), (0, 1)), ValueError, "roll: 3 shifts for 2 axes."),
        (lambda: tnp.trim_zeros(V, "x"), ValueError, "trim_zeros: trim must be 'f', 'b' or 'fb', not 'x'."),
        (lambda: tnp.arange(3j), TypeError, "arange: the arguments must be real numbers, not 3j."),
        (lambda: tnp.arange(V), TypeError, "arange: the arguments must be real numbers, not float32[5]."),
        (lambda: tnp.linalg.pinv(M, 1j), TypeError, "pinv: rtol must be real, not"),
        (lambda: tnp.unravel_index(V, 3), TypeError, "unravel_index: indices must be integers, not float32[5]."),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("error", [ValueError, IndexError, tl.errors.AxisError])
def test_missing_axes_are_errors_of_values_and_of_indices(error):
    """As in NumPy; the array API standard asks expand_dims for an IndexError."""
    for call in (tnp.expand_dims, tnp.sum, tnp.flip, tnp.sort, tnp.unstack):
        with pytest.raises(error):
            call(M, axis=3)


@pytest.mark.parametrize("number", [0, -1, np.int64(0)])
def test_what_cannot_be_cut(number):
    for cut in (tnp.split, tnp.array_split):
        with pytest.raises(ValueError, match=f"^{cut.__name__}: an array is cut into 1 part or more, not {number}\\.$"):
            cut(tnp.ones(4), number)
    assert len(tnp.array_split(tnp.ones(4), np.int64(3))) == 3


@pytest.mark.parametrize("six", [np.int64(6), np.uint8(6), np.array(6), tnp.asarray(np.array(6))])
def test_a_length_is_a_number_or_an_array_without_axes(six):
    x = tnp.arange(6.0)
    for y in (x.reshape(six), tnp.reshape(x, six), tnp.resize(x, six), tl.lax.reshape(x, six)):
        assert y.tolist() == [0, 1, 2, 3, 4, 5]
    assert tnp.broadcast_to(2.0, six).tolist() == tnp.full(six, 2.0).tolist() == tnp.tile(2.0, six).tolist() == [2] * 6


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


def joined(lib):
    x, m = np.arange(3.0), np.arange(6.0).reshape(2, 3)
    r, c = lib.r_, lib.c_
    yield from (
        r[1:4, 0, x],
        r[0:1:3j, 2],
        r[m, m],
        r["1", m, m],
        r["0,2", x, x],
        r["0,2,0", x, x],
        r["1,3,1", x, x],
        r["0,3,1", m, m],
        r["r", 1, x],
        r["c", x, x],
        r["c", m, m],
    )
    yield from (c[x, x], c[m, m], c[0:3, x], c[np.array([[1, 2, 3]]), 0, 0, np.array([[4, 5, 6]])], r[5])
    yield from (c["r", x, x], c["c", x, x])


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_arrays_by_ranges():
    for ours, theirs in zip(joined(tnp), joined(np), strict=True):
        np.testing.assert_allclose(ours, theirs)
        assert ours.dtype in (np.float32, np.int32, theirs.dtype)
    with pytest.raises(ValueError, match=r"r_: 'rows' is neither 'r', 'c' nor 'axis,ndim,place', integers."):
        _ = tnp.r_["rows", 1, 2]


def filled(row, widths, axis, kwargs):
    before, after = widths
    row = row.at[:before].set(kwargs["value"] + axis)
    return row.at[len(row) - after :].set(-1)


def filled_in_place(row, widths, axis, kwargs):
    row[: widths[0]], row[len(row) - widths[1] :] = kwargs["value"] + axis, -1


@pytest.mark.parametrize(("shape", "widths"), [((3,), 2), ((2, 3), ((1, 0), (0, 2))), ((2, 2, 2), 1)])
def test_margins_by_a_function(shape, widths):
    x = np.arange(math.prod(shape)).reshape(shape)
    found = tl.jit(lambda x: tnp.pad(x, widths, filled, value=7))(x)
    np.testing.assert_array_equal(found, np.pad(x, widths, filled_in_place, value=7))
    with pytest.raises(ValueError, match=r"made int64\[2\] of int64\[5\]: it must return each vector, filled."):
        tnp.pad(np.arange(3), 1, lambda *args: np.arange(2))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64", "complex64", "bfloat16"])
def test_bytes_in_the_other_order(dtype):
    x = np.arange(6).reshape(2, 3).astype(tnp.dtype(dtype))
    found = tl.jit(lambda x: x.byteswap())(x)
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), x.byteswap().view(np.uint8))
    np.testing.assert_array_equal(found.byteswap(), x)


def test_calls_as_of_pytorch_say_what_to_write():
    x = tnp.asarray(X)
    with raises(TypeError, "view: 6, -1 is not a dtype. It reads the bytes as another dtype; write x.reshape(6, -1)."):
        x.view(6, -1)  # pyright: ignore[reportCallIssue]  # which is the test
    with raises(TypeError, "view: -1 is not a dtype. It reads the bytes as another dtype; write x.reshape(-1)."):
        x.view(-1)
    with raises(
        ValueError,
        "reshape: order must be 'C' or 'F', not 1.\n  To flatten from axis 1 on, write x.reshape(*x.shape[:1], -1).",
    ):
        x.flatten(1)  # pyright: ignore[reportArgumentType]  # which is the test
    with raises(
        ValueError,
        "transpose: (0, -1) is not a permutation of the 3 axes of float32[2,3,4].\n"
        "  To exchange two axes, write swapaxes(x, 0, 2).",
    ):
        x.transpose(0, -1)
