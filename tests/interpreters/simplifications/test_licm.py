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


@pytest.mark.parametrize("larger", [lambda x: tnp.broadcast_to(x, (9, 6)), lambda x: tnp.broadcast_to(x, (6, 9, 6))[2]])
def test_what_grows_stays(larger):
    def f(x):
        return lax.scan(lambda s, _: (tnp.sin(s) + larger(x), None), np.zeros((9, 6)), length=3)[0]

    assert "broadcast_in_dim" in body_of(f, X)


def test_what_is_summed_again_is_made_before_the_loop():
    def f(x):
        return lax.scan(lambda s, a: (tnp.sin(s) * tnp.tile(x, 4).sum() + a, None), 0.0, X, length=6)[0]

    assert {"reduce_sum", "broadcast_in_dim"}.isdisjoint(body_of(f, X))
    check_derivatives(f)


# Arrays that are larger than x.
LARGER = {
    "concatenate": lambda x: tnp.concatenate([x, 2 * x]),
    "pad": lambda x: tnp.pad(x, 2),
    "roll": lambda x: tnp.roll(x, 1),
    "tile": lambda x: tnp.tile(x, 3),
    "repeat": lambda x: tnp.repeat(x, 3),
    "stack, sum": lambda x: tnp.stack([x, tnp.flip(x), x * x]).sum(axis=0),
    "concatenate twice": lambda x: tnp.concatenate([tnp.concatenate([x, x]), x]),
    "concatenate of a concatenation and its double": lambda x: (lambda y: tnp.concatenate([y, 2 * y]))(
        tnp.concatenate([x, x])
    ),
}


@pytest.mark.parametrize("name", LARGER)
def test_larger_arrays_read_in_parts_are_made_before_the_loop(name):
    """Otherwise the reverse loop adds a whole array at every step, and the gradient of n steps takes n^2."""

    def f(x):
        return lax.fori_loop(0, 6, lambda i, s: tnp.sin(s) * LARGER[name](x)[i], x[0])

    (eqn,) = [eqn for eqn in tl.linearize(f, X)[1].jaxpr.eqns if str(eqn.primitive) == "scan"]
    assert all(v.aval.size == 1 for inner in eqn.params["jaxpr"].eqns for v in inner.outvars if v.linear)
    check_derivatives(f)


def test_larger_arrays_read_whole_and_in_parts_stay():
    def f(x):
        def step(i, s):
            y = tnp.concatenate([x, x])
            return tnp.sin(s) * y[i] + tnp.sum(y * s)

        return lax.fori_loop(0, 6, step, x[0])

    assert "concatenate" in body_of(f, X)
    check_derivatives(f)


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
    check_derivatives(PROGRAMS[name])


def check_derivatives(f):
    """Compare with forward mode, which is not simplified before it is compiled."""
    expected = np.stack([np.asarray(tl.jvp(f, (X,), (e,))[1]) for e in np.eye(6)], -1)
    for derivative in (tl.jacrev(f)(X), tl.jit(tl.jacrev(f))(X)):
        np.testing.assert_allclose(derivative, expected, rtol=1e-12, atol=1e-14)  # float64, sums in another order
