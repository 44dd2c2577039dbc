"""What is remembered of a program, and for how long."""

import gc
import weakref
from typing import Any

import tapeless as tl
from tapeless.tracer import core
from tapeless.tracer.jaxpr import Jaxpr


def test_a_function_is_called_once_for_each_program_and_arguments():
    calls = list[Any]()

    @core.memoize_by_program
    def names(jaxpr: Jaxpr, n: int) -> list[str]:
        calls.append(n)
        return [jaxpr.name] * n

    one, other = [tl.make_jaxpr(lambda x: x * x)(1.0).jaxpr for _ in range(2)]
    assert names(one, 2) is names(one, 2) and names(one, 3) is not names(other, 3)
    assert calls == [2, 3, 3]


def test_what_is_remembered_goes_with_its_program():
    """Also if it is the program itself."""

    @core.memoize_by_program
    def same(jaxpr: Jaxpr) -> Jaxpr:
        return jaxpr

    jaxpr = tl.make_jaxpr(lambda x: x * x)(1.0).jaxpr
    assert same(jaxpr) is same(jaxpr) is jaxpr
    lives = weakref.ref(jaxpr)
    gc.disable()
    try:  # without the collector of cycles
        del jaxpr
        assert lives() is None
    finally:
        gc.enable()
