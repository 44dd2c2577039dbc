"""Reductions and statistics: what the rows of tests/numpy_agreement/reductions.py do not say; dtypes against JAX."""

import inspect
import re
import types

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
MASK = X > -0.7
INTEGERS = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # sums in float32 in another order


def check(actual, expected, **tolerance):
    np.testing.assert_allclose(np.asarray(actual), expected, **(tolerance or CLOSE))
    assert np.shape(actual) == np.shape(expected)


def test_means_in_integers():
    check(tnp.mean(np.array([1, 2, 4]), dtype=int), 2)
    check(tnp.mean(np.array([-1, -2, -4.5]), dtype=int), -2)
    check(tnp.mean(np.full(70000, 7, np.float16), where=True), 7)  # the sum is no half precision number
    with raises(TypeError, "mean: a mean is a number, which bool is not; the array is float32[3,4,5]."):
        tnp.mean(X, dtype=bool)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64"])
def test_cumulative_sums_and_products_do_not_overflow_narrow_integers(dtype):
    """By the array API standard; cumsum and cumprod keep the dtype, as JAX's do."""
    x = np.array([[100, 100, 3], [2, 120, 1]]).astype(dtype)
    wide = np.result_type(dtype, "uint32" if dtype[0] == "u" else "int32")
    for f, one, neutral in ((tnp.cumulative_sum, np.cumsum, 0), (tnp.cumulative_prod, np.cumprod, 1)):
        found = tl.jit(lambda x, f=f: f(x, axis=1, include_initial=True))(x)
        assert found.dtype == wide
        check(found, np.concatenate([np.full((2, 1), neutral), one(x, 1, dtype=wide)], 1))
        assert f(x, axis=0, dtype=np.int8).dtype == np.int8


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: tnp.sum(X, where=INTEGERS[0, 0]), TypeError, "sum: where must be boolean, not int32[]."),
    (lambda: tnp.mean(X, where=X), TypeError, "mean: where must be boolean, not float32[3,4,5]."),
    (lambda: tnp.any(X, where=INTEGERS), TypeError, "any: where must be boolean, not int32[3,4]."),
    (lambda: tnp.nanvar(X, where=INTEGERS), TypeError, "nanvar: where must be boolean, not int32[3,4]."),
    (lambda: tnp.sum(X, where=MASK[None]), ValueError, "sum: where, bool[1,3,4,5], does not broadcast to the array,"),
    (lambda: tnp.var(X, where=MASK[:2]), ValueError, "var: where, bool[2,4,5], does not broadcast to the array,"),
    (lambda: tnp.sum(X, 0, initial=X[0]), ValueError, "sum: initial must be one number, not float32[4,5]."),
    (lambda: tnp.sum(INTEGERS, initial=2.5), TypeError, "sum: initial, float32[], cannot begin a result of int32."),
    (lambda: tnp.prod(X, initial=2j), TypeError, "prod: initial, complex64[], cannot begin a result of float32."),
    (lambda: tnp.max(X > 0, initial=2), TypeError, "max: initial, int32[], cannot begin a result of bool."),
    (lambda: tnp.min(np.ones(3, np.int8), initial=300), OverflowError, "the integer 300 does not fit int8"),
    (lambda: tnp.var(X + 1j, dtype=float), TypeError, "var: complex64[3,4,5] has imaginary parts, and float32"),
    (lambda: tnp.std(X, ddof=1, correction=2), ValueError, "std: ddof=1 and correction=2 say the same: give one"),
])  # fmt: skip
def test_options_that_are_refused(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "inverted_cdf", "closest_observation", "linear"])
@pytest.mark.parametrize("x", [[1, np.inf, np.inf], [-np.inf, -np.inf, 1], [-np.inf, 2, np.inf]])
def test_quantiles_that_are_infinite_elements(method, x):
    """NumPy's "linear" is nan beside infinities; here it is the element where there is just one."""
    x = np.array(x, np.float32)
    for k, q in enumerate((0.0, 0.5, 1.0)):
        known = x[k] if method == "linear" else np.quantile(x, q, method=method)
        assert tnp.quantile(x, q, method=method) == known
        assert tl.jit(lambda x, q=q: tnp.percentile(x, 100 * q, method=method))(x) == known


@pytest.mark.parametrize("dtype", [np.float16, tnp.bfloat16])
def test_products_of_many_narrow_numbers(dtype, rng):
    x = (1 + 0.01 * rng.normal(size=5000)).astype(dtype)
    exact = np.prod(x.astype(np.float64))
    rtol = 2 * float(tnp.finfo(dtype).eps)  # one rounding at the end
    np.testing.assert_allclose(float(tnp.prod(x)), exact, rtol=rtol)
    np.testing.assert_allclose(float(tnp.nanprod(x)), exact, rtol=rtol)
    gradient = tl.grad(tnp.prod)(tnp.asarray(x))
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.astype(np.float64), exact / x.astype(np.float64), rtol=2 * rtol)


@pytest.mark.parametrize("dtype", [np.float16, tnp.bfloat16])
@pytest.mark.parametrize("n", [300, 5000])
def test_quantiles_of_many_narrow_numbers(dtype, n, rng):
    """Positions have more digits than elements have."""
    x = (rng.permutation(n) / n).astype(dtype)
    ordered = np.sort(x.astype(np.float64))
    weights = np.ones(n, dtype)
    for q in (0.05, 0.1, 0.5, 0.9, 0.999):
        lowest = ordered[int(np.floor(q * (n - 1)))]
        assert float(tnp.quantile(x, q, method="lower")) == lowest
        assert float(tnp.percentile(x, 100 * q)) == np.quantile(ordered, q).astype(dtype)
        by_weight = np.quantile(ordered, q, method="inverted_cdf")
        assert abs(float(tnp.quantile(x, q, weights=weights, method="inverted_cdf")) - by_weight) <= 2 / n + 1 / 256


def test_half_precision_is_summed_in_float32():
    x = tnp.full(4096, 0.1, "bfloat16")
    assert tnp.mean(x).dtype == "bfloat16"
    assert abs(float(tnp.mean(x)) - 0.1) < 1e-3


@pytest.mark.parametrize("dtype", "bool int8 uint8 int32 uint32 float16 bfloat16 float32 complex64".split())
@pytest.mark.parametrize("name", "sum prod mean var max min any argmax cumsum median count_nonzero average".split())
def test_dtypes_are_those_of_jax(name, dtype):
    jax = pytest.importorskip("jax")

    def result(lib):
        try:
            found = getattr(lib, name)(lib.ones((2, 3), dtype), 0)
        except (TypeError, ValueError):
            return None
        return found.dtype, found.weak_type

    theirs = result(jax.numpy)
    if theirs is not None and (name, dtype) not in {
        ("max", "complex64"),
        ("min", "complex64"),
        ("median", "complex64"),
        ("argmax", "complex64"),
    }:
        assert result(tnp) == theirs


def test_traced():
    check(tl.jit(lambda x: tnp.var(x, 1))(X), np.var(X, 1))
    check(tl.jit(lambda x: tnp.median(x, 1))(X), np.median(X, 1))
    check(tl.jit(lambda x: tnp.quantile(x, 0.3, (0, 2)))(X), np.quantile(X, 0.3, (0, 2)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tnp.sum([1, 2]), TypeError, "sum: argument 0 must be an array or a number, not list: [1, 2]."),
        (
            lambda: tnp.sum(tnp.ones((3, 4)), 2),
            ValueError,
            "sum: axis 2 is out of range for an array of 2 axes. The array is",
        ),
        (
            lambda: tnp.max(tnp.ones((0, 4))),
            ValueError,
            "max: there is no element to choose along axis None of float32[0,4]",
        ),
        (lambda: tnp.quantile(tnp.ones(3), 1.5), ValueError, "quantile: q must be from 0 to 1, not 1.5."),
        (
            lambda: tnp.nanpercentile(tnp.ones(3), np.nan),
            ValueError,
            "nanpercentile: q must be from 0 to 100, not nan.",
        ),
        (lambda: tnp.quantile(tnp.ones(3), 0.5, method="x"), ValueError, "quantile: method must be one of linear, "),
        (
            lambda: tnp.average(tnp.ones((3, 4)), weights=tnp.ones(5)),
            ValueError,
            "average: weights float32[5] must have",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


TAKES_OUT = sorted(
    name
    for name in tnp.__all__
    if isinstance(f := getattr(tnp, name), types.FunctionType)
    and "out" in inspect.signature(f).parameters
    and f.__name__ == name
)


@pytest.mark.parametrize("name", TAKES_OUT)
def test_nothing_is_written_to(name):
    """`out` is refused by everybody, in its own name."""
    f = getattr(tnp, name)
    first = ["ij"] if name == "einsum" else []
    needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    operands = [np.eye(2)] * (1 if first else len(needed))
    with pytest.raises(NotImplementedError) as error:
        f(*first, *operands, out=np.empty(2))
    assert str(error.value) == f"{name}: arrays are never written to: leave out=None and use the result."


def test_a_truth_value_in_the_place_of_out_is_taken_for_keepdims():
    x = tnp.ones((2, 3))
    for name in ("max", "argmax"):
        with raises(
            TypeError,
            f"{name}: True stands in the place of out. If it says whether axes stay, name it: keepdims=True.",
        ):
            getattr(x, name)(1, True)


def test_who_takes_out():
    assert {"sum", "mean", "nanstd", "median", "take", "trace", "einsum", "outer", "stack", "dot"} <= set(TAKES_OUT)


NOTHING = [((0, 3), 0, (3,)), ((0, 3), 1, (0,)), ((0,), None, ())]
SHARES = {"quantile": 0.5, "nanquantile": 0.5, "percentile": 50, "nanpercentile": 50}


@pytest.mark.parametrize("name", ["median", "nanmedian", *SHARES])
@pytest.mark.parametrize(("shape", "axis", "expected"), NOTHING)
def test_medians_and_quantiles_of_nothing_are_nan(name, shape, axis, expected):
    shares = [SHARES[name]] if name in SHARES else []

    def f(x):
        return getattr(tnp, name)(x, *shares, axis=axis)

    for given in (f, tl.jit(f)):
        found = given(tnp.ones(shape))
        assert found.shape == expected and np.isnan(found).all()


@pytest.mark.parametrize("name", "max min ptp nanmax nanmin argmax argmin nanargmax nanargmin".split())
def test_extremes_of_nothing_are_errors(name):
    """They name the function, the axis and the array, and `initial` where it is taken."""
    f = getattr(tnp, name)
    assert f(tnp.ones((0, 3)), axis=1).shape == (0,)
    for given in (f, tl.jit(f, static_argnames="axis")):
        for shape, axis in (((0, 3), 0), ((0,), None)):
            with pytest.raises(ValueError, match=rf"^{name}: .*axis ({axis}|0) of float32\[0(,3)?\]") as caught:
                given(tnp.ones(shape), axis=axis)
            assert ("`initial`" in str(caught.value)) == ("initial" in inspect.signature(f).parameters)


def test_quantiles_of_lists_of_shares():
    for q in ([10, 50.0], (10, 50.0)):
        check(tnp.percentile(X, q, axis=0), np.percentile(X, q, axis=0))
    check(tnp.quantile(X, [0.1, 0.5]), np.quantile(X, [0.1, 0.5]))
    with pytest.raises(TypeError, match=r"^percentile: argument 1 must be an array or a number, not str: 'a'\.$"):
        tnp.percentile(X, "a")


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_positions_of_extremes_of_complex_numbers_are_numpys(name: str, axis: int) -> None:
    """By the real part, then by the imaginary part; the first nan is taken for either extreme."""
    nan, inf = np.nan, np.inf
    x = np.array([[1 + 2j, nan + 1j, complex(3, nan), 2 + 9j], [0, -1, -1 - 1j, -1 + 3j], [inf - 1j, inf, 1j, -inf]])
    np.testing.assert_array_equal(getattr(tnp, name)(x, axis), getattr(np, name)(x, axis))
    assert getattr(tnp, name)(x, axis, keepdims=True).ndim == 2


def test_initial_numbers_of_a_higher_kind_that_fit():
    """A first number of another kind of dtype is taken if the dtype of the result holds it."""
    for name, x, initial in [("max", [False], 1), ("min", [True], 0), ("sum", [1, 2], 2.0)]:
        found, expected = getattr(tnp, name)(np.array(x), initial=initial), getattr(np, name)(x, initial=initial)
        assert found == expected and found.dtype == np.array(x).dtype
    for initial in (2, np.nan):
        given = "int32[]" if initial == 2 else "float32[]"
        with raises(TypeError, f"max: initial, {given}, cannot begin a result of bool. Pass dtype, or convert it."):
            tnp.max(np.array([True]), initial=initial)
