"""Masks in bodies that compute with linear values what is not linear in them, as iterative solvers of cotangents do."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax


def conjugate_gradients(product, b):
    """Every other residual is computed from its definition; the step is chosen by a number that cotangents make."""

    def step(state):
        x, r, p, rr, k = state
        moved = product(p)
        curvature = p @ moved
        scale = tnp.where(tnp.abs(curvature) > 1e-6 * tnp.abs(rr), rr / curvature, np.nan)
        x = x + scale * p
        r = lax.cond(k % 2 == 0, lambda: r - scale * moved, lambda: b - product(x))
        return x, r, r + (r @ r) / rr * p, r @ r, k + 1

    return lax.while_loop(lambda s: s[3] > 1e-20, step, (tnp.zeros_like(b), b, b, b @ b, 0))[0]


def test_choices_by_linear_values_are_no_masks():
    def norm(a, b, solved):
        return tnp.sum(solved(a, b) ** 2)

    def iterated(a, b):
        return lax.custom_linear_solve(lambda v: a @ v, b, conjugate_gradients, symmetric=True)

    rng = np.random.default_rng(0)
    m, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    a = m @ m.T + 4 * np.eye(4)
    wanted = tl.grad(norm, (0, 1))(a, b, tnp.linalg.solve)
    found = tl.jit(tl.grad(norm, (0, 1)), static_argnums=2)(a, b, iterated)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8)  # iterated until the square of the residual is 1e-20


def test_choice_by_an_index_in_a_jitted_function():
    """The choice, which stands for a slice and a pad, is one of tangents until masks are sunk."""

    def f(x):
        return tnp.where(tnp.arange(3) >= 1, tnp.log(x), 0)

    x = tnp.array([0.0, 1.0, 2.0])
    for g in (f, tl.jit(f)):
        np.testing.assert_array_equal(tl.grad(lambda x, g=g: g(x).sum())(x), [0, 1, 0.5])
