"""custom_vjp: backward rules in every composition, forward mode by their transposes, and what is said of misfits."""

import functools
import math

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import enable_x64, lax
from tapeless.tracer.dtypes import float0
from tests.api.comparing import each_way
from tests.close import small_programs as close
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, Y = np.array(0.5), np.array(3.0)
XS, YS = np.array([0.5, 0.7]), np.array([3.0, 2.0])


@tl.custom_vjp
def scaled_sine(x, y):
    """sin(x) y"""
    return tnp.sin(x) * y


def scaled_sine_fwd(x, y):
    return scaled_sine(x, y), (tnp.cos(x), tnp.sin(x), y)


def scaled_sine_bwd(residuals, ct):
    """Ten times the truth in y, to see that it is used."""
    cosine, sine, y = residuals
    return cosine * y * ct, 10 * sine * ct


scaled_sine.defvjp(scaled_sine_fwd, scaled_sine_bwd)
DX, DY = 3 * math.cos(0.5), 10 * math.sin(0.5)
# Of the derivatives as the rule has them: the second in x and in x and y, the truth; in y and x, ten times that.
SECOND = ((-3 * math.sin(0.5), math.cos(0.5)), (10 * math.cos(0.5), 0.0))

# ---- compositions ---------------------------------------------------------------------------------------------


@each_way
def test_value(way):
    close(way(scaled_sine)(X, Y), 3 * math.sin(0.5))
    assert (scaled_sine.__name__, scaled_sine.__doc__) == ("scaled_sine", "sin(x) y")


@each_way
def test_reverse_mode(way):
    f = way(scaled_sine)
    close(tl.grad(f, (0, 1))(X, Y), (DX, DY))
    close(tl.jit(tl.grad(f, (0, 1)))(X, Y), (DX, DY))
    close(tl.vjp(f, X, Y)[1](2.0), (2 * DX, 2 * DY))
    close(tl.grad(f)(X, Y), DX)
    close(tl.grad(f, 1)(X, Y), DY)
    close(tl.grad(lambda x: f(x, 3.0) + x)(X), DX + 1)


@each_way
def test_forward_mode_is_the_transpose_of_the_rule(way):
    f = way(scaled_sine)
    close(tl.jvp(f, (X, Y), (2.0, 3.0)), (3 * math.sin(0.5), 2 * DX + 3 * DY))
    close(tl.jit(lambda x, y: tl.jvp(f, (x, y), (2.0, 3.0))[1])(X, Y), 2 * DX + 3 * DY)
    close(tl.jvp(lambda x: f(x, Y), (X,), (2.0,))[1], 2 * DX)
    close(tl.jacfwd(f, (0, 1))(X, Y), (DX, DY))
    close(tl.jacrev(f, (0, 1))(X, Y), (DX, DY))


@each_way
def test_linearize(way):
    value, push = tl.linearize(way(scaled_sine), X, Y)
    close(value, 3 * math.sin(0.5))
    for apply in (push, tl.jit(push)):
        close(apply(2.0, 3.0), 2 * DX + 3 * DY)
    close(tl.vmap(push)(XS, YS), XS * DX + YS * DY)
    close(tl.linear_transpose(push, X, Y)(2.0), (2 * DX, 2 * DY))
    close(tl.grad(push, (0, 1))(X, Y), (DX, DY))


@each_way
@pytest.mark.parametrize("outer", [tl.jacfwd, tl.jacrev])
@pytest.mark.parametrize("inner", [tl.jacfwd, tl.jacrev])
def test_second_derivatives(way, outer, inner):
    derivative = outer(inner(way(scaled_sine), (0, 1)), (0, 1))
    close(derivative(X, Y), SECOND)
    close(tl.jit(derivative)(X, Y), SECOND)


@each_way
def test_higher_derivatives(way):
    f = way(scaled_sine)
    close(tl.hessian(f, (0, 1))(X, Y), SECOND)
    close(tl.jvp(tl.grad(f), (X, Y), (1.0, 0.0))[1], SECOND[0][0])
    close(tl.grad(lambda x: tl.jvp(f, (x, Y), (1.0, 0.0))[1])(X), SECOND[0][0])
    close(tl.grad(tl.grad(tl.grad(f)))(X, Y), -DX)
    close(tl.jacfwd(tl.jacfwd(tl.jacfwd(f)))(X, Y), -DX)


@each_way
def test_vmap(way):
    f, dx, dy = way(scaled_sine), np.cos(XS) * YS, 10 * np.sin(XS)
    close(tl.vmap(f)(XS, YS), np.sin(XS) * YS)
    close(tl.vmap(tl.grad(f, (0, 1)))(XS, YS), (dx, dy))
    close(tl.vmap(tl.grad(f, 1), (0, None))(XS, Y), dy)
    close(tl.grad(lambda x, y: tnp.sum(tl.vmap(f)(x, y)), (0, 1))(XS, YS), (dx, dy))
    close(tl.grad(lambda y: tnp.sum(tl.vmap(f, (0, None))(XS, y)))(Y), np.sum(dy))
    close(tl.jvp(tl.vmap(f), (XS, YS), (XS, YS))[1], dx * XS + dy * YS)
    close(tl.vmap(lambda x, y: tl.jvp(f, (x, y), (x, y))[1])(XS, YS), dx * XS + dy * YS)
    close(tl.vmap(tl.hessian(f))(XS, YS), -np.sin(XS) * YS)
    close(tl.jit(tl.vmap(tl.vmap(tl.grad(f), (None, 0)), (0, None)))(XS, YS), np.outer(np.cos(XS), YS))


@each_way
def test_in_loops_branches_and_checkpoints(way):
    f = way(scaled_sine)

    def unrolled(x):
        for y in YS:
            x = f(x, y)
        return x

    def scanned(x):
        return lax.scan(lambda x, y: (f(x, y), None), x, YS)[0]

    def branching(x):
        return lax.cond(x > 0, lambda x: f(f(x, 3.0), 2.0), lambda x: x, x)

    wanted = tl.grad(unrolled)(X), tl.hessian(unrolled)(X)
    for g in (scanned, branching, tl.checkpoint(unrolled), tl.checkpoint(scanned)):
        close((tl.grad(g)(X), tl.hessian(g)(X)), wanted)
        close((tl.jit(tl.jacfwd(g))(X), tl.jit(tl.grad(tl.grad(g)))(X)), wanted)


def test_the_backward_rule_runs_once_for_a_gradient_and_keeps_its_shape():
    """No derivative of it is taken for a first derivative, nor is the function's body differentiated."""

    @tl.custom_vjp
    def f(x):
        return lax.while_loop(lambda y: y < 1, lambda y: 2 * y, x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (tnp.exp(x) * ct,))
    text = str(tl.make_jaxpr(tl.grad(f))(X))
    assert text.count("exp") == 1 and "cos" not in text
    close(tl.grad(f)(X), math.exp(0.5))
    close(tl.jacfwd(f)(X), math.exp(0.5))


def test_programs_show_where_the_rule_is():
    text = str(tl.make_jaxpr(lambda x: tl.jvp(lambda x: scaled_sine(x, 3.0), (x,), (x,))[1])(X))
    pull = "Pull(jaxpr=@scaled_sine_bwd, n=3, name='scaled_sine_bwd')"
    assert f"custom_linear[pull={pull} n=3]" in text
    linear = str(tl.linearize(scaled_sine, X, Y)[1])
    assert "custom_linear[pull=transpose_scaled_sine_bwd n=3]" in linear
    backwards = str(tl.make_jaxpr(lambda x: tl.grad(tl.jit(scaled_sine))(x, 3.0))(X))
    assert f"custom_linear[pull={pull[:-1]}, transposed=False) n=3]" in backwards


def test_values_of_the_host_in_eager_rules():
    """Residuals are known where nothing is traced, so that rules may look at them."""
    f = tl.custom_vjp(lambda x, n: x**n)
    f.defvjp(lambda x, n: (f(x, n), (x, n)), lambda res, ct: (ct * res[0] if res[1] > 2 else -ct, None))
    close(tl.grad(f)(X, 3), 0.5)
    close(tl.grad(f)(X, 1), -1)


# ---- pytrees, names, defaults, types --------------------------------------------------------------------------


@each_way
def test_pytrees(way):
    @tl.custom_vjp
    def f(p, q):
        return {"sum": p["a"] + q[0], "square": q[0] ** 2}

    def bwd(residuals, ct):
        assert residuals["none"] is None
        return {"a": ct["sum"], "b": None}, [20 * residuals["q"][0] * ct["square"] + ct["sum"]]

    f.defvjp(lambda p, q: (f(p, q), {"q": q, "none": None}), bwd)
    p = {"a": X, "b": (X, X)}
    gradient = tl.grad(way(lambda p, q: f(p, q)["square"] + 3 * f(p, q)["sum"]), (0, 1))(p, [Y])
    close(gradient, ({"a": 3, "b": (0, 0)}, [63]))
    tangent = tl.jvp(way(lambda p, q: f(p, q)["square"]), (p, [Y]), (p, [Y]))[1]
    close(tangent, 180)


@each_way
@pytest.mark.parametrize("returned", [(None, 2.0), [None, 2.0]])
def test_none_is_zero(way, returned):
    f = tl.custom_vjp(lambda p, x: p[0] * x)
    f.defvjp(lambda p, x: (f(p, x), None), lambda _, ct: type(returned)([returned[0], returned[1] * ct]))
    close(tl.grad(way(f), (0, 1))((X, X), Y), ((0, 0), 2))
    close(tl.jvp(way(f), ((X, X), Y), ((X, X), X))[1], 1)


@each_way
def test_names_and_defaults_become_positions(way):
    @tl.custom_vjp
    def f(b, a=2.0):
        return b * b * a

    f.defvjp(lambda b, a: (f(b, a), (b, a)), lambda res, ct: (2 * res[0] * res[1] * ct, None))
    close(tl.grad(way(lambda b: f(b)))(X), 2)
    close(tl.grad(way(lambda b: f(a=5.0, b=b)))(X), 5)
    close(tl.grad(way(lambda a: f(0.5, a=a)))(X), 0)


@each_way
@pytest.mark.parametrize("of_integer", [None, 7, np.zeros((), np.int32)])
def test_integers_have_no_cotangent(way, of_integer):
    @tl.custom_vjp
    def f(x, n):
        return x * n, n + 1

    def bwd(n, cts):
        assert cts[1].dtype == float0
        return 5 * n * cts[0], of_integer

    f.defvjp(lambda x, n: (f(x, n), n), bwd)
    close(tl.grad(way(lambda x: f(x, 3)[0]))(X), 15)
    close(tl.jvp(way(lambda x: f(x, 3)), (X,), (2.0,))[1][0], 30)
    close(tl.jit(tl.grad(way(lambda x: f(x, 3)[0])))(X), 15)


def test_numbers_are_of_whatever_type():
    """A cotangent is converted where the argument is a Python number, which has no width of its own."""
    close(tl.grad(scaled_sine)(X, 3.0), DX)
    dx, dy = tl.grad(scaled_sine, (0, 1))(X, 3.0)
    assert (dx.dtype, dy.dtype) == (np.float64, np.float32) and abs(dy - DY) < 1e-6
    close(tl.jvp(lambda x: scaled_sine(x, 3.0), (X,), (2.0,))[1], 2 * DX)


def test_residuals_may_be_arguments_numbers_and_nothing():
    f = tl.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), [x, 3, 2.5, None, ()]), lambda res, ct: (res[0] * res[1] * res[2] * ct,))
    for g in (f, tl.jit(f)):
        close((tl.grad(g)(X), tl.jacfwd(g)(X), tl.grad(tl.grad(g))(X)), (3.75, 3.75, 7.5))


# ---- arguments that are not differentiated --------------------------------------------------------------------


@functools.partial(tl.custom_vjp, nondiff_argnums=(0, 2))
def applied(g, x, n=3):
    return g(x) * n


def applied_fwd(g, x, n):
    return applied(g, x, n), x


def applied_bwd(g, n, x, ct):
    return (10 * n * tl.grad(g)(x) * ct,)


applied.defvjp(applied_fwd, applied_bwd)


@each_way
def test_nondiff_argnums(way):
    """The forward rule takes them in their places, the backward rule first."""
    close(way(lambda x: applied(tnp.sin, x, 2))(X), 2 * math.sin(0.5))
    for derivative in (tl.grad, tl.jacfwd):
        close(derivative(way(lambda x: applied(tnp.sin, x, 2)))(X), 20 * math.cos(0.5))
        close(derivative(way(lambda x: applied(tnp.sin, x)))(X), 30 * math.cos(0.5))
        close(derivative(way(lambda x: applied(n=4, x=x, g=tnp.sin)))(X), 40 * math.cos(0.5))


def test_nondiff_argnames():
    f = tl.custom_vjp(lambda x, n, g: g(x) * n, nondiff_argnames=("g", "n"))
    f.defvjp(lambda x, n, g: (f(x, n, g), x), lambda n, g, x, ct: (n * ct,))
    close(tl.grad(lambda x: f(x, 3.0, tnp.sin))(X), 3)
    with raises(ValueError, "custom_vjp: nondiff_argnames names 'z', but applied_fwd has g, x, n."):
        tl.custom_vjp(applied_fwd, nondiff_argnames="z")


IN_ORDERS = {
    "grad_jit": lambda f: tl.grad(tl.jit(f)),
    "jit_grad": lambda f: tl.jit(tl.grad(f)),
    "jacfwd_jit": lambda f: tl.jacfwd(tl.jit(f)),
    "vmap_grad": lambda f: lambda x, z: tl.vmap(tl.grad(f))(tnp.stack([x, x]), tnp.stack([z, z]))[1],
    "vmap_grad_jit": lambda f: lambda x, z: tl.vmap(tl.grad(tl.jit(f)))(tnp.stack([x, x]), tnp.stack([z, z]))[1],
    "vmap_jacfwd": lambda f: lambda x, z: tl.vmap(tl.jacfwd(f))(tnp.stack([x, x]), tnp.stack([z, z]))[1],
    "grad_vmap": lambda f: lambda x, z: tl.grad(lambda x: tl.vmap(f)(tnp.stack([x, 2 * x]), tnp.stack([z, z]))[0])(x),
    "grad_scan": lambda f: tl.grad(lambda x, z: lax.scan(lambda x, z: (f(x, z), None), x, z[None])[0]),
    "jacfwd_scan": lambda f: tl.jacfwd(lambda x, z: lax.scan(lambda x, z: (f(x, z), None), x, z[None])[0]),
}


@pytest.mark.parametrize("order", IN_ORDERS)
def test_traced_arrays_in_arguments_without_a_derivative(order):
    f = IN_ORDERS[order](lambda x, n: applied(tnp.sin, x, n))
    close(f(X, Y), 30 * math.cos(0.5))
    close(tl.grad(f)(X, Y), -30 * math.sin(0.5))


def test_methods():
    class Model:
        w = 3.0

        @functools.partial(tl.custom_vjp, nondiff_argnums=(0,))
        def scaled(self, x):
            return self.w * x

        def scaled_fwd(self, x):
            return self.scaled(x), None

        def scaled_bwd(self, _, ct):
            return (10 * self.w * ct,)

        scaled.defvjp(scaled_fwd, scaled_bwd)

    close(Model().scaled(X), 1.5)
    close(tl.grad(Model().scaled)(X), 30)


# ---- closures -------------------------------------------------------------------------------------------------


def closing_over(z):
    f = tl.custom_vjp(lambda x: x * z)
    f.__name__ = "f"
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (10 * z * ct,))
    return f


def only_backward(z):
    f = tl.custom_vjp(lambda x: 1 * x)
    f.__name__ = "f"
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (10 * z * ct,))
    return f


each_closure = pytest.mark.parametrize("make", [closing_over, only_backward])


@each_closure
@pytest.mark.parametrize("order", IN_ORDERS)
def test_closed_over_values_that_are_traced_are_operands(order, make):
    """They may be mapped, or belong to a program that is differentiated when it is written and they are gone."""
    close(IN_ORDERS[order](lambda x, z: make(z)(x))(X, Y), 30)


@each_closure
@pytest.mark.parametrize("order", IN_ORDERS)
def test_closed_over_values_in_second_derivatives(order, make):
    f = IN_ORDERS[order](lambda x, z: make(z)(x) * make(z)(x))  # (z x)² with ten times its derivative; x²
    slope = 2 * 30 * (1.5 if make is closing_over else 0.5)
    close(f(X, Y), slope)
    close(tl.grad(f)(X, Y), 1800)
    close(tl.jacfwd(f)(X, Y), 1800)


def test_functions_that_are_arguments_may_close_over_traced_values():
    for way in (tl.jit, lambda f: lambda x, z: tl.vmap(f)(x[None], z[None])[0]):
        f = way(lambda x, z: applied(lambda x: tnp.sin(x) * z, x, 2.0))
        close(tl.grad(f)(X, Y), 60 * math.cos(0.5))


def with_itself(make):
    def f(z):
        return make(z)(z)

    return f


@each_closure
@pytest.mark.parametrize("way", [tl.jit, lambda f: lambda z: tnp.sum(tl.vmap(f)(tnp.stack([z, z])))])
def test_closing_over_what_is_differentiated_in_a_program(way, make):
    f = with_itself(make)
    message = (
        "custom_vjp: f closes over a value that is being differentiated, float64[], "
        f"for which its rule has no tangent.\n  It was called at {place(f, 'return')}.\n  Pass it as an argument."
    )
    with raises(TypeError, message):
        tl.grad(way(f))(Y)


def test_closing_over_what_is_differentiated():
    f = with_itself(only_backward)
    message = (
        "custom_vjp: f closes over a value that is being differentiated, float64[], "
        f"for which its rule has no tangent.\n  It was called at {place(f, 'return')}.\n  Pass it as an argument."
    )
    for derivative in (tl.grad, tl.jacfwd, lambda f: tl.jit(tl.grad(f))):
        with raises(TypeError, message):
            derivative(f)(Y)


def test_closing_over_what_is_differentiated_in_the_function():
    f = with_itself(closing_over)
    inside = place(closing_over, "x * z").replace("(closing_over)", "(closing_over.<locals>.<lambda>)")
    message = (
        f"a traced array reached code outside of its transformation, through a closure: float64[] of {place(f)}, "
        f"traced for grad.\n  It was used at {inside}.\n"
        "  A function with its own derivative must take such a value as an argument; another thread cannot use it."
    )
    with raises(tl.errors.UnexpectedTracerError, message):
        tl.grad(f)(Y)


def test_closing_over_constants_of_an_inner_derivative():
    """A derivative around the one that uses the rule goes through the rule."""
    close(tl.grad(lambda z: tl.grad(only_backward(z))(X))(Y), 10)
    close(tl.jvp(lambda z: tl.grad(only_backward(z))(X), (Y,), (2.0,))[1], 20)
    close(tl.grad(lambda x: only_backward(tl.stop_gradient(x))(x))(Y), 30)


# ---- a larger example -----------------------------------------------------------------------------------------


def test_fixed_point_of_the_tutorial():
    """An implicit derivative, with functions of functions, closures, and loops inside the rule."""

    @functools.partial(tl.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        return lax.while_loop(lambda s: abs(s[0] - s[1]) > 1e-14, lambda s: (s[1], f(a, s[1])), (x, f(a, x)))[1]

    def fwd(f, a, x):
        solution = fixed_point(f, a, x)
        return solution, (a, solution)

    def bwd(f, residuals, ct):
        a, solution = residuals
        _, pull_a = tl.vjp(lambda a: f(a, solution), a)
        (a_bar,) = pull_a(fixed_point(rewritten(f), (a, solution, ct), ct))
        return a_bar, tnp.zeros_like(solution)

    def rewritten(f):
        def step(packed, u):
            a, solution, ct = packed
            return ct + tl.vjp(lambda x: f(a, x), solution)[1](u)[0]

        return step

    fixed_point.defvjp(fwd, bwd)

    def square_root(a):
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    for way in (lambda f: f, tl.jit):
        close(way(square_root)(2.0), math.sqrt(2), 1e-6)
        with enable_x64():
            close(tl.grad(way(square_root))(Y), 0.5 / math.sqrt(3), 1e-12)
            close(tl.vmap(tl.grad(way(square_root)))(YS), 0.5 / np.sqrt(YS), 1e-12)
            close(tl.grad(tl.grad(way(square_root)))(Y), -0.25 * 3**-1.5, 1e-10)


# ---- the rest -------------------------------------------------------------------------------------------------


def test_optimize_remat_is_accepted():
    f = tl.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * x * ct,), optimize_remat=True)
    close(tl.grad(tl.checkpoint(f))(X), 1)
    with raises(NotImplementedError, "custom_vjp: optimize_remat=True does not go with symbolic_zeros=True."):
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * x * ct,), symbolic_zeros=True, optimize_remat=True)


def test_truth_values_among_residuals_stay_what_they_are():
    """A backward rule may go by them, jitted and in loops too."""
    seen = []

    @tl.custom_vjp
    def f(x):
        return x * x

    def bwd(residuals, ct):
        x, (double, _) = residuals
        seen.append(type(double))
        return (4 * x * ct if double else 2 * x * ct,)

    for double in (True, False):
        f.defvjp(lambda x, double=double: (x * x, (x, (double, 3))), bwd)
        expected = (4 if double else 2) * 3.0
        looped = tl.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0])
        for derivative in (tl.grad(f), tl.jit(tl.grad(f)), tl.jit(looped), tl.jacfwd(f)):
            assert derivative(3.0) == expected
    assert set(seen) == {bool}


def test_a_function_without_results_has_nothing_to_pull_back():
    @tl.custom_vjp
    def f(x, y):
        return None

    def bwd(residuals, ct):
        raise AssertionError("there is no cotangent")

    f.defvjp(lambda x, y: (None, y), bwd)
    for function in (f, tl.jit(f), tl.vmap(f, in_axes=(0, None), out_axes=None)):
        _, pull = tl.vjp(function, XS, Y)
        close(pull(None), (np.zeros(2), 0.0))
