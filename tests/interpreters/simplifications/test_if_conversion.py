"""Branches that compute next to nothing."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import X, after, names


def test_a_gradient_that_is_a_choice_of_constants():
    """How it prints is in tests/api/control_flow/test_acceptance_control_flow.py."""

    def f(x):
        return lax.cond(x > 0, lambda x: 2 * x, lambda x: 5 * x, x)

    for g in (tl.grad(f), tl.jit(tl.grad(f)), tl.grad(tl.jit(f))):
        assert (g(42.0), g(-42.0)) == (2, 5)
    np.testing.assert_array_equal(tl.vmap(tl.grad(f))(np.array([42.0, -42.0])), [2, 5])


def test_a_choice_of_scalars():
    assert names(after(lambda p, x, y: lax.cond(p, lambda: x, lambda: y), np.array(True), 1.0, 2.0)) == ["select_n"]
    assert names(after(lambda p: lax.cond(p, lambda x: x * 3.0, lambda x: x, 2.0), np.array(True))) == ["select_n"]


def test_what_is_known_is_no_choice():
    assert names(after(lambda x: lax.cond(np.True_, tnp.sin, tnp.cos, x), X)) == ["sin"]


def test_what_computes_stays_a_choice():
    """The branch that is not taken is not computed."""
    assert names(after(lambda p, x: lax.cond(p, tnp.sin, lambda x: x, x), np.array(True), X)) == ["cond"]
    linear = tl.linearize(lambda x: lax.cond(x[0] > 0, lambda x: tnp.sin(x) * 2, lambda x: x, x), X)[1]
    assert "cond" in names(linear.jaxpr)


def test_coefficients():
    """Of one operand, by scalars; nothing where a branch has none."""

    def f(x, s):
        return lax.cond(s > 0, lambda x: -x, lambda x: tnp.zeros_like(x), x)

    assert names(tl.linearize(lambda x: f(x, 1.0), X)[1].jaxpr) in (["select_n", "mul"], ["mul"], ["neg"], [])
    for s, expected in ((1.0, -1.0), (-1.0, 0.0)):
        gradient = tl.jit(tl.grad(lambda x, s: tnp.sum(f(x, s))))(X, s)
        np.testing.assert_array_equal(gradient, np.full(16, expected))
