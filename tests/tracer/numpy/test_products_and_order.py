"""Products, sorting, searching, sets, calculus, operators, methods: what rows of tests/numpy_agreement do not say."""

import re

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises, text_of

pytestmark = pytest.mark.usefixtures("eager_by_steps")

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # sums in float32 in another order


@pytest.fixture
def f(rng):
    """A function that draws arrays of a shape, by a test's own generator."""
    return lambda *shape: rng.normal(size=shape).astype(np.float32)


def check(actual, expected, **tolerance):
    if isinstance(expected, (tuple, list)):
        for ours, theirs in zip(actual, expected, strict=True):
            check(ours, theirs, **tolerance)
        return
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(actual), expected, **(tolerance or CLOSE))


# ---- products ------------------------------------------------------------------------------------------------

OF_BOOLEANS = ["i,j->ij", ",ij->ij", "i,i->i", "ij,k->i", ",ij->j", "ij->", "ii,j->", "ij,jk->ik", "ijk,i->k", "i,->i"]


@pytest.mark.parametrize("subscripts", OF_BOOLEANS)
def test_einsum_of_booleans(subscripts, rng):
    """A sum is "or", and a product is "and", also where nothing, or one operand alone, is summed."""
    xs = [rng.random((2,) * len(labels)) < 0.6 for labels in subscripts.split("->")[0].split(",")]
    expected = np.einsum(subscripts, *xs)
    for found in (tnp.einsum(subscripts, *xs), tl.jit(lambda *xs: tnp.einsum(subscripts, *xs))(*xs)):
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("subscripts", ["ij->i", "ij->", "ij,k->", "ij,i->i", "ij,jk,kl->il", "ij,ij->", ",i->i"])
@pytest.mark.parametrize("wanted", [np.int32, np.float32, np.int16])
def test_einsum_sums_in_the_preferred_dtype(subscripts, wanted):
    xs = [np.full((3,) * len(labels), 20, np.int8) for labels in subscripts.split("->")[0].split(",")]
    found = tnp.einsum(subscripts, *xs, preferred_element_type=wanted)
    assert found.dtype == wanted
    np.testing.assert_array_equal(found, np.einsum(subscripts, *xs, dtype=np.int64).astype(wanted))


def test_einsum_of_three_with_a_preferred_dtype_under_strict_promotion():
    x = tnp.full((3, 3), 0.5, tnp.bfloat16)
    with tl.numpy_dtype_promotion("strict"):
        found = tnp.einsum("ij,jk,kl->il", x, x, x, preferred_element_type=np.float32)
    assert found.dtype == np.float32 and float(found[0, 0]) == 9 / 8
    assert tnp.einsum("ij,jk->ik", found, found, preferred_element_type=tnp.bfloat16).dtype == tnp.bfloat16


@pytest.mark.parametrize("product", [tnp.dot, tnp.inner, lambda x, y, **options: tnp.tensordot(x, y, 0, **options)])
@pytest.mark.parametrize("x", [np.int8(100), np.full((2, 3), 100, np.int8)], ids=str)
def test_products_with_a_scalar_have_the_preferred_dtype(product, x):
    found = product(tnp.asarray(x), tnp.asarray(np.int8(9)), preferred_element_type=np.int32)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.asarray(x, np.int32) * 9)


def test_einsum_names_what_is_wrong_with_the_result(f):
    with raises(ValueError, "einsum: index 'l' of the result of 'ij,jk->il' is in no operand."):
        tnp.einsum("ij,jk->il", f(2, 3), f(3, 4))
    with raises(ValueError, "einsum: index 'i' of the result of 'ij->ii' is there more than once."):
        tnp.einsum("ij->ii", f(2, 3))


def test_einsum_of_lists(f):
    x, y = f(2, 3), f(3, 4)
    check(tnp.einsum(x, [0, 1], y, [1, 2], [0, 2]), x @ y)
    check(tnp.einsum(x, [0, ...], [..., 0]), x.T)


def test_products_take_what_libraries_for_jax_pass(f):
    x, y = f(2, 3), f(3, 4)

    def doubled(*args, **kwargs):
        return 2 * tl.lax.dot_general(*args, **kwargs)

    for dot_general, factor in ((None, 1), (tl.lax.dot_general, 1), (doubled, 2)):
        check(tnp.einsum("ij,jk->ki", x, y, _dot_general=dot_general, out_sharding=None), factor * (x @ y).T)
    with raises(TypeError, "einsum: _dot_general must be a function, not 3."):
        tnp.einsum("ij,jk->ki", x, y, _dot_general=3)
    for name, axes in (("dot", ()), ("matmul", ()), ("tensordot", (1,))):
        product = getattr(tnp, name)
        check(product(x, y, *axes, out_sharding=None), x @ y)
        with raises(NotImplementedError, f"{name}: out_sharding='x' is not supported, only None."):
            product(x, y, *axes, out_sharding="x")
    with raises(NotImplementedError, "einsum: out_sharding='x' is not supported, only None."):
        tnp.einsum("ij,jk->ik", x, y, out_sharding="x")


def test_einsum_contracts_in_a_good_order():
    """(a b)(b c)(c) costs a matrix and two vectors, not two matrices."""
    shapes = [np.zeros(s, np.float32) for s in ((50, 60), (60, 70), (70,))]
    program = tl.make_jaxpr(lambda *xs: tnp.einsum("ab,bc,c->a", *xs))(*shapes)
    sizes = [eqn.outvars[0].aval.size for eqn in program.eqns]
    assert max(sizes) <= 60


# ---- order ---------------------------------------------------------------------------------------------------


@given(
    hnp.arrays(
        np.float32, hnp.array_shapes(max_dims=3, max_side=5), elements=st.sampled_from([0, 1, -2, 3.5, np.nan, np.inf])
    )
)
@settings(max_examples=30, deadline=None)
def test_sorting(x):
    check(tnp.sort(x), np.sort(x))
    check(tnp.sort(x, axis=0), np.sort(x, axis=0))
    check(tnp.argsort(x, axis=None), np.argsort(x, axis=None, kind="stable"))
    check(tnp.argsort(x, axis=0), np.argsort(x, axis=0, kind="stable"))
    check(tnp.unique(x), np.unique(x))


@given(
    hnp.arrays(np.float32, st.integers(0, 9), elements=st.sampled_from([0, 1, -2, 3.5, np.inf, np.nan])),
    hnp.arrays(np.float32, hnp.array_shapes(max_dims=2), elements=st.sampled_from([0, 0.5, -2, 4, np.inf, np.nan])),
    st.sampled_from(["left", "right"]),
)
@settings(max_examples=30, deadline=None)
def test_searchsorted(x, y, side):
    x = np.sort(x)
    check(tnp.searchsorted(x, y, side), np.searchsorted(x, y, side))


def test_other_orders(f):
    x, keys = np.array([3, 1, 2, 1], np.int32), [np.array([1, 2, 1, 0]), np.array([3, 1, 2, 1])]
    check(tnp.lexsort([tnp.asarray(k) for k in keys]), np.lexsort(keys))
    check(tnp.sort(x, descending=True), [3, 2, 1, 1])
    check(tnp.argsort(x, descending=True), [0, 2, 1, 3])
    check(tnp.digitize(f(5) * 3, np.array([-1.0, 0, 1], np.float32)).shape, (5,))
    bins = np.array([-1.0, 0.0, 1.0], np.float32)
    values = np.array([-2, -1, -0.5, 1, 2], np.float32)
    for right in (False, True):
        check(tnp.digitize(values, bins, right), np.digitize(values, bins, right))
        check(tnp.digitize(values, bins[::-1].copy(), right), np.digitize(values, bins[::-1], right))


def test_nonzero():
    x = np.array([[1, 0, 2], [0, 0, 3]])
    check(tnp.nonzero(x), np.nonzero(x))
    check(tnp.argwhere(x), np.argwhere(x))
    check(tnp.flatnonzero(x), np.flatnonzero(x))
    check(tnp.where(x > 1), np.where(x > 1))
    check(tl.jit(lambda x: tnp.nonzero(x, size=5, fill_value=-1))(x), ([0, 0, 1, -1, -1], [0, 2, 2, -1, -1]))
    check(tl.jit(lambda x, i: tnp.nonzero(x, size=4, fill_value=i))(x, 9), ([0, 0, 1, 9], [0, 2, 2, 9]))
    with pytest.raises(TypeError, match=r"nonzero: fill_value must be an integer, not float32\[\]."):
        tl.jit(lambda x, i: tnp.nonzero(x, size=4, fill_value=i))(x, 9.0)
    fills = tnp.nonzero(x, size=4, fill_value=np.array([7, 8]))
    check(fills, ([0, 0, 1, 7], [0, 2, 2, 8]))
    check(tl.jit(lambda x: tnp.argwhere(x, size=2))(x), [[0, 0], [0, 2]])
    with pytest.raises(TypeError, match=r"Give `size`"):
        tl.jit(tnp.nonzero)(x)


def test_counting(f):
    x = np.array([1, 3, 1, 0, 5])
    check(tnp.bincount(x), np.bincount(x))
    check(tnp.bincount(x, np.arange(5.0, dtype=np.float32), 9), np.bincount(x, np.arange(5.0), 9))
    check(tnp.bincount(x, np.arange(5) > 2), np.bincount(x, np.arange(5) > 2))
    check(tl.jit(lambda x: tnp.bincount(x, length=4))(x), [1, 2, 0, 1])
    check(tl.jit(lambda w: tnp.bincount(x, w))(np.arange(5.0)), [3, 2, 0, 1, 0, 4])  # the length is known
    y = f(100)
    check(tnp.histogram(y), np.histogram(y))
    check(tnp.histogram(y, 5, (-1, 1), density=True), np.histogram(y, 5, (-1, 1), density=True))
    check(tnp.histogram(y, np.array([-1, 0, 2], np.float32)), np.histogram(y, [-1, 0, 2]))


def test_interpolation():
    """With ends of its own, with the end lines, of complex values, and periodic."""
    x, xp, fp = np.linspace(-3, 9, 7), np.array([0.0, 1, 4, 5]), np.array([1, 3, 2 + 1j, -1])
    ramp = (fp[1] - fp[0]) * (x - xp[0]) + fp[0], (fp[3] - fp[2]) * (x - xp[3]) + fp[3]
    inside = np.interp(x, xp, fp)

    @tl.jit
    def found(x):
        return (
            tnp.interp(x, xp, fp),
            tnp.interp(x, xp, fp, left=7, right=8j),
            tnp.interp(x, xp, fp.real, "extrapolate"),
            tnp.interp(x, xp, fp, right="extrapolate"),
            tnp.interp(x, xp[[2, 0, 3, 1]] + 5, fp, period=-6.0),
        )

    expected = (
        inside,
        np.interp(x, xp, fp, left=7, right=8j),
        np.where(x < 0, ramp[0], inside).real,
        np.where(x > 5, ramp[1], inside),
        np.interp(x, xp[[2, 0, 3, 1]] + 5, fp, period=-6.0),
    )
    check(found(x), expected)
    with raises(ValueError, "interp: left must be a number or 'extrapolate', not 'x'."):
        tnp.interp(x, xp, fp, "x")
    with raises(
        TypeError, "interp: complex numbers have no order, so x and xp must be real: complex128[7], complex128[4]."
    ):
        tnp.interp(x + 1j, xp, fp)


def test_several_nans_of_half_precision():
    """There is one of them, however the elements are made."""
    for dtype in ("float16", "bfloat16", "float32", "complex64"):
        x = tnp.array([1, NAN, 3, NAN, 1]).astype(dtype)
        values, counts = tnp.unique(x, return_counts=True)
        assert values.dtype == dtype
        check(values.astype(np.complex64), [1, 3, NAN])
        check(counts, [2, 1, 2])
        check(tnp.unique_values(x).shape, (4,))
        check(tnp.union1d(x, x).astype(np.complex64), [1, 3, NAN])


def test_histograms_of_integers():
    """Edges that are integers are compared as such, and counts and densities are floating point all the same."""
    x, edges = np.array([2**24, 2**24 + 1, 2**24 + 1, 7]), np.array([0, 2**24 + 1, 2**24 + 3])
    for f in (tnp.histogram, tl.jit(tnp.histogram)):
        counts, borders = f(x, edges)
        np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])
        np.testing.assert_array_equal(borders, edges.astype(np.float64))
    check(
        tl.jit(lambda x, e: tnp.histogram(x, e, density=True))(x, edges - 3), np.histogram(x, edges - 3, density=True)
    )
    check(tnp.histogram(tnp.asarray([1, 2, 2, 5]), density=True), np.histogram([1, 2, 2, 5], density=True))
    check(tnp.histogram(np.zeros(0), 2), np.histogram([], 2))
    check(tnp.histogram(x, 3, weights=x), np.histogram(x, 3, weights=x))
    check(tnp.histogram(np.float32([1, 2]), 3, weights=np.array([1j, 2])), np.histogram([1, 2], 3, weights=[1j, 2]))


def test_histograms_that_are_none():
    x = np.ones(3, np.float32)
    with raises(ValueError, "histogram: bins must be at least 1, not 0."):
        tnp.histogram(x, 0)
    with raises(ValueError, "histogram: range must rise, but is from 2 to 1."):
        tnp.histogram(x, 2, (2, 1))
    with raises(ValueError, "histogram: weights float32[2] must have the shape of float32[3]."):
        tnp.histogram(x, 2, weights=x[:2])
    with raises(TypeError, "histogram: complex numbers have no order: complex64[3]."):
        tnp.histogram(x * np.complex64(1j), 2)


def test_sets():
    x, y = np.array([3, 1, 2, 1]), np.array([1, 5, 3])
    check(tnp.isin(x, y), np.isin(x, y))
    check(tnp.isin(x, y, invert=True), np.isin(x, y, invert=True))
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        check(getattr(tnp, name)(x, y), getattr(np, name)(x, y))
    check(tnp.unique(x, True, True, True), np.unique(x, True, True, True))
    check(tnp.unique(x, size=5), [1, 2, 3, 1, 1])


NAN = float("nan")
WITH_REPEATS = [
    (np.array([3, 1, 2, 1]), None),
    (np.array([[True, False], [True, True]]), None),
    (np.array([NAN, 1.0, NAN, -0.0, 0.0]), None),
    (np.array([1 + NAN * 1j, 2, NAN, 2]), None),
    (np.array([[0, 1], [1, 0], [0, 1], [0, 0]]), 0),
    (np.array([[0, 1, 0], [1, 0, 1]]), 1),
    (np.array([[NAN], [NAN]]), 0),
    (np.zeros((3, 0)), 0),
    (np.zeros((0,)), None),
    (np.array(3), None),
]


@pytest.mark.parametrize(("x", "axis"), WITH_REPEATS)
def test_unique_of_a_traced_array(x, axis):
    """Given the size, all that NumPy finds; less of it where it is cut."""
    along = axis or 0
    found = np.unique(x, True, True, True, axis=axis)
    k = found[0].shape[along]
    traced = tl.jit(lambda x, size: tnp.unique(x, True, True, True, axis, size=size), static_argnums=1)
    check(traced(x, k)[0], found[0])
    if x.dtype.kind != "c":  # NumPy does not say which nan of complex ones is the first
        check(traced(x, k)[1:], found[1:])
    cut = traced(x, max(k - 1, 0))
    check(cut[0], np.take(found[0], range(max(k - 1, 0)), along))
    check(cut[2], found[2])
    check(cut[3], found[3][: max(k - 1, 0)])


@pytest.mark.parametrize("run", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_unique_is_filled_up(run):
    x = np.array([3, 1, 2, 1])
    of_size = run(lambda x: tnp.unique(x, True, True, True, size=5, fill_value=7))
    check(of_size(x), ([1, 2, 3, 7, 7], [1, 2, 0, 1, 1], [2, 0, 1, 0], [2, 1, 1, 0, 0]))
    check(run(lambda x: tnp.unique(x, size=4, fill_value=0))(x), [1, 2, 3, 0])
    check(run(lambda x: tnp.unique(x, size=3, axis=0, fill_value=9))(x[:, None] * 0), [[0], [9], [9]])
    check(run(lambda x: tnp.unique(x, size=2, fill_value=7))(x[:0]), [7, 7])
    check(run(lambda x: tnp.union1d(x, np.array([[2, 5]]), size=5))(x), [1, 2, 3, 5, 1])
    check(run(lambda x: tnp.unique_counts(x, size=2))(np.array([NAN, NAN])), ([NAN, NAN], [1, 1]))


def test_unique_says_what_it_needs():
    with pytest.raises(tl.errors.ConcretizationTypeError) as error:
        tl.jit(tnp.unique)(np.arange(3))
    assert text_of(error.value) == (
        "unique: the shape depends on values, the elements of a traced array, int64[3].\n"
        "  It is ar, argument 0 of unique.\n"
        "  Give `size`, the length of the result, and `fill_value`, which fills it up."
    )
    with pytest.raises(ValueError, match=r"^unique: float64\[0\] has no elements to fill size=2 with. Give fill_value"):
        tnp.unique(np.zeros(0), size=2)


def test_unique_transforms():
    gradient = tl.jit(tl.grad(lambda x: tnp.sum(tnp.unique(x, size=3) ** 2)))
    check(gradient(np.array([3.0, 1.0, 3.0, 2.0])), [6, 2, 0, 4])
    mapped = tl.jit(tl.vmap(lambda x: tnp.unique(x, size=3)))
    check(mapped(np.array([[3, 3, 1], [2, 2, 2]])), [[1, 3, 1], [2, 2, 2]])


# ---- calculus ------------------------------------------------------------------------------------------------


def test_calculus(f):
    x, y = f(3, 6), np.sort(f(6))
    check(tnp.diff(x, 2), np.diff(x, 2))
    check(tnp.diff(x, axis=0, prepend=0, append=x[:1]), np.diff(x, axis=0, prepend=0, append=x[:1]))
    check(tnp.ediff1d(y, to_end=1, to_begin=[9][0]), np.ediff1d(y, to_end=1, to_begin=9))
    check(tnp.gradient(x), np.gradient(x))
    check(tnp.gradient(x, 0.5, axis=1), np.gradient(x, 0.5, axis=1))
    check(tnp.trapezoid(x, dx=0.5), np.trapezoid(x, dx=0.5))
    check(tnp.trapezoid(x, y), np.trapezoid(x, y))
    for dx, axis in [((6,), 0), ((5,), 1), ((2, 6), 0), ((3, 1), -1)]:  # dx broadcasts to the gaps, wherever `axis` is
        check(
            tnp.trapezoid(x, dx=y[: dx[-1]] * np.ones(dx), axis=axis),
            np.trapezoid(x, dx=y[: dx[-1]] * np.ones(dx), axis=axis),
        )
    check(tnp.unwrap(np.cumsum(f(20)) % 6), np.unwrap(np.cumsum(f(20) * 0) % 6), atol=99)
    steps = np.array([[0, 3, 7, -2, 2], [5, 5, 1, -4, 0]], np.int8)
    for period, discont in [(4, None), (5, None), (4, 3)]:
        found = tnp.unwrap(steps, discont, period=period)
        check(found, np.unwrap(steps, discont, period=period))
        assert found.dtype == np.int8
    angles = (np.linspace(0, 20, 30) % (2 * np.pi)).astype(np.float32)
    check(tnp.unwrap(angles), np.unwrap(angles))
    at = np.linspace(-3, 3, 11, dtype=np.float32)
    check(tnp.interp(at, y, x[0]), np.interp(at, y, x[0]))
    check(tnp.interp(at, y, x[0], left=-1, right=7), np.interp(at, y, x[0], left=-1, right=7))
    check(tnp.polyval(y, x), np.polyval(y, x), rtol=1e-4, atol=1e-4)
    check(tnp.polyadd(y, y[:2]), np.polyadd(y, y[:2]))
    check(tnp.polyadd(x[:1], x), [*x[:-1], x[-1] + x[0]])
    check(tnp.polysub(x, y[:1]), [*x[:-1], x[-1] - y[0]])
    check(tnp.polymul(y, y[:2]), np.polymul(y, y[:2]))
    check(tnp.polyder(y), np.polyder(y))
    check(tnp.polyint(y, 2), np.polyint(y, 2))
    check(tnp.piecewise(y, y[:3] > 9, [1, 2, 3, lambda v: v]), y)
    check(tnp.piecewise(y, [y < 0, y >= 0], [lambda v: -v, 5]), np.piecewise(y, [y < 0, y >= 0], [lambda v: -v, 5]))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "k"), [(7, 3), (3, 7), (4, 4), (6, 2), (2, 6), (5, 1)])
def test_convolution(mode, n, k, f):
    x, y = f(n), f(k)
    check(tnp.convolve(x, y, mode), np.convolve(x, y, mode))
    check(tnp.correlate(x, y, mode), np.correlate(x, y, mode))


# ---- operators and methods -----------------------------------------------------------------------------------

OPERATIONS = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: x**y,
    lambda x, y: x == y,
    lambda x, y: x != y,
    lambda x, y: x < y,
    lambda x, y: x >= y,
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("y", [np.full(3, 2, np.float32), 2.0, 3, np.float32(2), True], ids=repr)
def test_operators(operation, y):
    x = np.array([1.0, 2.0, 3.5], np.float32)
    check(operation(tnp.asarray(x), y), operation(x, y))
    check(operation(y, tnp.asarray(x)), operation(y, x))
    assert isinstance(operation(y, tnp.asarray(x)), tl.Array)
    check(tl.jit(lambda x: operation(y, x))(x), operation(y, x))


def test_bit_operators():
    x, y = np.array([1, 6, 12], np.int32), np.array([3, 2, 1], np.int32)
    a = tnp.asarray(x)
    (
        check(a & y, x & y),
        check(a | 3, x | 3),
        check(a ^ y, x ^ y),
        check(~a, ~x),
        check(a << y, x << y),
        check(a >> 1, x >> 1),
    )


def test_foreign_types_are_left_to_themselves():
    class Foreign:
        def __radd__(self, other):
            return "theirs"

    assert tnp.ones(2) + Foreign() == "theirs"
    for bad in ([1], None, "a"):
        with pytest.raises(TypeError, match=r"^\+: the left operand is float32\[2\], the right one is not an array"):
            tnp.ones(2) + bad
    assert (tnp.ones(2) == None) is False  # noqa: E711


METHODS = """
all any argmax argmin argsort conj copy cumprod cumsum diagonal flatten max mean min prod ptp ravel sort std sum trace
var squeeze transpose tolist
""".split()


@pytest.mark.parametrize("name", METHODS)
def test_methods(name, f):
    x = f(3, 4)
    expected = np.sort(x) if name == "sort" else np.ptp(x) if name == "ptp" else getattr(x, name)()
    check(getattr(tnp.asarray(x), name)(), expected)


def test_methods_with_arguments(f):
    x, v = f(3, 4), f(4)
    a = tnp.asarray(x)
    check(a.reshape(2, 6), x.reshape(2, 6))
    check(a.reshape((2, -1)), x.reshape(2, -1))
    check(a.transpose(1, 0), x.T)
    check(a.T, x.T)
    check(a.mT, x.T)
    check(a.swapaxes(0, 1), x.T)
    (
        check(a.astype(int), x.astype(int)),
        check(a.astype(dtype="int8"), x.astype("int8")),
        check(a.clip(-1, 1), x.clip(-1, 1)),
        check(a.dot(v), x.dot(v)),
    )
    (
        check(a.take(np.array([0, 2]), 1), x.take([0, 2], 1)),
        check(a.repeat(2, 0), x.repeat(2, 0)),
        check(a.round(1), x.round(1)),
    )
    (
        check(tnp.sort(v).searchsorted(0.0), np.sort(v).searchsorted(0)),
        check(a.sum(axis=0, keepdims=True), x.sum(0, keepdims=True)),
    )
    (
        check((x + 1j * x).real, x),
        check(abs(a), abs(x)),
        check(-a, -x),
        check(round(a, 1), x.round(1)),
        check(a[0].item(1), x[0, 1]),
    )
    check(a.view("int32"), x.view("int32"))
    check(a.nonzero()[0], x.nonzero()[0])


def test_dtypes_and_constants():
    assert tnp.float32(3).dtype == tnp.float32 and tnp.float32(3).shape == ()
    assert tnp.zeros(2, tnp.bfloat16).dtype == tnp.bfloat16
    assert np.dtype(tnp.int8) == np.int8
    assert tnp.int_.dtype == np.int32
    with tl.enable_x64(True):
        assert tnp.int_.dtype == np.int64
    assert tnp.issubdtype(tnp.bfloat16, tnp.floating) and not tnp.issubdtype(np.int32, tnp.inexact)
    assert tnp.result_type(tnp.ones(2, "int8"), 1) == np.int8
    assert tnp.result_type(np.int8, np.float32) == tnp.promote_types("int8", "float32") == np.float32
    assert (tnp.promote_types("uint8", int), tnp.promote_types(float, "float16")) == (np.uint8, np.float16)
    assert tnp.finfo("bfloat16").bits == 16 and tnp.iinfo("int8").max == 127
    assert tnp.isdtype(np.float32, "real floating") and tnp.can_cast("int8", "int32")
    assert tnp.ndim([[1, 2]]) == 2 and tnp.shape(tnp.ones((2, 3))) == (2, 3) and tnp.size(tnp.ones((2, 3)), 1) == 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: tnp.ones((3, 4)) @ tnp.ones((5, 6)),
            TypeError,
            "@: contracted axes differ in size: axis 1 of float32[3,4] has 4, axis 0 of float32[5,6] has 5.",
        ),
        (lambda: tnp.ones(3) @ 2, ValueError, "@: operands must have axes: float32[3] and float32[]."),
        (
            lambda: tnp.dot(tnp.ones(3), tnp.ones(4)),
            TypeError,
            "dot: contracted axes differ in size: axis 0 of float32[3]",
        ),
        (lambda: tnp.einsum("ij,jk", tnp.ones((2, 3))), ValueError, "describes 2 operands, 1 are given"),
        (lambda: tnp.einsum("ij", tnp.ones(3)), ValueError, "'ij' in 'ij' does not describe an operand of shape (3,)"),
        (lambda: tnp.einsum("i,i", tnp.ones(3), tnp.ones(4)), ValueError, "index 'i' of 'i,i' is 3 and 4 long"),
        (lambda: tnp.einsum("i->j", tnp.ones(3)), ValueError, "index 'j' of the result of 'i->j' is in no operand"),
        (lambda: tnp.cross(tnp.ones(4), tnp.ones(4)), ValueError, "cross: vectors must have 2 or 3 elements"),
        (
            lambda: tnp.searchsorted(tnp.ones((2, 2)), 1),
            ValueError,
            "searchsorted: a must be a vector, not float32[2,2].",
        ),
        (lambda: tnp.interp(0.0, tnp.ones(2), tnp.ones(3)), ValueError, "float32[2] and float32[3]"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


SETS = {
    "unique": lambda lib, x, y: lib.unique(lib.concatenate([x, y])),
    "unique of rows": lambda lib, x, y: lib.unique(lib.stack([x[:3], y], 1), axis=0),
    "unique with positions": lambda lib, x, y: lib.unique(x * y[0], return_index=True)[0],
    "unique_values": lambda lib, x, y: lib.unique_values(x),
    "union1d": lambda lib, x, y: lib.union1d(x, y),
    "intersect1d": lambda lib, x, y: lib.intersect1d(x, x[1:] + 0.0),
    "intersect1d with positions": lambda lib, x, y: lib.intersect1d(x, x[1:], return_indices=True)[0],
    "setdiff1d": lambda lib, x, y: lib.setdiff1d(x, y),
    "setdiff1d in order": lambda lib, x, y: lib.setdiff1d(x, y, assume_unique=True),
    "setxor1d": lambda lib, x, y: lib.setxor1d(x, y),
}


@pytest.mark.parametrize("f", SETS.values(), ids=SETS)
def test_derivatives_of_sets_of_known_elements(f):
    """No size is given: NumPy finds which elements there are, and their derivatives are kept."""
    x, y = np.array([3.0, 1.0, 4.0, 2.0, 4.5]), np.array([0.5, 7.0, -1.0])
    dx, dy = np.cos(np.arange(5.0)), np.sin(1 + np.arange(3.0))
    moved = (f(np, x + 1e-6 * dx, y + 1e-6 * dy) - f(np, x - 1e-6 * dx, y - 1e-6 * dy)) / 2e-6
    values, tangents = tl.jvp(lambda x, y: f(tnp, x, y), (x, y), (dx, dy))
    check(values, f(np, x, y))
    check(tangents, moved, rtol=1e-8, atol=1e-8)
    ct = np.cos(np.arange(moved.size, dtype=float)).reshape(moved.shape)
    gx, gy = tl.grad(lambda x, y: (f(tnp, x, y) * ct).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(gx @ dx + gy @ dy, (moved * ct).sum(), rtol=1e-7)
