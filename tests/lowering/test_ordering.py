"""The token that ordered effects pass on: where it goes in every kind of program."""

import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import ordering
from tapeless.tracer.check import check
from tests.messages import place, raises

X = np.float32(1)


def note(x):
    tl.debug.callback(note, x, ordered=True)
    return x


def in_order(f):
    return str(check(ordering.in_order(tl.make_jaxpr(f)(X).jaxpr)))


def test_a_program_without_order_is_left_as_it_is():
    program = tl.make_jaxpr(lambda x: (tl.debug.callback(note, x), x)[1])(X).jaxpr
    assert ordering.in_order(program) is program


def test_callbacks_are_chained_from_a_zero():
    assert in_order(lambda x: (note(x), note(x * x))[1]) == (
        "{ lambda a:~f32[]. let\n"
        "    b:i32[] = io_callback[callback=note result_avals=(i32[],) ordered=True] 0 a\n"
        "    c:~f32[] = mul a a\n"
        "    d:i32[] = io_callback[callback=note result_avals=(i32[],) ordered=True] b c\n"
        "  in c }"
    )


CALLS = {
    "jit": lambda x: tl.jit(note)(x),
    "checkpoint": lambda x: tl.checkpoint(note)(x),
    "cond": lambda x: lax.cond(x > 0, note, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, y: (note(c) + x, y), x, tnp.arange(3))[0],
    "while": lambda x: lax.while_loop(lambda c: c < x + 3, lambda c: note(c) + x, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_programs_take_the_token_and_give_it_on(name):
    """The rewritten program is well typed, begins with a token and ends with one."""
    program = ordering.in_order(tl.make_jaxpr(lambda x: note(CALLS[name](note(x))))(X).jaxpr)
    check(program)
    chained = [eqn for eqn in program.eqns if ordering.TOKEN in [v.aval for v in eqn.outvars]]
    assert [str(eqn.primitive) for eqn in chained] == ["io_callback", name, "io_callback"]
    for before, after in itertools.pairwise(chained):
        assert before.outvars[0] in after.invars


def test_a_program_that_is_called_twice_is_rewritten_once():
    f = tl.jit(note)
    program = ordering.in_order(tl.make_jaxpr(lambda x: f(f(x)))(X).jaxpr)
    first, second = program.eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]


def solved(x):
    """x / 2 by a solver that tells of each step, in order."""

    def solve(matvec, b):
        return lax.fori_loop(0, 3, lambda i, y: b - matvec(note(y)) + y, b)

    return lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True)


def test_solvers_are_called_with_the_token():
    program = ordering.in_order(tl.make_jaxpr(lambda x: note(solved(note(x))))(X).jaxpr)
    check(program)
    chained = [eqn for eqn in program.eqns if ordering.TOKEN in [v.aval for v in eqn.outvars]]
    assert [str(eqn.primitive) for eqn in chained] == ["io_callback", "jit", "io_callback"]


def test_solvers_with_ordered_effects_run_in_order():
    seen = []

    def told(x):
        tl.debug.callback(lambda y: seen.append(float(y)), x, ordered=True)
        return x

    def solve(matvec, b):
        return lax.fori_loop(0, 2, lambda i, y: (b - matvec(told(y))) / 4 + y, b)

    def f(x):
        told(-1.0)
        y = lax.custom_linear_solve(lambda y: 2.0 * y, x, solve, symmetric=True)
        told(-2.0)
        return y

    for run, backwards in ((f, []), (tl.jit(f), []), (tl.jit(tl.grad(f)), [1.0, 0.75])):
        seen.clear()
        run(X)
        tl.effects_barrier()
        assert seen == [-1.0, 1.0, 0.75, -2.0, *backwards]


def asked(x):
    return np.asarray(x)


def backward(r, ct):
    return (ct * tl.io_callback(asked, tl.ShapeDtypeStruct((), np.float32), r, ordered=True),)


def test_a_backward_rule_run_forwards_cannot_keep_an_order():
    f = tl.custom_vjp(tnp.sin)
    f.defvjp(lambda x: (tnp.sin(x), tnp.cos(x)), backward)

    def pushed(x):
        return tl.jvp(f, (x,), (x,))[1]

    np.testing.assert_allclose(tl.jit(tl.grad(f))(X), np.cos(X), rtol=1e-6)  # of float32
    said = (
        f"custom_vjp: forward mode runs the backward rule backward transposed, where io_callback at "
        f"{place(backward, 'io_callback')} cannot keep its order among other ordered effects.\n"
        f"  It was reached from {place(pushed, 'tl.jvp')}.\n"
        "  Use ordered=False in the rule, or give a rule for forward mode (tl.custom_jvp)."
    )
    with raises(NotImplementedError, said):
        tl.jit(pushed)(X)
