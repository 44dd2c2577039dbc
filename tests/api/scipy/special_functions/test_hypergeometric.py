"""Hypergeometric functions against their series in Decimal, and SciPy at the edges."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.scipy import special
from tests.messages import raises


def series(above: tuple[Any, ...], below: tuple[Any, ...], x: Any) -> Any:
    """The series with as many digits as the context has."""
    term, total, k = Decimal(1), Decimal(1), 0
    while k < 60 + abs(x) or abs(term) > abs(total) * (1 - min(abs(x), Decimal("0.999"))) * Decimal(10) ** -25:
        for v in above:
            term *= v + k
        for v in below:
            term /= v + k
        term *= x / (k + 1)
        total, k = total + term, k + 1
    return total


def exact(above: int, *given: Any) -> Any:
    """Of arrays of operands: `above` of them are above, the last is x; of Gauss's function x < 0 is turned around."""

    def one(*numbers: Any) -> float:
        with localcontext() as context:
            context.prec = 520 if above == 1 else 60
            *operands, x = [Decimal(float(v)) for v in numbers]
            if above == 1 or x >= 0:
                return float(series(tuple(operands[:above]), tuple(operands[above:]), x))
            a, b, c = operands
            return float((1 - x) ** -a * series((a, c - b), (c,), x / (x - 1)))

    return np.vectorize(one)(*given)


def test_confluent():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.01, 50, (2, 150))
    x = rng.uniform(-500, 500, 150)
    x = np.where(b >= a, x, abs(x))
    np.testing.assert_allclose(special.hyp1f1(a, b, x), exact(1, a, b, x), rtol=1e-12)
    narrow = [v.astype(np.float32) for v in (a, b, x / 10)]
    found = special.hyp1f1(*narrow)
    assert found.dtype == np.float32
    wanted = exact(1, *narrow)
    fits = wanted < 3e38
    np.testing.assert_allclose(np.asarray(found)[fits], wanted[fits], rtol=2e-7)
    assert np.isinf(np.asarray(found)[~fits]).all()


def test_confluent_elsewhere_has_half_of_the_digits_or_is_nan():
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-20, 20, (2, 200))
    x = rng.uniform(-40, 40, 200)
    found = np.asarray(special.hyp1f1(a, b, x))
    np.testing.assert_allclose(np.nan_to_num(found / exact(1, a, b, x), nan=1), 1, rtol=3e-7)
    assert np.isnan(found).sum() < 20


def test_confluent_far_away():
    """By its asymptotic series, with derivatives by all operands; these values are mpmath's."""
    found = special.hyp1f1(2.5, 4.25, np.float64([-3000.1, -1e4, -1e6, 1e4]))
    expected = [1.8274312195110484e-08, 9.01302292108e-10, 9.01469635118314e-15, np.inf]
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    slopes = tl.grad(special.hyp1f1, (0, 1, 2))(*np.float64([2.5, 4.25, -1e4]))
    np.testing.assert_allclose(slopes, [-8.07809566605629e-9, 9.70667183663615e-10, 2.25308668960259e-13], rtol=1e-12)


def test_gauss():
    rng = np.random.default_rng(2)
    a, b, c = rng.uniform(0.01, 10, (3, 150))
    x = np.concatenate([rng.uniform(-1, 0.999, 75), 1 - 10 ** rng.uniform(-2.5, 2, 75)])
    np.testing.assert_allclose(special.hyp2f1(a, b, c, x), exact(2, a, b, c, x), rtol=1e-10)
    narrow = [v.astype(np.float32) for v in (a, b, c, np.minimum(x, 0.99))]
    np.testing.assert_allclose(special.hyp2f1(*narrow), exact(2, *narrow), rtol=3e-7)


def test_gauss_of_negative_c_is_nan_where_another_solution_grows():
    """It was off by 2e-5 and 7e-7: rounding starts a part z^(1 - c), z = x / (x - 1). The last value is mpmath's."""
    args = np.array([[0.123, 0.575, -40.5, -42.5], [0.233, -0.011, -32.375, -271], [0.25, 1.5, -8.5, -42.5]]).T
    np.testing.assert_allclose(special.hyp2f1(*args), [np.nan, np.nan, 0.58407945783279825], rtol=1e-11)


def test_gauss_far_away_against_scipy():
    """Where the Decimal series would have millions of terms."""
    ss = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(3)
    a, b, c = rng.uniform(0.01, 10, (3, 100))
    x = np.concatenate([-(10 ** rng.uniform(2, 9, 50)), 1 - 10 ** rng.uniform(-9, -3, 50)])
    keep = abs(c - a - b - np.round(c - a - b)) > 0.05  # there SciPy cancels
    args = [v[keep] for v in (a, b, c, x)]
    np.testing.assert_allclose(special.hyp2f1(*args), ss.hyp2f1(*args), rtol=1e-8)


def test_closed_forms():
    x = np.array([-1e6, -3, -0.5, 0.3, 0.9, 1 - 1e-12])
    np.testing.assert_allclose(special.hyp2f1(1.0, 1.0, 2.0, x), -np.log1p(-x) / x, rtol=1e-11)
    np.testing.assert_allclose(special.hyp2f1(2.5, 1.0, 1.0, x), (1 - x) ** -2.5, rtol=1e-10)
    np.testing.assert_allclose(special.hyp1f1(2.0, 2.0, x[1:]), np.exp(x[1:]), rtol=1e-13)


def test_edges_are_those_of_scipy():
    ss = pytest.importorskip("scipy.special")
    confluent = [(1, 0, 1), (-1, -2, 1), (0, 2, 3), (2, 3, 0), (1, 2, 800), (1, 2, -800), (np.nan, 1, 1), (-3, 2, 5.5)]
    for args in confluent:
        np.testing.assert_allclose(special.hyp1f1(*map(np.float64, args)), ss.hyp1f1(*args), rtol=1e-12, err_msg=args)
    gauss = [
        (1, 2, 4, 1),
        (1, 2, 3, 1),
        (-2, 2, 3, 5),
        (1, 2, 0, 0.5),
        (-2, 2, -3, 0.5),
        (1, 2, 3, 0),
    ]
    for args in gauss:
        np.testing.assert_allclose(special.hyp2f1(*map(np.float64, args)), ss.hyp2f1(*args), rtol=1e-12, err_msg=args)
    assert np.isnan(special.hyp2f1(1.0, 2.0, 3.0, 2.0))  # complex


def differences(f: Any, args: list[Any], k: int) -> Any:
    """The central difference by argument k, to the fourth order."""
    h = 1e-3
    at = [np.asarray(f(*[x + n * h * (i == k) for i, x in enumerate(args)])) for n in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


CASES = {
    special.hyp1f1: [(1.2, 2.3, 0.7), (0.0, 2.3, 1.5), (2.5, 1.5, -3.0)],
    special.hyp2f1: [(1.2, 2.3, 3.1, 0.9), (1.2, 2.3, 3.1, 0.3), (1.2, 0.0, 3.1, -4.0), (0.5, 2.0, 1.5, -0.7)],
}


@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_derivatives(f: Any):
    """By every argument, in both modes, the second by x; and at x = 0, where the terms vanish."""
    with tl.enable_x64():
        args = list(np.array(CASES[f]).T)
        n = len(args)

        def by(k: Any, f: Any) -> Any:
            return tl.grad(lambda *args: f(*args).sum(), k)

        expected = [differences(tl.jit(f), args, k) for k in range(n)]
        along = tuple([np.array([0.5, -1.0, 2.0, 0.25][: args[0].size]) * (k + 1) for k in range(n)])
        backwards, forwards = tl.jit(lambda *args: (by(tuple(range(n)), f)(*args), tl.jvp(f, args, along)[1]))(*args)
        np.testing.assert_allclose(np.stack([*map(np.asarray, backwards)]), expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(forwards, sum(u * e for u, e in zip(along, expected)), rtol=1e-7, atol=1e-8)
        slope = tl.jit(by(n - 1, f))
        second = tl.jit(by((0, n - 1), slope))
        np.testing.assert_allclose(second(*args)[0], differences(slope, args, 0), rtol=1e-7, atol=1e-9)
        at_zero = second(*args[:-1], 0 * args[0])[1]
        a, below = args[0] * (args[1] if n == 4 else 1), args[-2]
        b = (args[0] + 1) * (args[1] + 1 if n == 4 else 1)
        np.testing.assert_allclose(at_zero, a * b / (below * (below + 1)), rtol=1e-12)


def test_slopes_where_the_regions_meet():
    """DLMF 15.5.1, at 0, 1/2, and -1, which is 1/2 after a transformation."""
    a, b, c = (np.full(3, v) for v in (1.25, 0.75, 2.25))
    x = np.array([0.0, 0.5, -1.0])
    found = tl.jvp(lambda x: special.hyp2f1(a, b, c, x), (x,), (np.ones(3),))[1]
    np.testing.assert_allclose(found, a * b / c * np.asarray(special.hyp2f1(a + 1, b + 1, c + 1, x)), rtol=1e-13)


def test_batches_and_dtypes():
    x = tnp.linspace(-2, 0.9, 5)
    for f, args in ((special.hyp1f1, (1.5, 2.5)), (special.hyp2f1, (1.5, 2.5, 3.5))):
        whole = f(*args, x)
        np.testing.assert_array_equal(tl.vmap(lambda x, f=f, args=args: f(*args, x))(x), whole)
        np.testing.assert_allclose(tl.jit(f)(*args, x), whole, rtol=1e-6)
        assert f(1, *args[1:], x).dtype == np.float32 and f(*args, x.astype(tnp.bfloat16)[:, None]).shape == (5, 1)
        assert f(*args, np.zeros((0, 3), np.float16)).shape == (0, 3)
        name = f.__name__
        with pytest.raises(TypeError, match=f"{name}: takes real numbers, not complex64"):
            f(*args, x.astype(np.complex64))
        with pytest.raises(ValueError, match=name):
            f(tnp.ones(3), *args[1:], tnp.ones(2))
    with raises(TypeError, "hyp1f1() missing 1 required positional argument: 'x'"):
        special.hyp1f1(1.0, 2.0)  # pyright: ignore[reportCallIssue]


def test_sums_that_end_at_one():
    """At x = 1 the sum is infinite for c <= a + b, unless it has an end."""
    a, b, c = np.array([0.0, -2, 1, -1]), np.array([1.0, 3, 1, 2]), np.array([1.0, 0.5, 1, 5])
    np.testing.assert_allclose(special.hyp2f1(a, b, c, 1.0), scipy.special.hyp2f1(a, b, c, 1.0), rtol=1e-12)
