"""custom_jvp: rules in every composition, with every kind of argument and closure."""

import functools
import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer.dtypes import float0
from tests.close import some_roundings as close
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, Y = np.array(0.5), np.array(3.0)


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

    @tl.custom_jvp
    def g(x, *, n=3.0):
        return x * n

    g.defjvp(lambda primals, tangents: (primals[0], 5.0 * tangents[0]))
    close(g(1.0), 3)
    close(tl.grad(g)(1.0), 5)


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


def scaled(x, n):
    f = tl.custom_jvp(lambda g, x, n: g(x) * n["n"][0], nondiff_argnums=(0, 2))

    @f.defjvp
    def rule(g, n, primals, tangents):
        return f(g, *primals, n), 10 * n["n"][0] * tl.grad(g)(primals[0]) * tangents[0]

    return f(tnp.sin, x, {"n": [n], "name": "a string"})


def test_traced_arrays_in_arguments_without_a_derivative():
    """Beside functions and strings."""
    xs, slope = np.array([0.5, 1.0]), 10 * 3 * math.cos(0.5)
    for way in (lambda f: f, tl.jit, lambda f: tl.jit(tl.jit(f))):
        mapped = tl.vmap(way(scaled))
        close(way(scaled)(X, Y), 3 * math.sin(0.5))
        close(tl.grad(way(scaled))(X, Y), slope)
        close(way(tl.grad(scaled))(X, Y), slope)
        close(tl.jacfwd(way(scaled))(X, Y), slope)
        close(tl.grad(tl.grad(way(scaled)))(X, Y), -10 * 3 * math.sin(0.5))
        close(way(tl.vmap(scaled))(xs, xs), np.sin(xs) * xs)
        close(tl.vmap(way(tl.grad(scaled)))(xs, xs), 10 * xs * np.cos(xs))
        close(tl.grad(lambda x, f=mapped: tnp.sum(f(x, xs)))(xs), 10 * xs * np.cos(xs))

    def looped(x):
        return tl.lax.scan(lambda x, n: (scaled(x, n), None), x, np.array([3.0]))[0]

    close(tl.grad(looped)(X), slope)
    close(tl.jit(tl.jacfwd(looped))(X), slope)


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


def closing(z):
    return closing_over(z)(2.0)


def closing_twice(z):
    return closing_over(z)(z)


@pytest.mark.parametrize("f", [closing, closing_twice])
@pytest.mark.parametrize("way", [tl.jit, lambda f: lambda z: tnp.sum(tl.vmap(f)(tnp.stack([z, z])))])
def test_closing_over_what_is_differentiated_in_a_program(way, f):
    message = (
        "custom_jvp: f closes over a value that is being differentiated, float64[], "
        f"for which its rule has no tangent.\n  It was called at {place(f, 'return')}.\n  Pass it as an argument."
    )
    with raises(TypeError, message):
        tl.grad(way(f))(Y)


IN_ORDERS = {
    "grad_jit": lambda f: tl.grad(tl.jit(f)),
    "jit_grad": lambda f: tl.jit(tl.grad(f)),
    "grad_jit_jit": lambda f: tl.grad(tl.jit(lambda x, z: tl.jit(f)(x, z))),
    "jvp_jit": lambda f: lambda x, z: tl.jvp(lambda x: tl.jit(f)(x, z), (x,), (1.0,))[1],
    "vmap_grad": lambda f: lambda x, z: tl.vmap(tl.grad(f))(tnp.stack([x, x]), tnp.stack([z, z]))[1],
    "vmap_grad_jit": lambda f: lambda x, z: tl.vmap(tl.grad(tl.jit(f)))(tnp.stack([x, x]), tnp.stack([z, z]))[1],
    "grad_vmap": lambda f: lambda x, z: tl.grad(lambda x: tl.vmap(f)(tnp.stack([x, 2 * x]), tnp.stack([z, z]))[0])(x),
    "grad_scan": lambda f: tl.grad(lambda x, z: tl.lax.scan(lambda x, z: (f(x, z), None), x, z[None])[0]),
    "jacfwd_scan": lambda f: tl.jacfwd(lambda x, z: tl.lax.scan(lambda x, z: (f(x, z), None), x, z[None])[0]),
}


@pytest.mark.parametrize("order", IN_ORDERS)
def test_closed_over_values_that_are_traced_are_operands(order):
    """They may be mapped, or belong to a program that is differentiated when it is written and they are gone."""
    close(IN_ORDERS[order](lambda x, z: closing_over(z)(x))(X, Y), 30)
    close(IN_ORDERS[order](lambda x, z: closing_over({"deep": [z]}["deep"][0])(x))(X, Y), 30)


@pytest.mark.parametrize("order", [order for order in IN_ORDERS if order != "jvp_jit"])
def test_closed_over_values_in_second_derivatives(order):
    """The rule calls the function again, whose rule needs them again."""
    f = IN_ORDERS[order](lambda x, z: closing_over(z)(x) * x)  # 10 z x + z x, as the rule has it
    close(f(X, Y), 10 * 3 * 0.5 + 3 * 0.5)
    close(tl.grad(f)(X, Y), 60)
    close(tl.jacfwd(f)(X, Y), 60)


def test_rules_hold_values_of_their_own():
    """A rule closes over what its function does not: in a partial, a method, an object, a default."""

    class Scale:
        def __init__(self, z):
            self.z = z

        def rule(self, primals, tangents):
            return primals[0], self.z * tangents[0]

    def default(z):
        def rule(primals, tangents, z=z):
            return primals[0], z * tangents[0]

        return rule

    rules = [
        lambda z: Scale(z).rule,
        lambda z: functools.partial(lambda z, primals, tangents: (primals[0], z * tangents[0]), z),
        lambda z: functools.partial(Scale.rule, Scale([z][0])),
        default,
    ]
    for rule in rules:

        def f(x, z, rule=rule):
            identity = tl.custom_jvp(lambda x: x)
            identity.defjvp(rule(z))
            return identity(x)

        close(tl.grad(tl.jit(f))(X, Y), 3)
        close(tl.vmap(tl.grad(f))(np.ones(2), np.array([3.0, 4.0])), [3, 4])


def test_a_rule_that_raises_does_so_when_it_is_needed():
    def f(x, z):
        g = tl.custom_jvp(lambda x: x * z)

        def rule(primals, tangents):
            raise ValueError("not today")

        g.defjvp(rule)
        return g(x)

    close(tl.jit(f)(X, Y), 1.5)
    close(tl.vmap(f)(np.ones(2), np.ones(2)), [1, 1])
    with raises(ValueError, "not today"):
        tl.grad(tl.jit(f))(X, Y)


def test_functions_that_look_at_values_still_may_under_eager_transforms():
    def f(x, z):
        g = tl.custom_jvp(lambda x: x * z if x > 0 else x)
        g.defjvps(lambda t, y, x: 10 * t if x > 0 else t)
        return g(x)

    close(tl.vmap(lambda z: tl.grad(f)(2.0, z))(np.ones(2)), [10, 10])


# ---- the rest -------------------------------------------------------------------------------------------------


def test_rules_of_single_arguments_are_only_asked_where_there_is_a_tangent():
    f = tl.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, z, x, y: t * y, lambda t, z, x, y: 1 / 0)
    close(tl.grad(f)(X, Y), 3)
    close(tl.grad(tl.jit(f))(X, Y), 3)


def test_single_rules_without_a_derivative():
    f = tl.custom_jvp(lambda g, x: g(x), nondiff_argnums=0)
    f.__name__ = "f"
    message = (
        "custom_jvp: defjvps gives f rules that take all arguments as primals, but it has nondiff_argnums.\n"
        "  Use defjvp."
    )
    with raises(TypeError, message):
        f.defjvps(lambda t, y, x: t)


def test_it_prints_as_what_it_is_of():
    def doubled(x):
        return 2.0 * x

    assert repr(tl.custom_jvp(doubled)) == f"<custom_jvp of {place(doubled)}>"


def of_a(x, y, a):
    return x + y * a


class Nameless:
    def __call__(self, x, y):
        return of_a(x, y, 0.5)


@pytest.mark.parametrize("f", [functools.partial(of_a, a=0.5), Nameless()], ids=["partial", "object"])
def test_callables_without_a_name(f):
    with_jvp, with_vjp, mapped = tl.custom_jvp(f), tl.custom_vjp(f), tl.custom_batching.custom_vmap(f)
    with_jvp.defjvp(lambda primals, tangents: (f(*primals), 2 * sum(tangents)))
    with_vjp.defvjp(lambda x, y: (f(x, y), None), lambda _, ct: (2 * ct, 3 * ct))
    mapped.def_vmap(lambda n, _, x, y: (x * y, True))
    assert tl.grad(lambda a: with_jvp(*a))((1.0, 2.0)) == (2, 2) and with_jvp(1.0, y=2.0) == 2
    assert tl.grad(with_vjp, (0, 1))(1.0, 2.0) == (2, 3)
    assert list(tl.vmap(mapped)(tnp.arange(2.0), tnp.arange(2.0))) == [0, 1]
    assert tl.named_call(f)(1.0, 2.0) == 2
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'a'"):
        with_jvp(1.0, 2.0, a=3.0)
