"""`pmap` says what it cannot do, and what to use."""

import tapeless as tl
from tests.messages import raises


def test_pmap_is_refused_when_it_is_called():
    f = tl.pmap(lambda x: x, axis_name="i")
    message = (
        "pmap: a program runs on one device; several are not supported yet.\n"
        "  Use jit(vmap(f, axis_name=...)): the same function over the same axis, on one device."
    )
    with raises(NotImplementedError, message):
        f(1.0)
    with raises(TypeError, "pmap: expected a function, not 3."):
        tl.pmap(3)
