"""The token that ordered effects pass on: where it goes in every kind of program."""

import itertools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import ordering
from tapeless.tracer.check import check

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
        "    b:i32[] = io_callback[callback=note result_avals=(int32[],) ordered=True] 0 a\n"
        "    c:~f32[] = mul a a\n"
        "    d:i32[] = io_callback[callback=note result_avals=(int32[],) ordered=True] b c\n"
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
