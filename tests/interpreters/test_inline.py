"""Functions that are called once, written in the place of their call; no equation is ever copied."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.inline import InliningInTurn, inline_calls
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.call import jit_p
from tests.interpreters.simplifications.programs import names
from tests.stepping import by_steps

X = np.linspace(0.1, 0.9, 5)


def after(f: Callable[..., Any], *args: Any) -> Jaxpr:
    """The program of a function with its calls inlined, which is found to compute the same."""
    closed = tl.make_jaxpr(f)(*args)
    new = check(inline_calls(closed.jaxpr))
    for one, other in zip(by_steps(new, args), by_steps(closed.jaxpr, args), strict=True):
        np.testing.assert_array_equal(one, other)
    return new


def distinct(jaxpr: Jaxpr) -> list[Jaxpr]:
    """A program and those that it carries, each once."""
    found = {jaxpr: None}
    todo = [jaxpr]
    while todo:
        inside = [inner for eqn in todo.pop().eqns for inner in subjaxprs(eqn.params) if inner not in found]
        found.update(dict.fromkeys(inside))
        todo += dict.fromkeys(inside)
    return list(found)


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

    assert names(inline_calls(tl.make_jaxpr(f)(1.5).jaxpr)) == ["jit"]


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
    assert inline_calls(jaxpr) is jaxpr


def test_programs_that_are_met_in_turn_have_two_copies_at_most():
    """A function that the first of them calls is written into it, and is a function of its own for the others."""
    f = tl.jit(lambda x: tnp.sin(x) * x)
    first, *others = [tl.make_jaxpr(lambda x, k=k: f(x) * k)(X).jaxpr for k in range(4)]
    turns = InliningInTurn()
    found = [turns.params({"jaxpr": jaxpr})["jaxpr"] for jaxpr in (first, *others)]
    assert names(found[0]) == ["sin", "mul", "mul"]
    assert [names(jaxpr) for jaxpr in found[1:]] == [["jit", "mul"]] * 3
    assert len({jaxpr.eqns[0].params["jaxpr"] for jaxpr in found[1:]}) == 1
    assert [turns.params({"jaxpr": jaxpr})["jaxpr"] for jaxpr in (first, *others)] == found


def test_programs_are_remembered():
    """In each turn the same objects, so that what is derived from them is derived once."""
    f = tl.jit(lambda x: tnp.sin(x) * x)
    programs = [tl.make_jaxpr(lambda x, k=k: f(x) * k)(X).jaxpr for k in range(3)]

    def rewritten() -> list[Jaxpr]:
        turns = InliningInTurn()
        return [turns.params({"jaxpr": jaxpr})["jaxpr"] for jaxpr in programs]

    assert rewritten() == rewritten()


def test_branches_are_counted_together():
    f = tl.jit(lambda x: tnp.sin(x) * x)
    (eqn,) = tl.make_jaxpr(lambda x: lax.cond(x[0] > 0, f, lambda x: f(x) * 2, x))(X).jaxpr.eqns[-1:]
    branches = InliningInTurn().params(eqn.params)["branches"]
    assert sorted(map(names, branches)) == [["jit"], ["jit", "mul"]]


def test_gradients_of_functions_that_call_one():
    """n functions of one that each calls: twice that one, not n times."""
    g = tl.jit(lambda x: tnp.sin(tnp.cos(tnp.sin(tnp.cos(x)))))
    steps = [tl.jit(lambda x, k=k: g(x) * k) for k in range(1, 9)]

    def f(x: Any, n: int) -> Any:
        for step in steps[:n]:
            x = step(x)
        return tnp.sum(x)

    def sines(n: int) -> int:
        programs = distinct(tl.make_jaxpr(tl.grad(lambda x: f(x, n)))(X).jaxpr)
        return sum(names(jaxpr).count("sin") for jaxpr in programs)

    assert [sines(n) for n in (1, 2, 5, 8)] == [4, 8, 8, 8]  # with those of derivatives of cosines
    pushed = tl.jvp(lambda x: f(x, 8), (X,), (X,))[1]
    np.testing.assert_allclose(np.vdot(tl.grad(lambda x: f(x, 8))(X), X), pushed, rtol=1e-12)
    np.testing.assert_allclose(np.vdot(tl.jit(tl.grad(lambda x: f(x, 8)))(X), X), pushed, rtol=1e-12)


def test_programs_made_of_one_another_share_variables():
    """A function and its derivative, each called once: variables of one are of the other, too."""
    f = tl.jit(lambda x: tnp.sin(x) * x)

    def both(x: Any) -> Any:
        value, push = tl.linearize(f, x)
        return value + f(x) + push(x) + tl.jvp(f, (x,), (x,))[1]

    check(inline_calls(tl.make_jaxpr(both)(X).jaxpr))
    np.testing.assert_allclose(tl.jit(both)(X), 2 * np.sin(X) * X + 2 * X * (np.cos(X) * X + np.sin(X)))
