"""What a linear loop computes of constants alone."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

X = np.linspace(0.1, 0.7, 6)


def reversed_sum(x, n=6):
    return lax.fori_loop(0, n, lambda i, s: tnp.sin(s) + x[::-1][i], x[0])


def body_of(f, x):
    """The names of what the linear loop of a function does in a step."""
    (eqn,) = [eqn for eqn in tl.linearize(f, x)[1].jaxpr.eqns if str(eqn.primitive) == "scan"]
    return [str(inner.primitive) for inner in eqn.params["jaxpr"].eqns]


def test_moves_are_made_before_the_loop():
    assert "rev" not in body_of(reversed_sum, X)
    assert "rev" in [str(eqn.primitive) for eqn in tl.linearize(reversed_sum, X)[1].jaxpr.eqns]


def test_what_grows_stays():
    def f(x):
        return lax.scan(lambda s, _: (tnp.sin(s) + tnp.broadcast_to(x, (9, 6)), None), np.zeros((9, 6)), length=3)[0]

    assert "broadcast_in_dim" in body_of(f, X)


PROGRAMS = {
    "read": reversed_sum,
    "no step": lambda x: reversed_sum(x, 0),
    "a result of every step": lambda x: lax.scan(lambda s, a: (s * a, (2 * x)[::-1]), x[0], x)[1],
    "of several constants": lambda x: lax.scan(lambda s, a: (s * a + (x[::-1] * x * x)[2], None), x[0], x)[0],
    "in a loop in a loop": lambda x: lax.fori_loop(
        0, 3, lambda i, s: lax.fori_loop(0, 2, lambda j, t: tnp.sin(t) * (3 * x)[::-1][i + j], s), x[1]
    ),
    "in a branch": lambda x: lax.fori_loop(0, 4, lambda i, s: lax.cond(i > 1, lambda: s * x[::-1][i], lambda: s), x[1]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    """Against forward mode, which is not simplified before it is compiled."""
    f = PROGRAMS[name]
    expected = np.stack([np.asarray(tl.jvp(f, (X,), (e,))[1]) for e in np.eye(6)], -1)
    for derivative in (tl.jacrev(f)(X), tl.jit(tl.jacrev(f))(X)):
        np.testing.assert_allclose(derivative, expected, rtol=1e-12, atol=1e-14)  # float64, sums in another order
