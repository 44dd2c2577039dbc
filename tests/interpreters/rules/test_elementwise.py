"""Derivatives where central differences say nothing: kinks, ties, zeros, infinities; and derivatives of derivatives."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.tracer.primitives import bits, special
from tapeless.tracer.primitives import elementwise as e

INF = math.inf


def slope(f: Callable[..., Any], *primals: float, by: int = 0) -> float:
    """Derivative of f by one operand, forwards; reverse must agree."""
    args = [np.asarray(x, np.float64) for x in primals]

    def of_one(x: Any) -> Any:
        return f(*args[:by], x, *args[by + 1 :])

    _, forwards = tl.jvp(of_one, (args[by],), (np.ones(()),))
    np.testing.assert_allclose(np.asarray(tl.grad(of_one)(args[by])), np.asarray(forwards), rtol=1e-14, atol=1e-15)
    return float(forwards)


@pytest.mark.parametrize("f", [e.max, e.min])
@pytest.mark.parametrize("by", [0, 1])
def test_operands_share_a_tie(f: Any, by: int):
    assert slope(f, 2.0, 2.0, by=by) == 0.5
    assert slope(f, 2.0, 1.0, by=by) + slope(f, 1.0, 2.0, by=by) == 1.0


@pytest.mark.parametrize(("x", "expected"), [(-1.0, (1, 0, 0)), (0.5, (0, 1, 0)), (2.0, (0, 0, 1)), (0.0, (0, 0, 0))])
def test_clamp(x: float, expected: tuple[float, ...]):
    assert tuple(slope(e.clamp, 0.0, x, 1.0, by=k) for k in range(3)) == expected


@pytest.mark.parametrize("x", [-1.0, 0.5, 2.0, 3.0])
def test_clamp_between_bounds_in_the_wrong_order(x: float):
    """The upper one is the value, wherever x is."""
    assert tuple(slope(e.clamp, 2.0, x, 0.5, by=k) for k in range(3)) == (0, 0, 1)


def test_at_zero():
    assert slope(e.abs, 0.0) == 0.0
    assert slope(e.sqrt, 0.0) == INF
    assert slope(e.cbrt, 0.0) == INF
    assert slope(e.rsqrt, 0.0) == -INF
    assert slope(e.log, 0.0) == INF
    assert slope(special.bessel_i0e, 0.0) == 0.0
    assert slope(special.bessel_i1e, 0.0) == 0.5


def test_powers_of_zero():
    assert slope(e.pow, 0.0, 0.0) == 0.0
    assert slope(e.pow, 0.0, 1.0) == 1.0
    assert slope(e.pow, 0.0, 2.0) == 0.0
    assert slope(e.pow, 0.0, 2.0, by=1) == 0.0
    assert slope(e.pow, -2.0, 3.0) == 12.0
    for n, expected in ((0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)):
        assert slope(lambda x, n=n: e.integer_pow(x, n), 0.0) == expected
        assert slope(lambda x, n=n: e.pow(x, n), 0.0) == expected


def test_derivatives_at_the_ends_of_domains():
    assert slope(e.asin, 1.0) == INF
    assert slope(e.acos, 1.0) == -INF
    assert slope(e.acosh, 1.0) == INF
    assert slope(e.atanh, 1.0) == INF
    assert slope(e.tanh, 1000.0) == 0.0
    assert slope(e.logistic, -1000.0) == 0.0
    assert math.isnan(slope(e.acosh, 0.5))


def test_abs_and_sign_of_complex_zero_are_flat():
    zero, t = np.zeros((), np.complex128), np.ones((), np.complex128)
    for f in (e.abs, e.sign):
        np.testing.assert_array_equal(tl.jvp(f, (zero,), (t,))[1], 0)


def test_stop_gradient():
    assert slope(lambda x: e.mul(x, e.stop_gradient(x)), 3.0) == 3.0


def test_a_choice_is_not_polluted_by_what_it_rejects():
    assert slope(lambda x: e.select_n(e.gt(x, 0.0), e.sin(x), e.log(x)), -1.0) == pytest.approx(math.cos(1))


def test_tangents_are_rounded_like_their_operand():
    fine = np.float64(1 + 2**-20)
    _, t = tl.jvp(lambda x: bits.reduce_precision(x, 5, 10), (np.ones(()),), (np.asarray(fine),))
    np.testing.assert_array_equal(t, 1.0)


@pytest.mark.parametrize(
    ("f", "second"),
    [
        (e.sin, lambda x: -math.sin(x)),
        (e.tanh, lambda x: -2 * math.tanh(x) / math.cosh(x) ** 2),
        (e.rsqrt, lambda x: 0.75 * x**-2.5),
        (e.logistic, lambda x: math.exp(x) * (1 - math.exp(x)) / (1 + math.exp(x)) ** 3),
        (lambda x: e.pow(x, 2.5), lambda x: 3.75 * x**0.5),
        (lambda x: e.div(1.0, x), lambda x: 2 * x**-3),
        (special.erf, lambda x: -4 * x * math.exp(-x * x) / math.sqrt(math.pi)),
        (special.lgamma, lambda x: float(np.asarray(special.polygamma(1.0, np.float64(x))))),
        (special.bessel_i0e, lambda x: 2 * _i(0, x) - _i(1, x) * (2 + 1 / x)),
    ],
)
def test_second_derivatives(f: Any, second: Any):
    x = 0.7
    assert slope(tl.grad(f), x) == pytest.approx(second(x), rel=1e-12)


def _i(order: int, x: float) -> float:
    f = special.bessel_i0e if order == 0 else special.bessel_i1e
    return float(np.asarray(f(np.float64(x))))


def test_second_derivative_of_igamma_by_its_operand():
    a, x = 2.5, 2.0
    density = x ** (a - 1) * math.exp(-x) / math.gamma(a)
    second = slope(tl.grad(lambda x: special.igamma(np.float64(a), x)), x)
    assert second == pytest.approx(density * ((a - 1) / x - 1), rel=1e-13)


@pytest.mark.parametrize(
    "f", [special.polygamma, special.zeta, special.igamma_grad_a, special.random_gamma_grad], ids=lambda f: f.__name__
)
def test_a_derivative_without_a_formula_is_an_error_not_a_zero(f: Any):
    with pytest.raises(NotImplementedError, match=f"{f.__name__}: the derivative by"):
        slope(f, 2.0, 3.0)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64])
def test_integer_powers_at_the_ends_of_their_dtype(dtype: Any):
    """One less than an exponent may not be a number of its dtype."""
    ends = np.iinfo(dtype)
    for x in (0.0, 0.5, 1.0, 3.0):
        assert slope(lambda x: e.pow(x, np.asarray(0, dtype)), x) == 0
        assert slope(lambda x: e.pow(x, np.asarray(1, dtype)), x) == 1
    assert slope(lambda x: e.pow(x, np.asarray(ends.max, dtype)), 0.5) == ends.max * 0.5 ** (ends.max - 1.0)
    assert slope(lambda x: e.pow(x, np.asarray(ends.min, dtype)), 3.0) == -0.0 or ends.bits == 8
    if dtype is np.int8:
        assert slope(lambda x: e.pow(x, np.int8(-128)), 2.0) == -128 * 2.0**-129
    twice = tl.grad(tl.grad(lambda x: e.pow(x, np.asarray(2, dtype))))
    assert twice(0.0) == 2 and tl.grad(twice)(0.0) == 0
