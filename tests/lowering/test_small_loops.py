"""Loops of a few elements are one kernel, compiled as users compile them, when they are differentiated too."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.jaxlib_release import RELEASE

pytestmark = pytest.mark.usefixtures("optimized")
N = 4 if RELEASE < (0, 12) else 3  # the jacobian of `log_softmax` at 4 is not small to XLA any more
A = np.array([[2, 0.3, 0.1, 0.2], [0.3, 1, 0.2, 0.1], [0.1, 0.2, 3, 0.5], [0, 0.1, 0.2, 1]], np.float32)[:N, :N]
START = np.array([0.1, 0.2, 0.4, 0.3], np.float32)
X = START[:N]


def log_softmax(p):
    z = A @ p
    z = z - tnp.max(tl.stop_gradient(z))  # as in tl.nn: a derivative of max takes a barrier, which no small kernel has
    return -tnp.sum(X * (z - tnp.log(tnp.sum(tnp.exp(z)))))


def rosenbrock(p):
    return tnp.sum(10 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2)


def descended(f):
    """A few hundred steps down the gradient of f."""

    def step(carry):
        return carry[0] + 1, carry[1] - 0.01 * tl.grad(f)(carry[1])

    return lambda x: lax.while_loop(lambda carry: carry[0] < 300, step, (0, x))[1]


MODES = {
    "value": lambda f: f,
    "jvp": lambda f: lambda x: tl.jvp(f, (x,), (X,))[1],
    "jacfwd": tl.jacfwd,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [log_softmax, rosenbrock])
def test_a_descent_is_one_kernel(f, mode):
    program = tl.jit(MODES[mode](descended(f))).lower(X).compile().as_text()
    assert program.count("xla_cpu_small_call") == 1


def test_forward_mode_over_a_descent_is_that_of_its_steps():
    solve, t, h = descended(rosenbrock), np.cos(np.arange(1.0 * N)), 1e-6
    x = X.astype(np.float64)
    expected = (np.asarray(solve(x + h * t)) - np.asarray(solve(x - h * t))) / (2 * h)
    np.testing.assert_allclose(tl.jit(lambda x: tl.jvp(solve, (x,), (t,))[1])(x), expected, rtol=1e-6, atol=1e-9)


def pendulum(x):
    """Runge-Kutta steps of a double pendulum: angles and angular velocities."""

    def slopes(s):
        d, bend = s[0] - s[1], 3 - tnp.cos(2 * (s[0] - s[1]))
        p = -3 * tnp.sin(s[0]) - tnp.sin(s[0] - 2 * s[1]) - 2 * tnp.sin(d) * (s[3] ** 2 + s[2] ** 2 * tnp.cos(d))
        q = 2 * tnp.sin(d) * (2 * s[2] ** 2 + 2 * tnp.cos(s[0]) + s[3] ** 2 * tnp.cos(d))
        return tnp.stack([s[2], s[3], p / bend, q / bend])

    def step(s, _):
        a = slopes(s)
        b = slopes(s + 0.01 * a)
        c = slopes(s + 0.01 * b)
        return s + 0.02 / 6 * (a + 2 * b + 2 * c + slopes(s + 0.02 * c)), None

    return tnp.sum(lax.scan(step, x, None, length=300)[0])


def test_gradients_that_stack_many_residuals_are_a_kernel_for_each_loop():
    program = tl.jit(tl.grad(pendulum)).lower(START).compile()
    assert program.as_text().count("xla_cpu_small_call") == 2
    x, h = START.astype(np.float64), 1e-6
    expected = [(np.asarray(pendulum(x + h * e)) - np.asarray(pendulum(x - h * e))) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(tl.jit(tl.grad(pendulum))(x), expected, rtol=1e-5, atol=1e-6)
