"""The oracle's derivatives, where they are known in closed form, and what it says where there is none."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.fuzzing.oracle import directional, second_differences

X = np.array([0.3, -1.2, 2.0])
T = np.array([1.0, 0.5, -2.0])
Z = X + 1j * T


def derivative(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The derivative of a function's one result, and the estimate of its error."""
    values, errors = directional(tl.make_jaxpr(f)(*args), args, tangents)
    return values[0], errors[0]


def dominant(x: Any) -> Any:
    return tnp.linalg.svd(tnp.outer(x, x) + tnp.diag(x), compute_uv=False)[0]


def power_iteration(x: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, tnp.sin(s[1]) * x), (0, x))[1]


SMOOTH: dict[str, tuple[Any, Any]] = {
    "product": (lambda x: x * tnp.sin(x), lambda x, t: (np.sin(x) + x * np.cos(x)) * t),
    "power": (lambda x: x**3 / (1 + x * x), lambda x, t: (3 * x**2 * (1 + x * x) - 2 * x**4) / (1 + x * x) ** 2 * t),
    "real power": (lambda x: tnp.abs(x) ** x, lambda x, t: abs(x) ** x * (np.log(abs(x)) + 1) * t),
    "branch": (lambda x: tnp.where(x > 0, x * x, -x), lambda x, t: np.where(x > 0, 2 * x, -1) * t),
    "sorted": (lambda x: tnp.sort(x) ** 2, lambda x, t: 2 * np.sort(x) * t[np.argsort(x)]),
    "maximum": (tnp.max, lambda x, t: t[np.argmax(x)]),
    "cumulative": (lambda x: tnp.cumprod(x)[-1], lambda x, t: np.sum(np.prod(x) / x * t)),
    "scan": (lambda x: lax.scan(lambda c, y: (c * y, None), 1.0, x)[0], lambda x, t: np.sum(np.prod(x) / x * t)),
    "determinant": (
        lambda x: tnp.linalg.det(tnp.outer(x, x) + tnp.eye(3)),
        lambda x, t: 2 * np.sum(x * t),
    ),
    "solution": (
        lambda x: tnp.linalg.solve(tnp.outer(x, x) + tnp.eye(3), X),
        lambda x, t: -np.linalg.solve(np.outer(x, x) + np.eye(3), (np.outer(x, t) + np.outer(t, x)) @ _solved(x)),
    ),
    "solution, complex": (
        lambda x: tnp.real(tnp.linalg.solve(tnp.outer(x, x) + tnp.eye(3) + 0j, X + 0j)),
        lambda x, t: -np.linalg.solve(np.outer(x, x) + np.eye(3), (np.outer(x, t) + np.outer(t, x)) @ _solved(x)),
    ),
    "constant": (lambda x: x * tl.lax.stop_gradient(x), lambda x, t: x * t),
    "float32": (lambda x: tnp.sin(x.astype(tnp.float32)), lambda x, t: np.cos(x) * t),
    # By differences: complex numbers on the way, absolute values of them.
    "complex": (lambda x: tnp.abs(tnp.exp(1j * x) + x), lambda x, t: _modulus(x, t)),
    "constant, complex": (lambda x: tnp.real(tl.lax.stop_gradient(x) * x * 1j**2), lambda x, t: -x * t),
}


def _solved(x: Any) -> Any:
    return np.linalg.solve(np.outer(x, x) + np.eye(3), X)


def _modulus(x: Any, t: Any) -> Any:
    z, dz = np.exp(1j * x) + x, 1j * np.exp(1j * x) + 1
    return (np.conj(z) * dz).real / np.abs(z) * t


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth(name: str):
    f, reference = SMOOTH[name]
    value, error = derivative(f, [X], [T])
    wanted = reference(X, T)
    np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=1e-10)
    assert np.all(np.abs(value - wanted) <= error + 1e-14)
    assert np.all(error <= 1e-8)


def test_differences_agree_with_complex_steps():
    by_step, _ = derivative(power_iteration, [X], [T])
    by_difference, error = derivative(lambda x: tnp.real(power_iteration(x) * (1 + 0j)), [X], [T])
    np.testing.assert_allclose(by_difference, by_step, atol=1e-11)
    assert np.all(np.abs(by_step - by_difference) <= error)
    assert np.all(error < 1e-8)


def test_singular_values():
    value, error = derivative(dominant, [X], [T])
    matrix = np.outer(X, X) + np.diag(X)
    u, _, vh = np.linalg.svd(matrix)
    moved = np.outer(X, T) + np.outer(T, X) + np.diag(T)
    np.testing.assert_allclose(value, u[:, 0] @ moved @ vh[0], atol=1e-10)
    assert error < 1e-8


def test_complex_inputs():
    """Along any complex direction, of functions that are not holomorphic too."""
    direction = T - 2j * X
    value, _ = derivative(lambda z: tnp.conj(z) * z * z, [Z], [direction])
    np.testing.assert_allclose(value, Z * Z * np.conj(direction) + 2 * np.abs(Z) ** 2 * direction, atol=1e-9)


def test_integers_have_no_derivative():
    values, errors = directional(tl.make_jaxpr(lambda x, n: (x * n, n + 1))(X, 3), [X, np.int32(3)], [T, None])
    np.testing.assert_allclose(values[0], 3 * T)
    assert values[1] is None and errors[1] is None


NOT_DIFFERENTIABLE: dict[str, Any] = {
    "abs": tnp.abs,
    "maximum": lambda x: tnp.max(x),
    "root": tnp.sqrt,
    "comparison": lambda x: tnp.where(x > 0, x, -x),
    "floor": lambda x: tnp.floor(x) * x,
    "nan": lambda x: x / x,
    "by differences": lambda x: tnp.abs(x + 0j),
}


@pytest.mark.parametrize("f", NOT_DIFFERENTIABLE.values(), ids=NOT_DIFFERENTIABLE)
def test_not_differentiable(f: Any):
    _, error = derivative(f, [np.zeros(2)], [np.array([1.0, 2.0])])
    assert np.all(error > 1e-2)


def test_second_differences_tell_what_is_smooth():
    """Of squares of roots at 0 they are those of the squares; at kinks and jumps they are unknown."""
    x, t = np.zeros(2), np.array([0.6, 0.8])

    def f(x):
        r = tnp.linalg.norm(x)
        return r**2, (1 + r) * tnp.exp(-r), x[0] ** 3, r, x[0] * abs(x[0]), tnp.sign(x[0])

    values, errors = second_differences.curvature(tl.make_jaxpr(f)(x), [x], [t])
    np.testing.assert_allclose(values[0], 2, atol=1e-9)
    np.testing.assert_allclose(values[1], -1, atol=0.02)  # its third derivative jumps
    np.testing.assert_allclose(values[2], 0, atol=1e-9)
    assert max(errors[0], errors[2]) < 1e-6 and min(errors[3:]) > 0.5
