"""custom_jvp: rules in every composition, and what is said of rules that do not fit."""

import functools
import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.dtypes import float0
from tests.messages import place, raises

X, Y = np.array(0.5), np.array(3.0)


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-14, atol=1e-15)


@tl.custom_jvp
def scaled_sine(x, y):
    """sin(x) y"""
    return tnp.sin(x) * y


@scaled_sine.defjvp
def scaled_sine_jvp(primals, tangents):
    """Ten times the truth in y, to see that it is used."""
    (x, y), (t, u) = primals, tangents
    return scaled_sine(x, y), tnp.cos(x) * y * t + 10 * tnp.sin(x) * u


DX, DY = 3 * math.cos(0.5), 10 * math.sin(0.5)


def truth(x, y):
    """The function that the rule is the derivative of, up to second order."""
    return x, y


# ---- compositions ---------------------------------------------------------------------------------------------


def in_jit(f):
    return lambda *args: tl.jit(f)(*args)


def twice_in_jit(f):
    return lambda *args: tl.jit(lambda *args: tl.jit(f)(*args))(*args)


each_way = pytest.mark.parametrize("way", [lambda f: f, in_jit, twice_in_jit], ids=["plain", "jit", "jit_jit"])


@each_way
def test_value(way):
    close(way(scaled_sine)(X, Y), 3 * math.sin(0.5))


@each_way
def test_first_derivatives(way):
    f = way(scaled_sine)
    close(tl.grad(f, (0, 1))(X, Y), (DX, DY))
    close(tl.jit(tl.grad(f, (0, 1)))(X, Y), (DX, DY))
    close(tl.jvp(f, (X, Y), (2.0, 3.0))[1], 2 * DX + 3 * DY)
    close(tl.linearize(f, X, Y)[1](2.0, 3.0), 2 * DX + 3 * DY)
    close(tl.vjp(f, X, Y)[1](2.0), (2 * DX, 2 * DY))


@each_way
def test_derivative_in_one_argument_only(way):
    """The tangents of the others are zeros that the rule computes with."""
    f = way(scaled_sine)
    close(tl.grad(f)(X, Y), DX)
    close(tl.grad(f, 1)(X, Y), DY)
    close(tl.grad(lambda x: f(x, 3.0) + x)(X), DX + 1)


@each_way
def test_second_derivatives(way):
    f = way(scaled_sine)
    close(tl.grad(tl.grad(f))(X, Y), -3 * math.sin(0.5))
    close(tl.grad(tl.grad(f), 1)(X, Y), math.cos(0.5))
    close(tl.grad(tl.grad(f, 1), 0)(X, Y), 10 * math.cos(0.5))
    close(tl.jvp(tl.grad(f), (X, Y), (1.0, 0.0))[1], -3 * math.sin(0.5))
    close(tl.grad(lambda x: tl.jvp(f, (x, Y), (1.0, 0.0))[1])(X), -3 * math.sin(0.5))


@each_way
def test_third_derivative(way):
    close(tl.grad(tl.grad(tl.grad(way(scaled_sine))))(X, Y), -DX)


def test_inside_a_larger_function():
    def f(x):
        return tnp.sum(scaled_sine(x, 2 * x) ** 2)

    x = np.array([0.5, 1.0])
    tangent = 2 * (np.sin(x) * 2 * x) * (np.cos(x) * 2 * x + 20 * np.sin(x))
    for g in (tl.grad(f), tl.jit(tl.grad(f)), tl.grad(tl.jit(f))):
        close(g(x), tangent)


def test_calls_of_one_type_share_one_function():
    text = tl.jit(lambda x: scaled_sine(scaled_sine(x, 2 * x), x)).lower(X).as_text()
    assert text.count("func.func") == 2


def test_linear_transpose_of_a_linear_one():
    double = tl.custom_jvp(lambda x: 2 * x)
    double.defjvps(lambda t, y, x: 2 * t)
    close(tl.linear_transpose(double, X)(np.array(3.0)), (6,))
    close(tl.linear_transpose(tl.jit(lambda x: double(double(x))), X)(np.array(3.0)), (12,))


# ---- pytrees, names, defaults ---------------------------------------------------------------------------------


def test_pytrees():
    @tl.custom_jvp
    def f(p, q):
        return {"sum": p["a"] + q[0], "square": q[0] ** 2}

    @f.defjvp
    def f_jvp(primals, tangents):
        (p, q), (dp, dq) = primals, tangents
        return f(p, q), {"sum": dp["a"] + dq[0], "square": 20 * q[0] * dq[0]}

    for way in (lambda g: g, tl.jit):
        gradient = tl.grad(way(lambda p, q: f(p, q)["square"] + 3 * f(p, q)["sum"]), (0, 1))({"a": X}, [Y])
        close(gradient[0]["a"], 3)
        close(gradient[1], [63])


@pytest.mark.parametrize("way", [lambda f: f, tl.jit])
def test_names_and_defaults_become_positions(way):
    @tl.custom_jvp
    def f(b, a=2.0):
        return b * b * a

    f.defjvps(lambda t, y, b, a: 2 * b * a * t, None)
    close(tl.grad(way(lambda b: f(b)))(X), 2)
    close(tl.grad(way(lambda b: f(a=5.0, b=b)))(X), 5)
    close(tl.grad(way(lambda a: f(0.5, a=a)))(X), 0)


def test_names_only():
    @tl.custom_jvp
    def f(x, *, n):
        return x

    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with raises(TypeError, "custom_jvp: f takes n by name only, but its rule takes positions."):
        f(1.0, n=2)
    with raises(TypeError, "missing a required argument: 'x'"):
        f()


def test_integers_have_no_tangent():
    @tl.custom_jvp
    def f(x, n):
        return x * n, n + 1

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, n), (t, no) = primals, tangents
        assert no.dtype == float0
        return f(x, n), (5 * t, no)

    close(tl.grad(lambda x: f(x, 3)[0])(X), 5)
    close(tl.jit(tl.grad(lambda x: tl.jit(f)(x, 3)[0]))(X), 5)


def test_wraps_its_function():
    assert (scaled_sine.__name__, scaled_sine.__doc__) == ("scaled_sine", "sin(x) y")


def test_defjvps_without_any_rule_is_zero():
    step = tl.custom_jvp(lambda x: tnp.floor(x) + 0 * x)
    step.defjvps(None)
    close(tl.grad(lambda x: step(x) + 2 * x)(X), 2)


@pytest.mark.parametrize("way", [lambda f: f, in_jit])
def test_rule_may_return_a_constant_zero(way):
    rounded = tl.custom_jvp(lambda x: tnp.round(x))
    rounded.defjvp(lambda primals, tangents: (rounded(*primals), tnp.zeros_like(primals[0])))
    x = np.array([0.4, 1.6])
    close(tl.grad(way(lambda x: tnp.sum(rounded(x) * x)))(x), [0, 2])
    close(tl.grad(tl.grad(way(lambda x: rounded(x) * x * x)))(np.array(1.6)), 4)


@pytest.mark.parametrize("way", [lambda f: f, in_jit])
def test_rule_may_use_arrays_of_its_own(way):
    w, v = np.array([2.0, 3.0]), tnp.asarray(np.array([5.0, 7.0]))
    f = tl.custom_jvp(lambda x: x * w * v)
    f.defjvps(lambda t, y, x: t * w * v * 10)
    close(tl.grad(way(lambda x: tnp.sum(f(x))))(np.ones(2)), [100, 210])


# ---- arguments that are not differentiated --------------------------------------------------------------------


@functools.partial(tl.custom_jvp, nondiff_argnums=(0, 2))
def applied(g, x, n=3):
    return g(x) * n


@applied.defjvp
def applied_jvp(g, n, primals, tangents):
    return applied(g, *primals, n), 100.0 * n * tangents[0]


@pytest.mark.parametrize("way", [lambda f: f, in_jit])
def test_nondiff_argnums(way):
    close(way(lambda x: applied(tnp.sin, x, 2))(X), 2 * math.sin(0.5))
    close(tl.grad(way(lambda x: applied(tnp.sin, x, 2)))(X), 200)
    close(tl.grad(way(lambda x: applied(tnp.sin, x)))(X), 300)
    close(tl.grad(way(lambda x: applied(n=4, x=x, g=tnp.sin)))(X), 400)


def test_nondiff_argument_that_is_traced_has_no_derivative():
    f = tl.custom_jvp(lambda x, n: x * n, nondiff_argnums=(1,))
    f.defjvp(lambda n, primals, tangents: (f(*primals, n), tangents[0] * n))
    close(tl.grad(lambda x: f(x, x))(X), 0.5)
    close(tl.grad(f)(X, Y), 3)
    close(tl.jit(tl.grad(f))(X, Y), 3)


def test_nondiff_argnums_out_of_range():
    f = tl.custom_jvp(lambda x: x, nondiff_argnums=(1,))
    f.defjvp(lambda n, primals, tangents: (primals[0], tangents[0]))
    f.__name__ = "f"
    with raises(ValueError, "custom_jvp: nondiff_argnums names argument 1, but f was called with 1 argument."):
        f(1.0)


def test_nondiff_argnames():
    f = tl.custom_jvp(lambda x, n, g: g(x) * n, nondiff_argnames=("g", "n"))
    f.defjvp(lambda n, g, primals, tangents: (f(*primals, n, g), tangents[0] * n))
    close(tl.grad(lambda x: f(x, 3.0, tnp.sin))(X), 3)
    close(tl.grad(lambda x: f(g=tnp.sin, x=x, n=4.0))(X), 4)
    with raises(ValueError, "custom_jvp: nondiff_argnames names 'z', but truth has x, y."):
        tl.custom_jvp(truth, nondiff_argnames="z")


def test_methods():
    class Model:
        w = 3.0

        @functools.partial(tl.custom_jvp, nondiff_argnums=(0,))
        def scaled(self, x):
            return self.w * x

        @scaled.defjvp
        def scaled_jvp(self, primals, tangents):
            return self.scaled(*primals), 10 * tangents[0]

    close(Model().scaled(X), 1.5)
    close(tl.grad(Model().scaled)(X), 10)


# ---- closures -------------------------------------------------------------------------------------------------


def closing_over(z):
    @tl.custom_jvp
    def f(x):
        return x * z

    f.defjvps(lambda t, y, x: 10 * z * t)
    return f


@each_way
def test_closing_over_values_of_transforms_around(way):
    """Constants as far as the inner derivative is concerned."""
    close(way(lambda z: tl.grad(lambda x: closing_over(z)(x))(X))(Y), 30)
    close(tl.jit(lambda z: tl.grad(way(lambda x: closing_over(z)(x)))(X))(Y), 30)


def test_closing_over_what_is_differentiated():
    def f(z):
        return closing_over(z)(2.0)

    inside = place(closing_over, "return x * z").replace("(closing_over)", "(closing_over.<locals>.f)")
    message = (
        f"a traced array reached code outside of its transformation, through a closure: float64[] of {place(f)}, "
        f"traced for grad.\n  It was used at {inside}.\n"
        "  A function with its own derivative must take such a value as an argument; another thread cannot use it."
    )
    with raises(tl.errors.UnexpectedTracerError, message):
        tl.grad(f)(Y)
    with raises(tl.errors.UnexpectedTracerError, message.replace("for grad", "for jvp")):
        tl.jvp(f, (Y,), (1.0,))


def test_closing_over_what_is_differentiated_under_jit():
    message = (
        "custom_jvp: f closes over a value that is being differentiated, float64[], "
        "for which its rule has no tangent.\n  Pass it as an argument."
    )
    for f in (lambda z: closing_over(z)(2.0), lambda z: closing_over(z)(z)):
        with raises(TypeError, message):
            tl.grad(tl.jit(f))(Y)


# ---- rules that do not fit ------------------------------------------------------------------------------------


def test_no_rule():
    f = tl.custom_jvp(truth)
    with raises(AttributeError, "custom_jvp: truth has no rule: define one with defjvp."):
        f(1.0, 2.0)


def test_symbolic_zeros():
    with raises(NotImplementedError, "custom_jvp: symbolic_zeros=True is not supported."):
        tl.custom_jvp(truth).defjvp(lambda p, t: (p, t), symbolic_zeros=True)


LEAF, PAIR, NONE = "PyTreeDef(*)", "PyTreeDef((*, *))", "PyTreeDef(None)"


@pytest.mark.parametrize(
    "rule, message",
    [
        (lambda p, t: p[0], "custom_jvp: the rule of f must return (value, tangent), but returned {p}."),
        (
            lambda p, t: (p[0], (t[0], t[0])),
            f"custom_jvp: the rule of f returned a value of structure {LEAF}, but a tangent of structure {PAIR}.",
        ),
        (
            lambda p, t: (p[0], None),
            f"custom_jvp: the rule of f returned a value of structure {LEAF}, but a tangent of structure {NONE}.",
        ),
        (
            lambda p, t: (p[0], np.ones(3)),
            "custom_jvp: a tangent from the rule of f is float64[3], but its value float64[] asks for float64[].",
        ),
        (
            lambda p, t: (p[0], t[0].astype("float32")),
            "custom_jvp: a tangent from the rule of f is float32[], but its value float64[] asks for float64[].",
        ),
        (lambda p, t: (p[0], "abc"), "custom_jvp: the rule of f returned 'abc' of type str, which is not an array."),
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
    shown = str(caught.value)
    assert shown == message or ("{p}" in message and shown.startswith(message.split("{p}")[0]))


@pytest.mark.parametrize(
    "value, types", [((X, X), f"{PAIR} and (float64[], float64[])"), (np.ones(3), f"{LEAF} and (float64[3])")]
)
def test_rule_with_another_value_under_jit(value, types):
    @tl.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (value, value))
    message = (
        f"custom_jvp: the rule of f must return the value of the function, of structure {LEAF} and types (float64[]), "
        f"not of {types}."
    )
    with raises(TypeError, message):
        tl.grad(tl.jit(f))(X)


def test_function_whose_result_is_no_array():
    f = tl.custom_jvp(lambda x: "abc")
    f.__name__ = "f"
    f.defjvp(lambda p, t: (p[0], t[0]))
    with raises(TypeError, "custom_jvp: f returned 'abc' of type str, which is not an array."):
        f(1.0)
