"""Equal equations of known values become one, and only those that are equal to the last bit."""

from typing import Any

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplifications.common_subexpressions import (
    equal_but_for_names,
    without_common_subexpressions,
)

VECTOR = tl.ShapeDtypeStruct((3,), "float32")


def left(f: Any) -> list[str]:
    jaxpr = without_common_subexpressions(tl.make_jaxpr(f)(VECTOR).jaxpr)
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def test_equal_equations_become_one():
    assert left(lambda x: tnp.sin(x + 1) * tnp.sin(x + 1)) == ["add", "sin", "mul"]
    assert left(lambda x: x * tnp.sin(x) + tnp.sin(x) * x) == ["sin", "mul", "add"]
    assert left(lambda x: (x - tnp.sin(x)) * (tnp.sin(x) - x)) == ["sin", "sub", "sub", "mul"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x + 0.0) * (x + -0.0),
        lambda x: lax.optimization_barrier(x) * lax.optimization_barrier(x),
        lambda x: lax.slice(x, (0,), (2,)) * lax.slice(x, (1,), (3,)),
    ],
    ids=["zeros of either sign", "barriers", "params"],
)
def test_others_stay(f: Any):
    assert left(f) == [eqn.primitive.name for eqn in tl.make_jaxpr(f)(VECTOR).eqns]


def test_the_same_object_if_there_are_none():
    jaxpr = tl.make_jaxpr(tnp.sin)(VECTOR).jaxpr
    assert without_common_subexpressions(jaxpr) is jaxpr


def test_programs_are_equal_but_for_names():
    programs = {
        "sum": lambda x: tnp.sin(x) + tnp.cos(x),
        "sum of zero": lambda x: x + 0.0,
        "of minus zero": lambda x: x + -0.0,
        "difference": lambda x: tnp.sin(x) - tnp.cos(x),
        "turned": lambda x: tnp.cos(x) - tnp.sin(x),
        "first": lambda x: (tnp.sin(x), tnp.cos(x))[0],
        "one more": lambda x: (tnp.sin(x), tnp.cos(x)),
        "in the other order": lambda x: (tnp.sin(x), tnp.cos(x))[::-1],
        "input": lambda x: (x, x),
    }
    each = {name: [tl.make_jaxpr(f)(VECTOR).jaxpr for _ in range(2)] for name, f in programs.items()}
    for name, (a, _) in each.items():
        for other, (_, b) in each.items():
            assert equal_but_for_names(a, b) == (name == other), (name, other)


def test_equal_linear_equations_are_transposed_once():
    """Layers that each normalize their argument: one sum of cotangents passes through the normalization."""

    def f(x: Any) -> Any:
        def centred() -> Any:
            return x - tnp.mean(x)

        return centred() * tnp.sin(x), centred() * tnp.cos(x)

    linear = tl.unzip(f, VECTOR).linear
    assert [eqn.primitive.name for eqn in linear.jaxpr.eqns].count("reduce_sum") == 1
