"""Effects of equations and programs, and that simplifications keep what has them."""

import numpy as np

import tapeless as tl
from tapeless import lax
from tapeless.tracer.jaxpr import Jaxpr, effects, effects_of

X = np.float32(1)
SCALAR = tl.ShapeDtypeStruct((), np.float32)


def host(x):
    return x


def look(x, **how):
    tl.debug.callback(host, x, **how)
    return x


def program(f) -> Jaxpr:
    return tl.make_jaxpr(f)(X).jaxpr


def test_effects_of_equations_are_those_of_the_programs_they_carry():
    cases = {
        lambda x: x + 1: set(),
        lambda x: tl.pure_callback(host, SCALAR, x): set(),
        lambda x: tl.io_callback(host, SCALAR, x): {"io"},
        lambda x: look(x): {"debug"},
        lambda x: look(x, ordered=True): {"debug", "ordered"},
        lambda x: tl.jit(look)(x): {"debug"},
        lambda x: lax.cond(x > 0, look, lambda x: tl.io_callback(host, SCALAR, x, ordered=True), x): {
            "debug",
            "io",
            "ordered",
        },
        lambda x: lax.scan(lambda c, _: (tl.jit(look)(c), None), x, None, length=2)[0]: {"debug"},
        lambda x: lax.while_loop(lambda c: look(c) < 0, lambda c: c + 1, x): {"debug"},
    }
    for f, expected in cases.items():
        assert effects_of(program(f)) == expected
        assert frozenset().union(*map(effects, program(f).eqns)) == expected


def test_dead_code_with_effects_stays():
    def f(x):
        tl.io_callback(host, SCALAR, x * 2)
        tl.jit(look)(x * 3)
        tl.pure_callback(host, SCALAR, x * 4)
        return x

    names = [str(eqn.primitive) for eqn in program(f).eqns]
    assert names == ["mul", "io_callback", "mul", "jit"]
