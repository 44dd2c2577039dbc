"""odeint: against solutions in closed form, SciPy, and JAX's; derivatives against those of the closed forms."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.experimental.ode import odeint
from tests.messages import raises

TIMES = np.linspace(0.0, 2.0, 5)


def decay(y: Any, t: Any, rate: Any) -> Any:
    return -rate * y


def test_closed_forms():
    """Linear, with a driving force, complex, and of a pytree; in 64 bits to the tolerance that is asked for."""
    y = odeint(decay, np.array([1.0, 2.0]), TIMES, 0.7, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(y, np.exp(-0.7 * TIMES)[:, None] * [1, 2], rtol=1e-7)
    z = odeint(lambda z, t, w: 1j * w * z, np.array(1 + 0j), TIMES, 3.0)
    np.testing.assert_allclose(z, np.exp(3j * TIMES), rtol=1e-6)
    forced = odeint(lambda y, t: tnp.cos(t), tnp.zeros((), "float64"), TIMES)
    np.testing.assert_allclose(forced, np.sin(TIMES), atol=1e-7)
    swing = odeint(lambda s, t: {"x": s["v"], "v": -s["x"]}, {"x": np.ones((1, 2)), "v": np.zeros((1, 2))}, TIMES)
    assert swing["x"].shape == (5, 1, 2) and swing["v"].dtype == np.float64
    np.testing.assert_allclose(swing["x"][:, 0, 1], np.cos(TIMES), atol=1e-6)
    single = odeint(decay, 1.0, np.float32([0, 1]), 1.0, rtol=1e-5, atol=1e-5)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, [1, np.exp(-1)], rtol=1e-4)
    np.testing.assert_array_equal(odeint(decay, 3.0, np.float32([0.5]), 1.0), [3.0])
    np.testing.assert_array_equal(odeint(decay, np.zeros(2), TIMES, 1.0), np.zeros((5, 2)))


def pendulum(y: Any, t: Any, damping: Any, xp: Any = tnp) -> Any:
    return xp.stack([y[1], -damping * y[1] - 4 * xp.sin(y[0])])


def test_numbers_of_scipy():
    integrate = pytest.importorskip("scipy.integrate")
    start = np.array([1.0, 0.3])
    expected = integrate.solve_ivp(
        lambda t, y: pendulum(y, t, 0.1, np), (0, 2), start, "DOP853", TIMES, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(odeint(pendulum, start, TIMES, 0.1), expected.y.T, rtol=1e-6)


def test_derivatives():
    """By the start, the times, the arguments and what the function closes over, each in closed form."""

    def at_end(y0: Any, times: Any, rate: Any, shift: Any) -> Any:
        return (odeint(lambda y, t, a: -a["rate"] * y + shift, y0, times, {"rate": rate, "n": 3})[1:] ** 2).sum()

    def exact(y0: Any, times: Any, rate: Any, shift: Any) -> Any:
        rest = shift / rate
        return ((rest + (y0 - rest) * np.exp(-rate * (times[1:] - times[0]))) ** 2).sum()

    point = [np.float64(1.5), TIMES, np.float64(0.7), np.float64(0.2)]
    args = tuple(map(tnp.asarray, point))
    found = tl.jit(tl.grad(at_end, argnums=(0, 1, 2, 3)))(*args)
    for k, gradient in enumerate(found):
        for i in range(np.size(point[k])):
            moved = [np.array(x, float) for x in point]
            ahead, behind = moved.copy(), moved.copy()
            ahead[k] = moved[k] + 1e-6 * (np.arange(np.size(point[k])) == i).reshape(np.shape(point[k]))
            behind[k] = moved[k] - 1e-6 * (np.arange(np.size(point[k])) == i).reshape(np.shape(point[k]))
            slope = (exact(*ahead) - exact(*behind)) / 2e-6
            np.testing.assert_allclose(np.ravel(gradient)[i], slope, rtol=1e-5, atol=1e-6, err_msg=f"argument {k}")


def test_second_derivatives_and_batches():
    def value(rate: Any) -> Any:
        return odeint(decay, tnp.ones((), "float64"), np.array([0.0, 1.0]), rate)[1]

    rates = tnp.asarray(np.array([0.3, 1.0, 2.0]))
    second = tl.jit(tl.vmap(tl.grad(tl.grad(value))))(rates)
    np.testing.assert_allclose(second, np.exp(-np.asarray(rates)), rtol=1e-5)


def test_what_is_not_reached_is_nan():
    y = np.asarray(odeint(decay, np.array(1.0), TIMES, 1.0, mxstep=2))
    assert y[0] == 1.0 and np.isnan(y[1:]).all()
    blown = np.asarray(odeint(lambda y, t: y * y, np.array(1.0), np.array([0.0, 0.5, 2.0]), mxstep=500))  # 1 / (1 - t)
    np.testing.assert_allclose(blown[:2], [1, 2], rtol=1e-6)
    assert np.isnan(blown[2])
    some = np.array([0.0, 0.9, 1.5, 1.6, 1.7])  # nothing is tried after the pole
    assert np.isnan(odeint(lambda y, t: y * y, np.array(1.0), some, mxstep=100)).tolist() == [0, 0, 1, 1, 1]
    slow = odeint(decay, np.array(1.0), TIMES, 1.0, mxstep=2, hmax=0.25, rtol=0.1, atol=0.1)
    assert np.isfinite(slow).all()


def test_a_diverging_fit_ends():
    """By default steps are bounded, forwards and backwards: a rate of 1e6 needs a million, which nobody waits for."""

    def loss(rate: Any) -> Any:
        y = odeint(lambda y, t, a: tnp.stack([a * y[1], -a * y[0]]), tnp.ones(2), np.float32([0, 1, 2, 3]), rate)
        return tnp.sum(y**2)

    value, gradient = tl.jit(tl.value_and_grad(loss))(1e6)
    assert np.isnan(value) and np.isnan(gradient)
    value, gradient = tl.jit(tl.value_and_grad(loss))(1.0)
    np.testing.assert_allclose([value, gradient], [8, 0], atol=1e-3)  # float32


def test_forward_mode_is_refused():
    def last(a):
        return odeint(decay, 1.0, np.float32([0, 1]), a)[-1]

    forward = (
        lambda: tl.jvp(last, (1.0,), (1.0,)),
        lambda: tl.jit(tl.jacfwd(last))(1.0),
        lambda: tl.hessian(last)(1.0),
        lambda: tl.linearize(last, 1.0)[1](1.0),
    )
    for run in forward:
        with pytest.raises(NotImplementedError, match=r"^odeint: forward mode is not provided for experimental\.ode"):
            run()
    np.testing.assert_allclose(tl.jit(tl.jacrev(tl.jacrev(last)))(1.0), np.exp(-1), rtol=1e-5)


def test_errors():
    with raises(TypeError, "odeint: t must be a vector of real numbers of floating point, not int64[2]."):
        odeint(decay, 1.0, np.array([0, 1]), 1.0)
    with raises(ValueError, "odeint: the times must increase, but t is [0. 0.]."):
        odeint(decay, 1.0, np.zeros(2), 1.0)
    with raises(TypeError, "odeint: y0 must be of floating point, not int32[]."):
        odeint(decay, 1, TIMES, 1.0)
    with pytest.raises(TypeError, match=r"must return a pytree like y0, of shapes \[\(2,\)\], but returned"):
        odeint(lambda y, t: y[0], np.ones(2), TIMES)
    with pytest.raises(TypeError, match=r"odeint: args\[0\] is 'a' of type str, which is not an array"):
        odeint(decay, 1.0, TIMES, "a")


def test_numbers_of_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental.ode import odeint as theirs  # noqa: PLC0415  # where JAX is

    def loss(solve: Any, xp: Any) -> Any:
        def f(y0: Any, times: Any, damping: Any) -> Any:
            return (solve(lambda y, t, d: pendulum(y, t, d, xp), y0, times, damping) ** 2).sum()

        return f

    args = np.float32([1.0, 0.3]), np.float32(TIMES), np.float32(0.1)
    expected = jax.jit(jax.value_and_grad(loss(theirs, jax.numpy), argnums=(0, 1, 2)))(*args)
    found = tl.jit(tl.value_and_grad(loss(odeint, tnp), argnums=(0, 1, 2)))(*args)
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)  # steps end elsewhere by rounding, 1e-5 is their error
