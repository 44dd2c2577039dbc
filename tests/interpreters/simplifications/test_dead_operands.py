"""Operands that the program inside an equation does not read."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplify import simplify_program

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.array([0.0, 1.0, 2.0])


def first_of(f, **params):
    """A call whose program reads the first operand of two."""
    return lambda x, y: f(lambda a, b: tnp.sin(a) * a, **params)(x, y)


PROGRAMS = {
    "jit": first_of(tl.jit),
    "checkpoint": first_of(tl.checkpoint),
    "a call in a call": lambda x, y: tl.jit(first_of(tl.jit))(x, y),
    "cond": lambda x, y: lax.cond(x[0] > 0, lambda a, b: tnp.sin(a), lambda a, b: a * a, x, y),
    "constants of a scan": lambda x, y: lax.scan(lambda c, _: (first_of(tl.jit)(c, y), None), x, None, length=2)[0],
    "first carry of a scan": lambda x, y: lax.scan(lambda c, a: (tnp.sin(a) * x, None), y, x)[0],
    "elements of a scan": lambda x, y: lax.scan(lambda c, b: (tnp.sin(c) * c, None), x, y)[0],
}
each_program = pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)


@each_program
def test_they_are_not_given(f):
    """Nor is what only they need computed."""
    text = str(simplify_program(tl.make_jaxpr(lambda x, y: f(x, tnp.log(y)))(X, X).jaxpr))
    assert "log" not in text


@each_program
def test_values_and_derivatives(f):
    def plain(x):
        return f(x, tnp.ones(3, X.dtype))

    def given(x):
        return f(x, tnp.log(x))  # whose derivative is infinite at 0

    for transform in (tl.jit, tl.jacfwd, tl.jacrev, lambda f: tl.jacrev(tl.jacrev(f)), lambda f: tl.jit(tl.jacrev(f))):
        np.testing.assert_array_equal(transform(given)(X), transform(plain)(X))


def test_what_one_branch_reads_all_are_given():
    jaxpr = simplify_program(
        tl.make_jaxpr(lambda x, y: lax.cond(x[0] > 0, lambda: tnp.sin(x), lambda: tnp.sin(tnp.exp(y))))(X, X).jaxpr
    )
    (eqn,) = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) == "cond"]
    assert len(eqn.invars) == 3
    assert [len(branch.invars) for branch in eqn.params["branches"]] == [2, 2]


def test_what_is_carried_is_carried_on():
    jaxpr = simplify_program(tl.make_jaxpr(lambda x: lax.scan(lambda c, a: (tnp.zeros_like(c), a), x, x))(X).jaxpr)
    (eqn,) = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) == "scan"]
    assert eqn.params["n_carry"] == 1


def test_linear_results_stay_linear():
    """Of three carries in a row the last becomes zero in the tangent of a tangent: it stays linear as it was."""

    def f(x):
        a, _ = lax.fori_loop(0, 1, lambda _, c: (x, c[0]), (x, tnp.sin(x)))
        return 0.6 * x + 0.3 * tnp.tanh(tnp.sum(a))

    def second(transformed):
        return tl.vjp(lambda x: tl.jvp(transformed, (x,), (X,))[1], X)[1](X)[0]

    np.testing.assert_allclose(second(f), second(lambda x: 0.6 * x + 0.3 * tnp.tanh(tnp.sum(x))), rtol=1e-12)
