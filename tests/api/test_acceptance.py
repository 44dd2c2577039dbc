"""The stated numbers of the acceptance examples (seeds: LO2 to LO7, DA2, TL1, TL3), in float64."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.close import some_roundings_of_float64 as close
from tests.messages import dotted, place, raises


def f64(*values):
    return np.array(values if len(values) != 1 else values[0], np.float64)


each_way = pytest.mark.parametrize("way", [lambda f: f, tl.jit], ids=["eager", "jit"])


@each_way
def test_lo2_product_of_a_matrix_times_a_vector(way):
    m = f64([[2, 7], [1, 8]])

    def f(v):
        return tnp.prod(tnp.asarray(m) @ v)

    value, gradient = way(tl.value_and_grad(f))(f64(2, 3))
    close(value, 650)
    close(gradient, [77, 382])


def pair_square(x):
    a, b = (x, x)
    return a * b


def dropped(x):
    x * x
    return x + 1


@each_way
def test_lo3_gradients(way):
    one = f64(5.0)
    close(way(tl.grad(lambda x, y: x + y, (0, 1)))(one, one), (1, 1))
    add = tl.jit(lambda x, y: x + y)
    close(way(tl.grad(lambda x, y: add(x, y), (0, 1)))(one, one), (1, 1))
    close(way(tl.grad(lambda x: x + x))(one), 2)
    close(way(tl.grad(pair_square))(f64(3.0)), 6)
    close(way(tl.grad(lambda x: x + 1))(one), 1)
    close(way(tl.grad(dropped))(one), 1)


@each_way
@pytest.mark.parametrize(
    "f, x, t, tangent",
    [
        (lambda x: x * x, 3, 1.5, 9),
        (lambda x: x + x, 3, 2, 4),
        (lambda x: x**3, 2, 1.5, 18),
        (tnp.sum, (1, 2), (10, 20), 30),
        (lambda xs: xs**2, (1, 2), (3, 4), [6, 16]),
        (lambda x: tnp.sin(x) ** 2 + tnp.cos(x) ** 2, 0.7, 1, 0),
    ],
)
def test_lo4_jvp(way, f, x, t, tangent):
    close(way(lambda x, t: tl.jvp(f, (x,), (t,))[1])(f64(x), f64(t)), tangent)


def test_lo5_linear_transpose():
    x = f64(0.0)
    close(tl.linear_transpose(lambda x: x + (x + x) * 2, x)(f64(1.0)), (5,))
    close(tl.linear_transpose(lambda x: (x, 2 * x), x)((f64(1.0), f64(3.0))), (7,))
    close(tl.linear_transpose(lambda x, y: x + 2 * y, x, x)(f64(1.0)), (1, 2))
    close(tl.linear_transpose(lambda x: tnp.broadcast_to(x, (2,)), x)(f64(1, 2)), (3,))


def test_lo5_transposed_twice():
    once = tl.linear_transpose(lambda x: x + x + x, f64(0.0))
    close(tl.linear_transpose(lambda ct: once(ct)[0], f64(0.0))(f64(1.0)), (3,))


def test_lo5_affine_is_refused():
    def f(x):
        return x + 1

    text = "f is not linear (affine): add combines a linear value with a constant.\n  ḃ:f64[] = add ȧ 1.0\n"
    with raises(tl.errors.LinearityError, dotted(f"{text}  It was reached from {place(f, 'x + 1')}.")):
        tl.linear_transpose(f, f64(1.0))


@each_way
def test_lo6_perturbations_are_not_confused(way):
    close(way(tl.grad(lambda x: x * tl.grad(lambda y: x * y)(f64(2.0))))(f64(1.0)), 2)
    pushed = way(
        lambda x: tl.jvp(lambda x: x * tl.jvp(lambda y: x * y, (f64(2.0),), (f64(1.0),))[1], (x,), (f64(1.0),))
    )
    close(pushed(f64(1.0))[1], 2)
    close(way(tl.grad(tl.grad(tl.grad(lambda x: 4 * x**3))))(f64(1.3)), 24)


@each_way
def test_lo7_hessian_vector_product_by_any_nesting(way):
    x, v = f64(0.1, 0.2, 0.3), f64(0.2, 0.3, 0.4)

    def f(x):
        return tnp.exp(0.5 * tnp.sum(x**2))

    def reverse_of_forward(x):
        return tl.grad(lambda x: tl.jvp(f, (x,), (v,))[1])(x)

    def reverse_of_reverse(x):
        return tl.grad(lambda x: tnp.vdot(tl.grad(f)(x), v))(x)

    def forward_of_reverse(x):
        return tl.jvp(tl.grad(f), (x,), (v,))[1]

    value = np.exp(0.07)
    for product in (reverse_of_forward, reverse_of_reverse, forward_of_reverse):
        close(way(product)(x), value * (v + x * (x @ v)))
        np.testing.assert_allclose(way(product)(x), [0.2359518, 0.3646528, 0.4933538], atol=5e-8)  # as stated


def foo(x, y, z):
    w = x * tnp.sin(y)
    return tnp.arctan2(z, w) + z * w


@each_way
def test_da2_foo(way):
    value, gradient = way(tl.value_and_grad(foo, (0, 1, 2)))(f64(1.1), f64(2.2), f64(3.3))
    close(value, 4.242393641025528)
    close(gradient, (2.4396285219055063, -1.953374825727421, 0.9654825811012627))


def test_da2_gradient_shares_sine_and_cosine():
    primitives = [str(eqn.primitive) for eqn in tl.make_jaxpr(tl.grad(foo, (0, 1, 2)))(1.1, 2.2, 3.3).eqns]
    assert primitives.count("sin") == primitives.count("cos") == 1


def correlate(x, g):
    return sum(g[j] * x[j : j + len(x) - len(g) + 1] for j in range(len(g)))


X, G = f64(1, 2, 3, 4, 5, 6), f64(1, 2, 3)


@each_way
def test_tl1_correlation(way):
    value, pulled = way(lambda x, g: (correlate(x, g), tl.vjp(correlate, x, g)[1](np.ones(4))))(X, G)
    close(value, [14, 20, 26, 32])
    close(pulled[0], [1, 3, 6, 6, 5, 3])
    close(pulled[1], [10, 14, 18])


@each_way
def test_tl3_sum_of_squares_of_a_correlation(way):
    value, (dx, dg) = way(tl.value_and_grad(lambda x, g: tnp.sum(correlate(x, g) ** 2), (0, 1)))(X, G)
    close(value, 2296)
    close(dx, [28, 96, 216, 288, 284, 192])
    close(dg, [520, 704, 888])


@each_way
def test_lo13_either_rule_serves_both_modes(way):
    """Given the JVP alone there is a gradient; given the backward rule alone a JVP, and Hessians of every order."""
    forward = tl.custom_jvp(lambda x: tnp.sum(x**3))
    forward.defjvps(lambda t, y, x: tnp.sum(3 * x**2 * t))
    backward = tl.custom_vjp(lambda x: tnp.sum(x**3))
    backward.defvjp(lambda x: (backward(x), x), lambda x, ct: (3 * x**2 * ct,))
    x, v = f64(1, 2, 3), f64(1, 0, -1)
    for f in (way(forward), way(backward)):
        close(tl.grad(f)(x), 3 * x**2)
        close(tl.jvp(f, (x,), (v,))[1], -24)
        close(tl.jacfwd(f)(x), 3 * x**2)
        close(tl.linearize(f, x)[1](v), -24)
        close(tl.hessian(f)(x), np.diag(6 * x))
        close(tl.jvp(tl.grad(f), (x,), (v,))[1], 6 * x * v)
        close(tl.jacrev(tl.jacfwd(f))(x), np.diag(6 * x))
