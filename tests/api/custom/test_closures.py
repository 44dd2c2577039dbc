"""closure_convert: traced arrays of a closure become arguments."""

import functools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import place, raises

X, Y = np.array(0.5), np.array(3.0)


def test_without_traced_arrays_nothing_is_hoisted():
    converted, hoisted = tl.closure_convert(lambda x, p: {"y": x * Y + p["a"]}, X, {"a": 1.0})
    assert hoisted == []
    assert float(converted(np.array(2.0), {"a": 1.0})["y"]) == 7


@pytest.mark.parametrize("transform", [tl.grad, tl.jacfwd, lambda f: tl.jit(tl.grad(f)), lambda f: tl.grad(tl.jit(f))])
def test_what_is_differentiated_is_hoisted(transform):
    counts = []

    def f(z):
        converted, hoisted = tl.closure_convert(lambda x: x * tnp.sin(z) * Y, X)
        counts.append(len(hoisted))
        return converted(X, *[10 * h for h in hoisted])

    np.testing.assert_allclose(np.asarray(transform(f)(np.array(0.1))), 15 * np.cos(1.0))
    assert set(counts) == {1}


def test_integers_stay_in_the_closure():
    def f(n, z):
        converted, hoisted = tl.closure_convert(lambda x: x * n * z, X)
        assert len(hoisted) == 1
        return converted(X, *hoisted)

    assert float(tl.jit(f)(2, Y)) == 3


def test_with_a_rule_for_functions_of_functions():
    """What it is for: a rule that gives closures cotangents."""

    @functools.partial(tl.custom_vjp, nondiff_argnums=(0,))
    def evaluate(f, x, *consts):
        return f(x, *consts)

    def bwd(f, residuals, ct):
        return tuple(10 * g for g in tl.vjp(f, *residuals)[1](ct))

    evaluate.defvjp(lambda f, x, *consts: (evaluate(f, x, *consts), (x, *consts)), bwd)

    def outer(z):
        converted, hoisted = tl.closure_convert(lambda x: x * z * z, X)
        return evaluate(converted, X, *hoisted)

    for derivative in (tl.grad, tl.jacfwd, lambda f: tl.jit(tl.grad(f))):
        np.testing.assert_allclose(np.asarray(derivative(outer)(Y)), 30)


def test_another_structure():
    def f(x):
        return x

    converted, _ = tl.closure_convert(f, X)
    message = (
        f"closure_convert: {place(f)} is given arguments of another structure.\n"
        "  [0] is a leaf in those it was converted for, a dict with 'a' in those given."
    )
    with raises(TypeError, message):
        converted({"a": X})


def functions_with_rules(scale):
    """Functions that multiply by `scale()`, each with the rule that it does."""

    def f(x):
        return x * scale()

    jvp, vjp, batched = tl.custom_jvp(f), tl.custom_vjp(f), tl.custom_batching.custom_vmap(f)
    jvp.defjvp(lambda primals, tangents: (primals[0] * scale(), tangents[0] * scale()))
    vjp.defvjp(lambda x: (x * scale(), None), lambda _, ct: (ct * scale(),))
    batched.def_vmap(lambda size, in_batched, x: (x * scale(), True))
    return {"custom_jvp": jvp, "custom_vjp": vjp, "custom_vmap": batched}


PROGRAMS = {
    "call": lambda f: f,
    "jit": lambda f: tl.jit(lambda x: f(x)),
    "grad of jit": lambda f: tl.grad(tl.jit(lambda x: x * f(x))),
    "checkpoint": lambda f: tl.grad(tl.checkpoint(lambda x: x * f(x))),
    "scan": lambda f: tl.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]),
    "vmap": lambda f: lambda x: tl.vmap(f)(x[None])[0],
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vjp", "custom_vmap"])
def test_a_new_program_reads_python_variables_anew(rule, program):
    """As one that is traced anew does: what functions with rules were in the program before does not stay."""
    now = 1.0
    f = functions_with_rules(lambda: now)[rule]
    x = tnp.array(3.0)
    first = PROGRAMS[program](f)(x)
    now = 2.0
    assert PROGRAMS[program](f)(x) == (4 if program == "scan" else 2) * first
