"""Programs that are the same but for names of variables and source lines have one form; others have not."""

import gc
import weakref

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.differentiate import equivalence
from tapeless.differentiate.equivalence import form_of

X = np.ones(3, np.float32)


def form(f, *args):
    return form_of(tl.make_jaxpr(f)(*args).jaxpr)


def loop(factor, length=3):
    return lambda x: lax.scan(lambda c, _: (tl.jit(lambda c: c * factor)(c), c), x, None, length=length)


def test_traced_again_it_is_the_same():
    first, again = form(loop(2.0), X), form(lambda y: loop(2.0)(y), 0 * X)
    assert first is again


@pytest.mark.parametrize(
    "f, g",
    [
        (lambda x: x + x, lambda x: x * x),
        (lambda x: x * 2.0, lambda x: x * 3.0),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x * 2.0, lambda x: 2.0 * x),
        (lambda x: (x, x), lambda x: (x,)),
        (lambda x: tnp.sin(tnp.cos(x)), lambda x: (tnp.cos(x), tnp.sin(x))[1]),
        (lambda x: tnp.sum(x, axis=0), lambda x: tnp.sum(x[None], axis=(0, 1))),
        (loop(2.0), loop(3.0)),
        (loop(2.0), loop(2.0, 4)),
    ],
)
def test_what_differs_is_another(f, g):
    assert form(f, X) is not form(g, X)


def test_types_and_linearity_count():
    def linear(x):
        return tl.linearize(lambda x: 2 * x, x)[1].jaxpr

    assert form(lambda x: x, X) is not form(lambda x: x, X[:2])
    assert form(lambda x: x, 1.0) is not form(lambda x: x, np.array(1.0, np.float32))
    assert form_of(linear(X)) is form_of(linear(X)) is not form(lambda x: 2 * x, X)


def test_calls_that_double_are_compared_in_time_proportional_to_their_text():
    def nested(x, depth=30):
        return nested_once(x, depth)

    def nested_once(x, depth):
        inner = tl.jit(lambda x: nested_once(x, depth - 1) if depth else tnp.sin(x))
        return inner(x) + inner(x)

    assert form(nested, X) is form(nested, X)


def test_forms_go_with_their_programs():
    program = tl.make_jaxpr(lambda x: x * 12345.0)(X).jaxpr
    known = weakref.ref(form_of(program))
    del program
    gc.collect()
    assert known() is None and known not in equivalence._known.values()
