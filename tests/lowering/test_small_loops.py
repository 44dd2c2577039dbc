"""Loops of a few elements are one kernel, compiled as users compile them, when they are differentiated too."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("optimized")
A = np.array([[2, 0.3, 0.1, 0.2], [0.3, 1, 0.2, 0.1], [0.1, 0.2, 3, 0.5], [0, 0.1, 0.2, 1]], np.float32)
X = np.array([0.1, 0.2, 0.4, 0.3], np.float32)


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
    solve, t, h = descended(rosenbrock), np.cos(np.arange(4.0)), 1e-6
    x = X.astype(np.float64)
    expected = (np.asarray(solve(x + h * t)) - np.asarray(solve(x - h * t))) / (2 * h)
    np.testing.assert_allclose(tl.jit(lambda x: tl.jvp(solve, (x,), (t,))[1])(x), expected, rtol=1e-6, atol=1e-9)
