"""Choices between an array and what was written into it, made before writing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import X, after, largest, names

pytestmark = pytest.mark.usefixtures("eager_by_steps")

CHOICES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "set": lambda x, i, p: tnp.where(p, x.at[i].set(3.0), x),
    "set otherwise": lambda x, i, p: tnp.where(p, x, x.at[i].set(x[2])),
    "add": lambda x, i, p: tnp.where(p, x.at[i].add(3.0), x),
    "multiply": lambda x, i, p: tnp.where(p, x.at[i].multiply(3.0), x),
    "max": lambda x, i, p: tnp.where(p, x.at[i].max(1.0), x),
    "min": lambda x, i, p: tnp.where(p, x.at[i].min(1.0), x),
    "window": lambda x, i, p: tnp.where(p, lax.dynamic_update_slice(x, x[:3] * 2, (i,)), x),
    "two": lambda x, i, p: tnp.where(p, x.at[i].set(3.0).at[i - 1].add(x[i]), x),
    "the same place twice": lambda x, i, p: tnp.where(p, x.at[i].set(3.0).at[i].multiply(2.0), x),
    "a swap": lambda x, i, p: tnp.where(p, x.at[i].set(x[2]).at[2].set(x[i]), x),
    "broadcast": lambda x, i, p: tnp.where(tnp.broadcast_to(p, x.shape), x.at[i].set(3.0), x),
    "nested": lambda x, i, p: tnp.where(p, tnp.where(x[0] > 1, x.at[i].set(3.0), x), x),
    "places": lambda x, i, p: tnp.where(p, x.at[tnp.stack([i, i + 1])].set(3.0, unique_indices=True), x),
}


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("i", [0, 5, 15, -1, 40])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_of_what_is_written(name, i, p):
    f = CHOICES[name]
    program = after(f, X, i, p)
    big = [eqn for eqn in program.eqns if eqn.outvars[0].aval.size == X.size]
    assert "select_n" not in [str(eqn.primitive) for eqn in big]


@pytest.mark.parametrize("name", CHOICES)
def test_gradients(name):
    for p in (False, True):

        def loss(x, p=p):
            return tnp.sum(tnp.sin(CHOICES[name](x, 5, p)) * tnp.arange(16.0))

        for gradient in (tl.grad(loss), tl.jit(tl.grad(loss))):
            np.testing.assert_allclose(gradient(X), tl.jacfwd(loss)(X), rtol=1e-12)  # of float64, fused or not


LEFT: dict[str, Callable[[Any, Any, Any], Any]] = {
    "each element its own": lambda x, i, p: tnp.where(x > 1, x.at[i].set(3.0), x),
    "another array": lambda x, i, p: tnp.where(p, x.at[i].set(3.0), 2 * x),
    "read besides": lambda x, i, p: (lambda y: (tnp.where(p, y, x), y))(x.at[i].set(3.0)),
    "places that may be the same": lambda x, i, p: tnp.where(p, x.at[tnp.stack([i, i])].set(x[:2]), x),
    "written as a whole": lambda x, i, p: tnp.where(p, lax.dynamic_update_slice(x, 2 * x, (i,)), x),
}


@pytest.mark.parametrize("name", LEFT)
def test_others_are_left(name):
    assert "select_n" in names(after(LEFT[name], X, 5, True))


def test_nothing_of_the_size_of_the_array_is_chosen_backwards():
    def f(x):
        return lax.fori_loop(0, 16, lambda i, b: tnp.where(i < 7, b.at[i].set(tnp.sin(b[i - 1])), b), x)

    program = tl.make_jaxpr(lambda x, ct: tl.vjp(f, x)[1](ct))(X, X).jaxpr
    backward = program.eqns[-1].params["jaxpr"]
    assert largest(backward) == X.size
    assert {str(e.primitive) for e in backward.eqns if e.outvars[0].aval.size == X.size} <= {
        *("scatter", "scatter_add", "dynamic_update_slice")
    }


def test_a_result_of_several():
    """The first result of the operation that makes it is read by nobody."""

    def f(x, p):
        return tnp.where(p, lax.split(x + 1.0, (4, 12), 0)[1], 0.0)

    after(f, X, True)


def test_choices_within_choices():
    """What was written for the choice inside is read by more than the next write."""

    def f(x, p, q):
        written = lax.dynamic_update_slice(lax.dynamic_update_slice(x, X[:1], [0]), X[:2], [3])
        return lax.select(q, lax.select(p, written, x), x)

    for p in (False, True):
        for q in (False, True):
            after(f, X[::-1], p, q)


def test_nothing_is_added_to_a_negative_zero():
    f = lambda x, p: lax.select(p, x.at[np.array([1])].add(X[:1], unique_indices=True), x)  # noqa: E731
    negative = -np.zeros(4)
    assert np.signbit(tl.jit(f)(negative, False)).all()
    after(f, negative, False)
