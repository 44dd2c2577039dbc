"""Rules for tangents: they must be linear, and fit the function and its arguments, or be told exactly why not."""

import inspect

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import enable_x64
from tests.close import some_roundings as close
from tests.messages import raises, short, text_of

X, Y = np.array(0.5), np.array(3.0)


def in_jit(f):
    return lambda *args: tl.jit(f)(*args)


each_way = pytest.mark.parametrize("way", [lambda f: f, in_jit], ids=["plain", "jit"])


def truth(x, y):
    return x, y


# ---- linearity ------------------------------------------------------------------------------------------------


def with_tangent(tangent, **options):
    @tl.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda primals, tangents: (f(*primals), tangent(primals[0], tangents[0])), **options)
    return f


DOT = "\u0307"  # over linear variables: a prime below
NONLINEAR = {
    "bilinear": (lambda x, t: t * t, "mul multiplies two values that are both linear", "c':~f64[] = mul b' b'"),
    "nonlinear primitive": (lambda x, t: tnp.sin(t), "sin is applied to a linear value", "c':~f64[] = sin b'"),
    "affine": (lambda x, t: t + x, "add combines a linear value with a constant", "c':~f64[] = add b' a"),
    "constant": (lambda x, t: tnp.cos(x), "its result float64[] does not depend on its arguments", "c:~f64[] = cos a"),
    "predicate depends on linear input": (
        lambda x, t: tnp.where(t > 0, t, 0),
        "select_n goes by what gt makes of a linear value",
        "d':~f64[] = select_n c' 0.0 b'",
    ),
}
MODES = {
    "jvp": lambda f: tl.jvp(f, (0.5,), (1.0,)),
    "grad": lambda f: tl.grad(f)(0.5),
    "linearize": lambda f: tl.linearize(f, 0.5),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reason", NONLINEAR)
def test_rules_must_be_linear(reason, mode):
    tangent, why, equation = NONLINEAR[reason]
    dotted = equation.replace("'", DOT)
    begin = (
        "custom_jvp: the tangent that the rule of f returns is not linear in the tangents.\n"
        f"  f is not linear ({reason}): {why}.\n  {dotted}\n"
        f"  It was reached from {short(__file__)}:"
    )
    end = "\n  If that is meant, define the rule with f.defjvp(..., check_linear=False)."
    with enable_x64():
        f = with_tangent(tangent)
        for _ in range(2):  # what was found wrong once is looked at again
            with pytest.raises(tl.errors.LinearityError) as caught:
                MODES[mode](f)
            text = str(caught.value)
            assert text.startswith(begin) and text.endswith(end)
            assert inspect.getsource(tangent).strip().splitlines()[0] in text


@pytest.mark.parametrize("mode", MODES)
def test_rules_are_checked_under_jit_too(mode):
    with pytest.raises(tl.errors.LinearityError, match="is not linear in the tangents"):
        MODES[mode](tl.jit(with_tangent(lambda x, t: t * t)))


def test_rules_may_be_nonlinear_if_they_say_so():
    f = with_tangent(lambda x, t: tnp.clip(t, -1, 1), check_linear=False)
    close(tl.jvp(f, (X,), (3.0,))[1], 1)
    close(tl.jit(lambda t: tl.jvp(f, (X,), (t,))[1])(3.0), 1)
    with pytest.raises(NotImplementedError, match=r"m(ax|in)"):
        tl.grad(f)(X)


LINEAR = {
    "scaled": lambda x, t: tnp.cos(x) * t,
    "zero": lambda x, t: tnp.zeros_like(t),
    "known zero": lambda x, t: np.zeros(()),
    "masked": lambda x, t: tnp.where(x > 0, t, 2 * t),
    "called": lambda x, t: tl.jit(lambda t: 2 * t)(t),
    "looped": lambda x, t: tl.lax.fori_loop(0, 3, lambda i, t: 2 * t, t),
    "differentiated": lambda x, t: tl.jvp(tnp.sin, (x,), (t,))[1],
    "sum": lambda x, t: tnp.sum(tnp.stack([t, x * t])),
}


@pytest.mark.parametrize("way", [lambda f: f, in_jit])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_rules(name, way):
    f, t = way(with_tangent(LINEAR[name])), np.array(1.0)
    close(tl.jvp(f, (X,), (t,))[1], LINEAR[name](X, t))
    close(tl.grad(f)(X), LINEAR[name](X, t))


def test_rules_that_look_at_values_are_not_checked():
    f = with_tangent(lambda x, t: 2 * t if x > 0 else t)
    close(tl.grad(f)(X), 2)


def test_rules_are_checked_once():
    calls = []

    def tangent(x, t):
        calls.append(x)
        return t * x

    f = with_tangent(tangent)
    tl.grad(f)(X)
    first = len(calls)
    tl.grad(f)(X)
    assert len(calls) - first < first


# ---- rules that do not fit ------------------------------------------------------------------------------------


def test_no_rule():
    f = tl.custom_jvp(truth)
    with raises(AttributeError, "custom_jvp: truth has no rule: define one with defjvp."):
        f(1.0, 2.0)


def test_arguments_that_are_no_arrays():
    f = tl.custom_jvp(lambda n, p: p, nondiff_argnums=0)
    f.__name__ = "f"
    f.defjvp(lambda n, p, t: (p, t))
    message = (
        "custom_jvp: argument p['a'] of f is 'abc' of type str, which is not an array.\n"
        "  Name it in nondiff_argnums if it is not to be differentiated."
    )
    with raises(TypeError, message):
        f(1, {"a": "abc"})


DIFFER = "custom_jvp: the rule of f returned a value and a tangent that differ in structure.\n"


@pytest.mark.parametrize(
    "rule, message",
    [
        (lambda p, t: p[0], "custom_jvp: the rule of f must return (value, tangent), but returned {p}."),
        (
            lambda p, t: (p[0], (t[0], t[0])),
            f"{DIFFER}  The root is a leaf in the value, a tuple of 2 in the tangent.",
        ),
        (
            lambda p, t: (p[0], None),
            f"{DIFFER}  The root is a leaf in the value, None in the tangent.",
        ),
        (
            lambda p, t: (p[0], np.ones(3)),
            "custom_jvp: a tangent from the rule of f is float64[3], but its value float64[] asks for float64[].",
        ),
        (
            lambda p, t: (p[0], t[0].astype("float32")),
            "custom_jvp: a tangent from the rule of f is float32[], but its value float64[] asks for float64[].",
        ),
        (
            lambda p, t: (p[0], "abc"),
            "custom_jvp: the tangent of the rule of f is 'abc' of type str, which is not an array.",
        ),
    ],
)
@each_way
def test_rules_that_do_not_fit(way, rule, message):
    @tl.custom_jvp
    def f(x):
        return x

    f.defjvp(rule)
    with pytest.raises(TypeError) as caught:
        tl.grad(way(f))(X)
    shown = text_of(caught.value)
    assert shown == message or ("{p}" in message and shown.startswith(message.split("{p}")[0]))


@pytest.mark.parametrize(
    "value, difference",
    [
        ((X, X), "another structure.\n  The root is a leaf in the function's value, a tuple of 2 in the rule's."),
        (np.ones(3), "other types.\n  value is float64[] by the function, float64[3] by the rule."),
    ],
)
def test_rule_with_another_value_under_jit(value, difference):
    @tl.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (value, value))
    message = f"custom_jvp: the rule of f must return the value of the function, but that has {difference}"
    with raises(TypeError, message):
        tl.grad(tl.jit(f))(X)


def test_errors_of_rules_name_their_place():
    def f_bwd(res, ct):
        return (ct, ct)

    def f_fwd(x):
        return x, None

    def f_jvp(primals, tangents):
        return primals, None

    backward, forward, pushed = tl.custom_vjp(lambda x: x), tl.custom_vjp(lambda x: x), tl.custom_jvp(lambda x: x)
    backward.defvjp(f_fwd, f_bwd)
    forward.defvjp(lambda x: f_jvp(x, x)[:1], f_bwd)
    pushed.defjvp(f_jvp)
    places = [
        "def f_bwd(res, ct):",
        "forward.defvjp(lambda x: f_jvp(x, x)[:1], f_bwd)",
        "def f_jvp(primals, tangents):",
    ]
    for f, line in zip((backward, forward, pushed), places):
        with pytest.raises(TypeError) as caught:
            tl.grad(f)(X)
        assert str(caught.value).endswith(f", {line}")
        assert str(caught.value).count("\n  At tests/api/custom/test_rule_checks.py:") == 1


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (
            lambda f: f.defvjp(lambda n, x: (x, None), lambda res, ct: (ct,)),
            "custom_vjp: the backward rule <lambda> of f is called with 3 arguments, the argument of nondiff_argnums, "
            "then the residuals and the cotangent, but takes (res, ct).",
        ),
        (
            lambda f: f.defvjp(lambda x: (x, None), lambda n, res, ct: (ct,)),
            "custom_vjp: the forward rule <lambda> of f is called with 2 arguments, as f, but takes (x).",
        ),
        (
            lambda f: f.defjvp(lambda primals, tangents: (primals[0], tangents[0])),
            "custom_jvp: the rule of f is called with 3 arguments, the argument of nondiff_argnums, then the primals "
            "and the tangents, but takes (primals, tangents).",
        ),
    ],
)
@each_way
def test_rules_that_take_other_arguments(way, define, message):
    kind = tl.custom_jvp if "custom_jvp" in message else tl.custom_vjp
    f = kind(lambda n, x: x, nondiff_argnums=(0,))
    f.__name__ = "f"
    define(f)
    with raises(TypeError, message):
        tl.grad(way(lambda x: f(2, x)))(X)


def test_rules_of_any_signature_are_called():
    f = tl.custom_vjp(lambda n, x: n * x, nondiff_argnums=(0,))
    f.defvjp(lambda *args: (args[0] * args[1], None), lambda n, *args, scale=1.0: (n * scale * args[-1],))
    assert tl.grad(f, 1)(2.0, 3.0) == 2.0
    g = tl.custom_jvp(lambda x, y: x * y)
    g.defjvp(lambda *pair: (pair[0][0] * pair[0][1], pair[1][0] * pair[0][1]))
    assert tl.grad(g)(2.0, 3.0) == 3.0


def test_function_whose_result_is_no_array():
    f = tl.custom_jvp(lambda x: "abc")
    f.__name__ = "f"
    f.defjvp(lambda p, t: (p[0], t[0]))
    with raises(TypeError, "custom_jvp: the result of f is 'abc' of type str, which is not an array."):
        f(1.0)
