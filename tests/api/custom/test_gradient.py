"""custom_gradient: a value and its backward rule in one function."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

X, Y = np.array([0.5, 1.5]), np.array([2.0, -1.0])


@tl.custom_gradient
def half(x):
    """x^2, with half its derivative."""
    y = x * x
    return y, lambda g: (g * tnp.sqrt(y),)


@tl.custom_gradient
def both(x, y):
    out = {"sum": x + y, "product": x * y}
    return out, lambda ct: (ct["sum"] + ct["product"] * y, ct["sum"] + 10 * ct["product"] * x)


def test_values_and_both_modes():
    assert half(3.0) == 9.0 and half.__name__ == "half"
    for transform in (lambda f: f, tl.jit, lambda f: tl.jit(tl.vmap(f)), lambda f: tl.checkpoint(f)):
        np.testing.assert_allclose(transform(tl.grad(lambda x: half(x).sum()))(X), X)
    np.testing.assert_allclose(tl.jvp(half, (X,), (Y,))[1], X * Y)

    def total(x, y):
        return (both(x, y)["sum"] + both(x, y)["product"]).sum()

    for found, expected in zip(tl.jit(tl.grad(total, (0, 1)))(X, Y), (1 + Y, 1 + 10 * X), strict=True):
        np.testing.assert_allclose(found, expected)
    carried = tl.grad(lambda x: tl.lax.fori_loop(0, 3, lambda i, c: half(c), x).sum())
    np.testing.assert_allclose(carried(X), X**7, rtol=1e-12)


def test_rules_close_over_what_was_computed():
    def f(x, scale):
        @tl.custom_gradient
        def g(x):
            return scale * x, lambda ct: 3 * scale * ct

        return g(x).sum()

    np.testing.assert_allclose(tl.jit(tl.grad(f))(X, Y), 3 * Y)
    np.testing.assert_allclose(tl.jit(tl.vmap(tl.grad(f), (0, None)))(X, 2.0), [6.0, 6.0])


def test_agreement_with_jax():
    jax = pytest.importorskip("jax")
    theirs = jax.custom_gradient(lambda x: (x * x, lambda g: (g * x,)))
    ours = tl.custom_gradient(lambda x: (x * x, lambda g: (g * x,)))
    np.testing.assert_allclose(tl.grad(ours)(3.0), jax.grad(theirs)(3.0))


def test_a_rule_that_clips():
    def clipped(x):
        return x, lambda g: (tnp.clip(g, -1, 1),)

    with pytest.raises(tl.errors.LinearityError):
        tl.grad(tl.custom_gradient(clipped))(1.0)
    kept = tl.custom_gradient(clipped, check_linear=False)
    assert tl.grad(lambda x: 5 * kept(x))(1.0) == 1.0


def test_what_is_refused():
    with raises(TypeError, "custom_gradient: expected a function, not 3."):
        tl.custom_gradient(3)
    with pytest.raises(TypeError, match=r"custom_gradient: <lambda> .* must return \(value, rule\)"):
        tl.custom_gradient(lambda x: x)(1.0)
