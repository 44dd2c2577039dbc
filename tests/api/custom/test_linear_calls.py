"""linear_call: the given transpose is what transposition calls, as often as it is asked, under jit and vmap too."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.custom_derivatives import linear_call
from tests.messages import place, raises

X = np.arange(3.0)


def transposed(f, x):
    return lambda y: tl.linear_transpose(f, x)(y)[0]


def divided(r, x):
    return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, r, x)


@pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_value_and_both_modes(way):
    np.testing.assert_allclose(way(divided)(2.0, X), X / 2)
    np.testing.assert_allclose(way(lambda x: tl.jvp(lambda x: divided(2.0, x), (x,), (x,))[1])(X), X / 2)
    np.testing.assert_allclose(way(tl.grad(lambda x: divided(2.0, x).sum()))(X), np.full(3, 5.0))
    # With respect to the residuals, which go through `fun`:
    np.testing.assert_allclose(way(tl.grad(lambda r: divided(r, X).sum()))(2.0), -X.sum() / 4)


def test_transposed_again_and_again():
    def identity(x):
        return linear_call(lambda _, x: x, lambda _, ct: 7.0, (), x)

    once = transposed(identity, 1.0)
    twice = transposed(once, 1.0)
    assert [float(f(1.0)) for f in (identity, once, twice, transposed(twice, 1.0))] == [1.0, 7.0, 1.0, 7.0]


def test_structures_and_what_is_closed_over():
    k = tnp.asarray(3.0)

    def f(x):
        return linear_call(lambda _, x: [k * x["a"], x["b"]], lambda _, ct: {"a": k * ct[0], "b": ct[1]}, (), x)

    def total(x):
        a, b = f(x)
        return (a + 2 * b).sum()

    found = tl.jit(tl.grad(total))({"a": X, "b": X})
    np.testing.assert_allclose([found["a"], found["b"]], [np.full(3, 3.0), np.full(3, 2.0)])
    np.testing.assert_allclose(
        tl.grad(lambda k: linear_call(lambda _, x: k * x, lambda _, ct: k * ct, (), 5.0))(3.0), 5.0
    )


def test_vmap():
    r = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(tl.vmap(divided)(r, X), X / r)
    np.testing.assert_allclose(tl.vmap(tl.grad(divided, 1))(r, X), 10 / r)
    np.testing.assert_allclose(tl.vmap(tl.grad(divided, 1), (None, 0))(2.0, X), np.full(3, 5.0))


def test_a_transpose_that_does_not_fit():
    def back(r, ct):
        return ct, ct

    given = "gives (float64[3], float64[3]), but linear_args are float64[3]."
    with raises(TypeError, f"linear_call: {place(back)} {given}"):
        linear_call(lambda r, x: x, back, (), X)
