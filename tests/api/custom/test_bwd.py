"""Backward rules: written down, transposed, checked to be linear, and what is said of those that do not fit."""

import inspect

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import enable_x64, lax
from tests.api.comparing import each_way
from tests.close import small_programs as close
from tests.messages import raises, short, text_of

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X, Y = np.array(0.5), np.array(3.0)
XS = np.array([0.5, 0.7])


# ---- rules with loops -----------------------------------------------------------------------------------------


def with_backward(bwd, **options):
    f = tl.custom_vjp(lambda x: 2 * x)
    f.__name__ = "f"
    f.defvjp(lambda x: (f(x), x), bwd, **options)
    return f


LOOPS = {
    "scan": lambda x, ct: (lax.scan(lambda c, s: (c * s * x, None), ct, np.array([1.0, 2.0, 3.0]))[0],),
    "stacked": lambda x, ct: (tnp.sum(lax.scan(lambda c, s: (c * x, c * s), ct, np.array([1.0, 2.0]))[1]),),
    "fori_loop": lambda x, ct: (lax.fori_loop(0, 3, lambda i, c: c * (i + 1) * x, ct),),
    "while_loop": lambda x, ct: (lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, x * s[1]), (0, ct))[1],),
    "cond": lambda x, ct: (lax.cond(x > 0, lambda c: 2 * x * c, lambda c: c, ct),),
    "jit": lambda x, ct: (tl.jit(lambda c: x * c)(ct),),
    "derivative": lambda x, ct: (tl.vjp(tnp.sin, x)[1](ct)[0],),
}


@each_way
@pytest.mark.parametrize("name", LOOPS)
def test_rules_with_loops_both_ways(name, way):
    f, slope = way(with_backward(LOOPS[name])), lambda x: LOOPS[name](x, np.array(1.0))[0]
    first, second = slope(X), tl.grad(slope)(X)
    close((tl.grad(f)(X), tl.jacfwd(f)(X), tl.jit(tl.jacfwd(f))(X)), (first,) * 3)
    close((tl.hessian(f)(X), tl.jacfwd(tl.jacfwd(f))(X), tl.jit(tl.grad(tl.grad(f)))(X)), (second,) * 3)
    close(tl.vmap(tl.jacfwd(f))(XS), [slope(XS[0]), slope(XS[1])])
    close(tl.vmap(tl.grad(f))(XS), [slope(XS[0]), slope(XS[1])])


def halved_to_the_end(x, ct):
    return (lax.while_loop(lambda s: s[1] > 1e-3, lambda s: (s[0] + s[1], s[1] / 2), (ct, ct))[0],)


@each_way
def test_loops_until_a_cotangent_is_small_have_reverse_mode_only(way):
    """Nothing is said of their linearity, and nothing is lost unless forward mode is asked for."""
    f = way(with_backward(halved_to_the_end))
    wanted = float(halved_to_the_end(X, np.array(1.0))[0])
    close((tl.grad(f)(X), tl.jit(tl.grad(f))(X), tl.hessian(f)(X)), (wanted, wanted, 0))
    close(tl.vmap(tl.grad(f))(XS), [wanted, wanted])
    for forward in (lambda: tl.jvp(f, (X,), (1.0,)), lambda: tl.jit(lambda x: tl.jvp(f, (x,), (x,)))(X)):
        with pytest.raises(NotImplementedError) as caught:
            forward()
        text = str(caught.value)
        name = "halved_to_the_end"
        assert text.startswith(f"custom_vjp: forward mode transposes {name}, which cannot be transposed.\n  ")
        assert (
            "while" in text and f"({name}), return (lax.while_loop" in text and "(tl.jvp, tl.jacfwd) works" not in text
        )
        assert text.endswith(
            "\n  Use reverse mode, or give the function a JVP rule (custom_jvp), which serves both modes; for "
            "iterations to a solution\n  lax.custom_root and lax.custom_linear_solve do, too."
        )


def test_the_refusal_names_the_rule_under_vmap():
    f = with_backward(halved_to_the_end)
    with pytest.raises(NotImplementedError, match="forward mode transposes halved_to_the_end, which"):
        tl.vmap(lambda x: tl.jvp(f, (x,), (1.0,)))(XS)


# ---- linearity ------------------------------------------------------------------------------------------------

DOT = "\u0307"  # over linear variables: a prime below
NONLINEAR = {
    "bilinear": (lambda x, ct: (ct * ct,), "mul multiplies two values that are both linear", "c':~f64[] = mul b' b'"),
    "nonlinear primitive": (lambda x, ct: (tnp.sin(ct),), "sin is applied to a linear value", "c':~f64[] = sin b'"),
    "affine": (lambda x, ct: (ct + x,), "add combines a linear value with a constant", "c':~f64[] = add b' a"),
    "constant": (
        lambda x, ct: (tnp.cos(x),),
        "its result float64[] does not depend on its arguments",
        "c:~f64[] = cos a",
    ),
    "predicate depends on linear input": (
        lambda x, ct: (tnp.where(ct > 0, ct, 0),),
        "select_n goes by what gt makes of a linear value",
        "d':~f64[] = select_n c' 0.0 b'",
    ),
}
MODES = {
    "jvp": lambda f: tl.jvp(f, (0.5,), (1.0,)),
    "grad": lambda f: tl.grad(f)(0.5),
    "grad_jit": lambda f: tl.grad(tl.jit(f))(0.5),
    "jit_jvp": lambda f: tl.jit(lambda x: tl.jvp(f, (x,), (1.0,)))(0.5),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reason", NONLINEAR)
def test_backward_rules_must_be_linear(reason, mode):
    bwd, why, equation = NONLINEAR[reason]
    dotted = equation.replace("'", DOT)
    begin = (
        "custom_vjp: the backward rule <lambda> of f is not linear in the cotangent.\n"
        f"  <lambda> is not linear ({reason}): {why}.\n  {dotted}\n  It was reached from {short(__file__)}:"
    )
    end = "\n  If that is meant, define the rule with f.defvjp(..., check_linear=False)."
    with enable_x64():
        f = with_backward(bwd)
        for _ in range(2):  # what was found wrong once is looked at again
            with pytest.raises(tl.errors.LinearityError) as caught:
                MODES[mode](f)
            text = str(caught.value)
            assert text.startswith(begin) and text.endswith(end)
            assert inspect.getsource(bwd).strip().splitlines()[0] in text


def clipped(x, ct):
    return (tnp.clip(ct, -0.1, 0.1),)


@each_way
def test_backward_rules_may_be_nonlinear_if_they_say_so(way):
    """Clipping a gradient: there is no forward mode to it, and nobody misses that."""
    f = way(with_backward(clipped, check_linear=False))
    close((tl.grad(f)(X), tl.jit(tl.grad(f))(X), tl.grad(lambda x: -f(x))(X)), (0.1, 0.1, -0.1))
    close(tl.vmap(tl.grad(f))(XS), [0.1, 0.1])
    with pytest.raises(NotImplementedError, match="forward mode transposes clipped, which cannot be transposed"):
        tl.jvp(f, (X,), (1.0,))


def clipped_in_a_loop(f, x, scan):
    """Sum `f(x) * k` over k = 1, 2, 3, by the carry and by results, and `2 * f(c)` twice."""
    ks = np.array([1.0, 2.0, 3.0], np.float32)
    total, each = scan(lambda c, k: (c + f(x) * k, f(x) * k), 0.0 * x, ks)
    return total + each.sum() + scan(lambda c, k: (2 * f(c), k), x, ks[:2])[0]


@each_way
def test_nonlinear_rules_are_applied_at_every_step(way):
    """A cotangent is clipped where it arises: the sum over the steps is not clipped once."""
    f = with_backward(clipped, check_linear=False)
    f.defvjp(lambda x: (x, x), clipped, check_linear=False)  # without the factor 2 the loops are as they look
    gradient = tl.grad(way(lambda x: clipped_in_a_loop(f, x, lax.scan)))(X)
    close(gradient, 0.1 * 3 + 0.1 * 3 + 0.1)
    unrolled = tl.grad(lambda x: clipped_in_a_loop(f, x, lambda *loop: lax.scan(*loop, unroll=True)))(X)
    close(unrolled, gradient)


@each_way
def test_rules_with_effects_run_at_every_step(way):
    seen = []

    def bwd(x, ct):
        tl.debug.callback(seen.append, ct)
        return (ct,)

    f = with_backward(bwd)
    gradient = tl.grad(way(lambda x: lax.scan(lambda c, k: (c + f(x) * k, None), x, np.float32([1, 2, 3]))[0]))(X)
    tl.effects_barrier()
    close(gradient, 7)
    assert seen == [3, 2, 1]


THROUGH = {
    "call": lambda f: f,
    "jit": tl.jit,
    "checkpoint": tl.checkpoint,
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, k: (c, f(x)), 0.0, None, length=1)[1][0],
    "vmap": lambda f: lambda x: tl.vmap(f)(x[None])[0],
    "sin": lambda f: lambda x: tnp.sin(f(x)),
}


@each_way
@pytest.mark.parametrize("name", THROUGH)
def test_nonlinear_rules_are_called_for_cotangents_that_are_known_to_be_zero(name, way):
    """So a scale that is adapted in the backward pass arrives, whatever is done with the result."""
    f = THROUGH[name](with_backward(lambda x, ct: (ct + 7,), check_linear=False))
    constant = tl.custom_vjp(lambda x: x)
    constant.defvjp(lambda x: (x, None), lambda _, ct: (None,))
    close(tl.grad(way(lambda x: constant(f(x)) + 3 * x))(X), 10)
    close(tl.grad(way(lambda x: lax.stop_gradient(f(x)) + 3 * x))(X), 3)  # it does not depend on the result


@each_way
@pytest.mark.parametrize("zero", [tnp.zeros_like, lambda x: np.zeros(()), lambda x: 0.0, lambda x: 0 * x])
def test_constant_zeros_are_linear(way, zero):
    f = way(with_backward(lambda x, ct: (zero(x),)))
    close((tl.grad(f)(X), tl.jacfwd(f)(X), tl.jit(tl.jacfwd(f))(X)), (0, 0, 0))
    close(tl.jacfwd(lambda x: f(x) + x)(X), 1)


# ---- rules that do not fit ------------------------------------------------------------------------------------


def test_no_rule():
    f = tl.custom_vjp(clipped)
    with raises(AttributeError, "custom_vjp: clipped has no rule: define one with defvjp."):
        f(1.0, 2.0)


BWD = "custom_vjp: the backward rule <lambda> of f"
MISFITS = {
    "no tuple": (
        lambda res, ct: ct,
        f"{BWD} must return a tuple with one cotangent for each differentiable argument, 2, but returned ...",
    ),
    "length": (
        lambda res, ct: (ct,),
        f"{BWD} must return a tuple with one cotangent for each differentiable argument, 2, but returned a tuple of 1.",
    ),
    "structure": (
        lambda res, ct: ([ct], ct),
        f"{BWD} must return for argument p a pytree of its structure, with None where there is no "
        "derivative.\n  The root is a dict with 'a', 'b' in argument p, a list of 1 in its cotangent.",
    ),
    "missing": (
        lambda res, ct: ({"a": ct}, ct),
        f"{BWD} must return for argument p a pytree of its structure, with None where there is no "
        "derivative.\n  ['b'] is a list of 2 in argument p, nothing in its cotangent.",
    ),
    "leaf": (
        lambda res, ct: (ct, ct),
        f"{BWD} must return for argument p a pytree of its structure, with None where there is no "
        "derivative.\n  The root is a dict with 'a', 'b' in argument p, a leaf in its cotangent.",
    ),
    "shape": (
        lambda res, ct: ({"a": ct, "b": [tnp.ones(3), ct]}, ct),
        "custom_vjp: the cotangent that the backward rule <lambda> of f returned for argument p['b'][0] is float32[3], "
        "but argument p['b'][0] asks for float64[].",
    ),
    "dtype": (
        lambda res, ct: (None, tnp.ones((), "float32")),
        "custom_vjp: the cotangent that the backward rule <lambda> of f returned for argument x is float32[], "
        "but argument x asks for float64[].",
    ),
    "no array": (
        lambda res, ct: (None, "abc"),
        "custom_vjp: the cotangent that the backward rule <lambda> of f returned for argument x is 'abc' of type str, "
        "which is not an array.",
    ),
}


@pytest.mark.parametrize("derivative", [tl.grad, tl.jacfwd])
@pytest.mark.parametrize("misfit", MISFITS)
@each_way
def test_backward_rules_that_do_not_fit(way, misfit, derivative):
    bwd, message = MISFITS[misfit]
    f = tl.custom_vjp(lambda p, x: p["a"] * x)
    f.__name__ = "f"
    f.defvjp(lambda p, x: (f(p, x), None), bwd)
    with pytest.raises(TypeError) as caught:
        derivative(way(f))({"a": X, "b": [X, X]}, Y)
    begin = message.removesuffix("...")
    assert text_of(caught.value) == message or (begin != message and str(caught.value).startswith(begin))


@each_way
def test_an_array_may_stand_for_a_pytree_with_one_leaf(way):
    f = tl.custom_vjp(lambda p, q: p["a"][0] * q[0][0])
    f.defvjp(lambda p, q: (f(p, q), (p["a"][0], q[0][0])), lambda res, ct: ({"a": 3 * res[1] * ct}, res[0] * ct))
    close(tl.grad(way(f), (0, 1))({"a": [X]}, ((Y,),)), ({"a": [3 * Y]}, ((X,),)))


FWD = "custom_vjp: the forward rule <lambda> of f"
FORWARD_MISFITS = {
    "no pair": (lambda x: x, f"{FWD} must return (value, residuals), but returned ..."),
    "no array": (
        lambda x: ("abc", None),
        f"custom_vjp: the value of {FWD[12:]} is 'abc' of type str, which is not an array.",
    ),
    "residual": (
        lambda x: (x, {"name": ["abc"]}),
        f"custom_vjp: the residual['name'][0] of {FWD[12:]} is 'abc' of type str, which is not an array.\n"
        "  Pass it on in an argument named in nondiff_argnums.",
    ),
    "structure": (
        lambda x: ((x, x), None),
        f"{FWD} must return the value of the function, but that has another structure.\n"
        "  The root is a leaf in the function's value, a tuple of 2 in the rule's.",
    ),
    "type": (
        lambda x: (x[None], None),
        f"{FWD} must return the value of the function, but that has other types.\n"
        "  value is float64[] by the function, float64[1] by the rule.",
    ),
}


@pytest.mark.parametrize("derivative", [tl.grad, tl.jacfwd])
@pytest.mark.parametrize("misfit", FORWARD_MISFITS)
@each_way
def test_forward_rules_that_do_not_fit(way, misfit, derivative):
    fwd, message = FORWARD_MISFITS[misfit]
    f = tl.custom_vjp(lambda x: 2 * x)
    f.__name__ = "f"
    f.defvjp(fwd, lambda res, ct: (ct,))
    begin = message.removesuffix("...")
    with pytest.raises(TypeError) as caught:
        derivative(way(f))(X)
    assert text_of(caught.value) == message or (begin != message and str(caught.value).startswith(begin))


def test_arguments_that_are_no_arrays():
    f = tl.custom_vjp(lambda x: x)
    f.__name__ = "f"
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    message = (
        "custom_vjp: argument x[1] of f is 'abc' of type str, which is not an array.\n"
        "  Name it in nondiff_argnums if it is not to be differentiated."
    )
    with raises(TypeError, message):
        f([X, "abc"])
