"""Functions that are called once, written in the place of their call; no equation is ever copied."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplifications.inline import inlined
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.call import jit_p
from tests.interpreters.simplifications.programs import names
from tests.stepping import by_steps

X = np.linspace(0.1, 0.9, 5)


def after(f: Callable[..., Any], *args: Any) -> Jaxpr:
    """The program of a function with its calls inlined, which is found to compute the same."""
    closed = tl.make_jaxpr(f)(*args)
    new = check(inlined(closed.jaxpr))
    for one, other in zip(by_steps(new, args), by_steps(closed.jaxpr, args), strict=True):
        np.testing.assert_array_equal(one, other)
    return new


def test_a_call_is_gone():
    assert names(after(lambda x: tl.jit(lambda x: tnp.sin(x) * x)(x) + 1, X)) == ["sin", "mul", "add"]


def test_calls_in_calls_are_gone():
    inner = tl.jit(tnp.sin)
    assert names(after(lambda x: tl.jit(lambda x: inner(x) * x)(tnp.cos(x)), X)) == ["cos", "sin", "mul"]


def test_what_is_called_twice_stays_one_function():
    f = tl.jit(tnp.sin)
    assert names(after(lambda x: f(f(x)), X)) == ["jit", "jit"]


def test_what_is_called_in_two_functions_stays_one():
    """Each of these is called once, and what they call from both."""
    f = tl.jit(tnp.sin)
    jaxpr = after(lambda x: tl.jit(lambda x: f(x) * 2)(x) + tl.jit(lambda x: f(x) * 3)(x), X)
    assert names(jaxpr) == ["jit", "mul", "jit", "mul", "add"]
    assert len({eqn.params["jaxpr"] for eqn in jaxpr.eqns if "jaxpr" in eqn.params}) == 1


def test_calls_in_branches_and_loops_are_gone():
    def f(x: Any) -> Any:
        return lax.scan(lambda c, a: (tl.jit(lambda c: tnp.sin(c) * a)(c), c), 1.0, x)

    (eqn,) = after(lambda x: f(x)[0], X).eqns
    assert "jit" not in names(eqn.params["jaxpr"])


def test_results_that_are_operands_or_literals():
    assert names(after(lambda x: tl.jit(lambda x: (x, 2.0))(x)[0] * 3, X)) == ["mul"]
    assert names(after(lambda x: tl.jit(lambda x: (x, 2.0))(x)[1], X)) == []


def test_effects_stay_where_they_are():
    def f(x: Any) -> Any:
        return tl.jit(lambda x: (tl.debug.print("{}", x), x * 2)[1])(x)

    assert names(inlined(tl.make_jaxpr(f)(1.5).jaxpr)) == ["jit"]


def test_a_transposed_function_is_gone():
    """It is linear in its cotangent, which is an ordinary value where it is called."""
    f = tl.jit(lambda x: tnp.sum(tl.jit(lambda y: tnp.sin(y) * x)(x)))
    jaxpr = after(tl.grad(f), X)
    assert "jit" not in names(jaxpr)
    assert not any(v.linear for eqn in jaxpr.eqns for v in eqn.outvars)


def test_a_linear_function_of_ordinary_values_in_a_linear_jaxpr():
    """Linear in both, called with one that is linear and one that is not, which no function is: it stays a call."""
    add = tl.make_jaxpr(tnp.add)(X, X).jaxpr
    body = mark_linear(add, [True, True])
    a, b, out = Var(add.in_avals[0]), Var(add.in_avals[0], True), Var(add.out_avals[0], True)
    call = Equation(jit_p, [a, b], {"jaxpr": body}, [out], None)
    jaxpr = Jaxpr([a, b], [call], [out], "f")
    assert inlined(jaxpr) is jaxpr


def test_programs_made_of_one_another_share_variables():
    """A function and its derivative, each called once: variables of one are of the other, too."""
    f = tl.jit(lambda x: tnp.sin(x) * x)

    def both(x: Any) -> Any:
        value, push = tl.linearize(f, x)
        return value + f(x) + push(x) + tl.jvp(f, (x,), (x,))[1]

    check(inlined(tl.make_jaxpr(both)(X).jaxpr))
    np.testing.assert_allclose(tl.jit(both)(X), 2 * np.sin(X) * X + 2 * X * (np.cos(X) * X + np.sin(X)))
