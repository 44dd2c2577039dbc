"""What the tests of simplifications look at: the operations of a program, before and after."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless as tl
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.jaxpr import Jaxpr
from tests.stepping import by_steps

X = np.linspace(0.5, 2.0, 16)
A = np.arange(256.0).reshape(16, 16) / 100
B = np.cos(A)


def after(f: Callable[..., Any], *args: Any) -> Jaxpr:
    """The simplified program of a function, which is found to compute the same."""
    closed = tl.make_jaxpr(f)(*args)
    new = simplify_program(closed.jaxpr)
    for one, other in zip(by_steps(new, [*closed.consts, *args]), by_steps(closed.jaxpr, [*closed.consts, *args])):
        # sums of some 16 numbers of the size of 1, in another order
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
        for part in (np.real, np.imag):
            assert np.signbit(part(one)).tolist() == np.signbit(part(other)).tolist()
    return new


def names(jaxpr: Jaxpr) -> list[str]:
    """The operations, in order."""
    return [str(eqn.primitive) for eqn in jaxpr.eqns]


def largest(jaxpr: Jaxpr) -> int:
    """Elements of the largest value that is computed."""
    return max((v.aval.size for eqn in jaxpr.eqns for v in eqn.outvars), default=0)
