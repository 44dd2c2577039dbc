"""What a choice discards does no harm backwards: both modes agree at kinks, ties, zeros and infinities."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import names

pytestmark = pytest.mark.usefixtures("eager_by_steps")

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 1e-3, np.inf, -np.inf])
FINITE = POINTS[:7]

GUARDED: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: tnp.where(x > 0, tnp.sqrt(x), 0),
    "log": lambda x: tnp.where(x > 0, tnp.log(x), 0),
    "sinc": lambda x: tnp.where(x == 0, 1.0, tnp.sin(x) / x),
    "reciprocal": lambda x: tnp.where(x != 0, 1 / x, 0),
    "entropy": lambda x: tnp.where(x > 0, x * tnp.log(x), 0),
    "power": lambda x: tnp.where(x > 0, x**0.3, 0),
    "a chain": lambda x: tnp.where(x > 0, 3 * tnp.sqrt(tnp.log1p(x) * x), 0),
    "both": lambda x: tnp.where(x > 0, tnp.sqrt(x), tnp.log1p(-x)),
    "nested": lambda x: tnp.where(x > -2, tnp.where(x > 0, tnp.log(x) * tnp.sqrt(x), 0), x),
    "shared": lambda x: (lambda s: tnp.where(x > 0, s * s + s, 0))(tnp.sqrt(x)),
    "three cases": lambda x: lax.select_n(
        (tnp.sign(tnp.clip(x, -1, 1)) + 1).astype(np.int32), tnp.sqrt(-x), tnp.ones_like(x), tnp.log(x)
    ),
    "of a mask": lambda x: tnp.where(x > 0, tnp.where(x > 0, tnp.sqrt(x), 5.0) * x, 0),
    "overflow": lambda x: tnp.where(x > 0, x, tnp.exp(x) - 1),
    "scalar": lambda x: tnp.where(x[0] > 0, tnp.log(x[0]), 0.0) + 0 * x[2],
    "weak": lambda x: tnp.where(x > 0, 2 * tnp.sqrt(x) / 3, 0),
}


@pytest.mark.parametrize("name", GUARDED)
def test_both_modes_agree(name: str):
    f = GUARDED[name]
    x = FINITE if name not in ("overflow",) else FINITE * 1000
    with np.errstate(all="ignore"):
        forwards = np.stack([np.asarray(tl.jvp(f, (x,), (e,))[1]) for e in np.eye(len(x))], -1)
        pushed = np.stack([np.asarray(tl.linearize(f, x)[1](e)) for e in np.eye(len(x))], -1)
        backwards = np.asarray(tl.jacrev(f)(x))
    assert np.isfinite(forwards).all()
    np.testing.assert_allclose(pushed, forwards)
    np.testing.assert_allclose(backwards, forwards)
    np.testing.assert_allclose(tl.jit(tl.jacrev(f))(x), forwards)


@pytest.mark.parametrize("name", [name for name in GUARDED if name not in ("scalar", "overflow")])
def test_under_vmap(name: str):
    f = GUARDED[name]
    each = tl.vmap(tl.grad(lambda x: f(x[None])[0]))(FINITE)
    np.testing.assert_allclose(each, np.diagonal(np.asarray(tl.jacrev(f)(FINITE))))


def test_the_gradient_of_a_sum_of_logarithms():
    np.testing.assert_array_equal(tl.grad(lambda x: tnp.sum(GUARDED["log"](x)))(np.array([0.0, 1, 2])), [0, 1, 0.5])


def test_infinity_that_is_the_program_s_own():
    """What is chosen is not changed: 1/0 is infinite, and 0 times infinity is nan."""
    assert tl.grad(lambda x: tnp.where(x >= 0, tnp.sqrt(x), 0))(0.0) == np.inf
    assert np.isnan(tl.grad(lambda x: tnp.where(x >= 0, tnp.sqrt(x) * x, 0))(tnp.asarray(0.0)))


def test_in_a_loop():
    def f(x: Any) -> Any:
        return lax.scan(lambda c, a: (tnp.where(a > 0, tnp.sqrt(a) * c, c), c), 1.0, x)[0]

    np.testing.assert_allclose(tl.grad(f)(FINITE), tl.jacfwd(f)(FINITE))
    np.testing.assert_allclose(tl.jit(tl.grad(f))(FINITE), tl.jacfwd(f)(FINITE))


def stacked(x):
    """What a loop carries, and what it was in every step."""
    return lax.scan(lambda c, _: (tnp.sqrt(c),) * 2, x, None, length=3)


# Loops with several results, which carries feed: the function, of which what is not positive is discarded.
LOOPS: dict[str, Callable[[Any], Any]] = {
    "the last of the stacked": lambda x: tnp.where(x > 0, stacked(x)[1][-1], 0),
    "all of the stacked": lambda x: tnp.where(x > 0, stacked(x)[1].sum(0), 0),
    "each of the stacked": lambda x: tnp.where(x > 0, stacked(x)[1], 0),
    "stacked and carried": lambda x: sum(tnp.where(x > 0, y, 0).sum() for y in stacked(x)),
    "one of two carries": lambda x: tnp.where(
        x > 0, lax.fori_loop(0, 2, lambda i, s: (tnp.sqrt(s[0]), s[1] + tnp.sqrt(s[0])), (x, 0 * x))[1], 0
    ),
    "carries that change places": lambda x: tnp.where(
        x > 0, lax.fori_loop(0, 3, lambda i, s: (s[1], 0.5 * (s[1] + x / s[0])), (x, x))[1], 0
    ),
    "in a checkpoint": lambda x: tnp.where(x > 0, tl.checkpoint(stacked)(x)[1][-1], 0),
    "with masks of their own": lambda x: (lambda a, b: tnp.where(x > 0, a, 0) + tnp.where(x < 1, b, 0))(
        *lax.fori_loop(0, 2, lambda i, s: (tnp.sqrt(s[0]), tnp.log(1 - s[1])), (x, x))
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_with_several_results(name: str):
    f = LOOPS[name]
    x = np.array([0.0, 0.25, 0.5, 0.0])
    gradient = tl.grad(lambda x: tnp.sum(f(x)))(x)
    pushed = [tl.jvp(lambda x: tnp.sum(f(x)), (x,), (e,))[1] for e in np.eye(4)]
    np.testing.assert_allclose(gradient, pushed, rtol=1e-12)
    np.testing.assert_allclose(tl.vmap(tl.grad(lambda x: tnp.sum(f(x))))(x[None])[0], pushed, rtol=1e-12)


def test_second_derivatives():
    def f(x: Any) -> Any:
        return tnp.sum(tnp.where(x > 0, tnp.sqrt(x) ** 3, 0))

    np.testing.assert_allclose(tl.hessian(f)(np.array([0.0, 1.0])), [[0, 0], [0, 0.75]])
    np.testing.assert_allclose(tl.jacrev(tl.grad(f))(np.array([0.0, 1.0])), [[0, 0], [0, 0.75]])


def test_one_coefficient_takes_the_place_of_the_choice():
    assert names(tl.linearize(GUARDED["sqrt"], FINITE)[1].jaxpr) == ["mul"]
    assert names(tl.linearize(lambda x: tnp.where(x > 0, 2 * x, 0), FINITE)[1].jaxpr) == ["mul", "select_n"]


def test_a_choice_of_something_else_stays():
    """The coefficient is chosen by the same mask, but is 5 elsewhere, not 0."""

    def f(x: Any, a: Any) -> Any:
        return tnp.where(x > 0, tnp.where(x > 0, a, 5.0) * x, 0)

    x = np.array([3.0, -2.0])
    np.testing.assert_array_equal(tl.jacrev(f)(x, x), [[3, 0], [0, 0]])


def test_a_choice_around_a_choice_of_something_else_stays():
    """The coefficient is chosen by the mask only where another mask chooses that."""

    def f(x: Any, a: Any, p: Any) -> Any:
        q = a > 0
        return tnp.where(q, tnp.where(p, 7.0, tnp.where(q, a, 0.0)) * x, 0)

    x, a, p = np.ones(4), np.array([1.0, -1.0, 1.0, -1.0]), np.array([True, True, False, False])
    np.testing.assert_array_equal(tl.grad(lambda x: tnp.sum(f(x, a, p)))(x), [7, 0, 1, 0])


def test_what_is_smaller_than_the_mask_stays_so():
    """The mask of every element, the norms of rows: what is kept is these."""

    def f(x: Any) -> Any:
        norms = tnp.sqrt(tnp.sum(x * x, 1, keepdims=True))
        return tnp.sum(tnp.where(x > 0.5, x / tl.stop_gradient(norms), 0))

    residuals = tl.linearize(f, np.ones((8, 8)))[1].jaxpr.invars
    assert sorted(v.aval.size for v in residuals if not v.linear) == [8, 64]


def test_where_a_call_reads_at_places_of_its_own_is_not_known_outside():
    @tl.jit
    def read(x: Any, i: Any) -> Any:
        return tnp.sin(lax.dynamic_slice(x, (2 * i,), (3,)))

    def f(x: Any, i: Any, p: Any) -> Any:
        return tnp.sum(tnp.where(p, read(tnp.exp(x), i), 0.0))

    x, p = np.arange(6.0) / 6, np.array([True, False, True])
    expected = np.where([False, False, True, False, True, False], np.cos(np.exp(x)) * np.exp(x), 0)
    np.testing.assert_allclose(tl.grad(f)(x, 1, p), expected)
