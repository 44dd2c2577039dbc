"""Gradients of structured programs grow as the mathematics does: counted, in bytes that XLA asks for and in operations.

With ordinary array code, jitted, at n, 4n and 16n: temporary memory of value and gradient grows no faster than n, and
so does what the gradient computes. Products of matrices that are read in parts take no n^3.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.analysis import cost
from tapeless.interpreters.simplify import simplify_program

SIZES = (1000, 4000, 16000)


def shared(x: Any) -> Any:
    a = tnp.outer(x, x)
    return tnp.dot(a[:, 0], a[0, :])


def second_differences(x: Any) -> Any:
    """The matrix of them, as one writes it."""
    n, dtype = len(x), x.dtype
    return tnp.eye(n, k=1, dtype=dtype) - 2 * tnp.eye(n, dtype=dtype) + tnp.eye(n, k=-1, dtype=dtype)


def bands_gradient(a: Any, b: Any) -> Any:
    """Of the sum of a² b² - a b³ over neighbours a and b."""
    of_a, of_b = 2 * a * b**2 - b**3, 2 * a**2 * b - 3 * a * b**2
    return np.append(of_a, 0) + np.append(0, of_b)


def blocks(x: Any) -> Any:
    """A matrix of n / 4 equal blocks on its diagonal, between x and x."""
    n = len(x) // 4
    x = x[: 4 * n]
    return tnp.dot(tnp.kron(tnp.eye(n, dtype=x.dtype), tnp.outer(x[:4], x[:4])) @ x, x)


def blocks_gradient(x: Any) -> Any:
    """Of the sum of (w . b)² over blocks b of x, where w is the first of them."""
    w, rows = x[:4], x[: len(x) // 4 * 4].reshape(-1, 4)
    found = np.zeros_like(x)
    found[: rows.size] = (2 * np.outer(rows @ w, w)).reshape(-1)
    found[:4] += 2 * (rows @ w) @ rows
    return found


VECTORS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "column and row": (
        lambda x: tnp.dot(tnp.outer(x, x)[:, 0], tnp.outer(x, x)[0, :]),
        lambda x: 2 * x[0] ** 2 * x + np.eye(1, len(x))[0] * 2 * x[0] * np.sum(x * x),
    ),
    "column and row of one": (shared, lambda x: 2 * x[0] ** 2 * x + np.eye(1, len(x))[0] * 2 * x[0] * np.sum(x * x)),
    "trace": (lambda x: tnp.trace(tnp.outer(x, x)), lambda x: 2 * x),
    "diag": (lambda x: tnp.dot(tnp.diag(x) @ x, x), lambda x: 3 * x * x),
    "sum": (lambda x: tnp.sum(tnp.outer(x, x) @ x), lambda x: np.sum(x * x) + 2 * x * np.sum(x)),
    "bands": (
        lambda x: tnp.dot((tnp.diag(x[1:], 1) - tnp.diag(x[1:], -1)) @ x, x * x),
        lambda x: bands_gradient(x[:-1], x[1:]),
    ),
    "second differences": (
        lambda x: tnp.dot(second_differences(x) @ x, x),
        lambda x: 2 * (np.eye(len(x), k=1) - 2 * np.eye(len(x)) + np.eye(len(x), k=-1)) @ x,
    ),
    "blocks": (blocks, blocks_gradient),
}
MATRICES: dict[str, Callable[[Any, Any], Any]] = {
    "trace": lambda a, b: tnp.trace(a @ b),
    "column": lambda a, b: tnp.sum((a @ b)[:, 0] ** 2),
    "diagonal": lambda a, b: tnp.sum(tnp.diag(a @ b) ** 2),
    "diag": lambda a, b: tnp.sum(tnp.diag(b[0]) @ a[0] * b[1]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_the_gradient(name: str):
    f, expected = VECTORS[name]
    x = np.random.default_rng(0).normal(size=7)
    for gradient in (tl.grad(f), tl.jit(tl.grad(f)), tl.grad(tl.jit(f))):
        np.testing.assert_allclose(gradient(x), expected(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tl.vmap(tl.grad(f))(np.stack([x, -x]))[1], expected(-x), rtol=1e-12, atol=1e-12)


def test_by_hand():
    x = np.array([1.0, 2.0, 3.0])
    assert shared(x) == 14
    np.testing.assert_array_equal(tl.grad(shared)(x), [30, 4, 6])


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("of", ["value", "gradient", "gradients of two"])
def test_memory_is_linear(name: str, of: str):
    """A vector or two, of those that go in: not a matrix, which would be `n` of them."""
    f, _ = VECTORS[name]
    program = {"value": f, "gradient": tl.grad(f), "gradients of two": tl.vmap(tl.grad(f))}[of]
    for n in SIZES:
        x = tl.ShapeDtypeStruct((2, n) if of == "gradients of two" else (n,), "float32")
        memory = tl.jit(program).lower(x).compile().memory_analysis()
        assert memory.temp_size_in_bytes <= 4 * 4 * np.prod(x.shape) + 4096


@pytest.mark.parametrize("name", VECTORS)
def test_work_is_linear(name: str):
    """Of the gradient as it is traced, before it is simplified as a whole, the linear half; after that, all of it."""
    f, _ = VECTORS[name]
    for n in (16, 64, 256):
        x = tl.ShapeDtypeStruct((n,), "float64")
        assert cost.work(tl.unzip(f, x).linear) <= 16 * n
        assert cost.work(tl.unzip(f, x).transposed) <= 16 * n
        assert cost.work(simplify_program(tl.make_jaxpr(tl.grad(f))(x).jaxpr)) <= 24 * n


def test_eager_residuals_are_vectors():
    """Values are there when they are broadcast, and matrices; the linear jaxpr does not keep them."""
    x = np.linspace(0, 1, 64)
    for name, (f, _) in VECTORS.items():
        residuals = tl.linearize(f, x)[1].jaxpr.invars
        assert max((v.aval.size for v in residuals), default=0) <= 64, name


@pytest.mark.parametrize("name", MATRICES)
def test_no_product_of_matrices(name: str):
    """Work of the order of the elements of the matrices, forwards and backwards."""
    f = MATRICES[name]
    for n in (16, 64):
        args = (tl.ShapeDtypeStruct((n, n), "float64"),) * 2
        assert cost.work(simplify_program(tl.make_jaxpr(f)(*args).jaxpr)) <= 6 * n * n
        assert cost.work(simplify_program(tl.make_jaxpr(tl.grad(f, (0, 1)))(*args).jaxpr)) <= 14 * n * n
        assert cost.work(tl.unzip(f, *args).transposed) <= 14 * n * n


def test_the_gradient_of_a_trace_is_two_transposes():
    a, b = np.arange(30.0).reshape(5, 6), np.arange(30.0).reshape(6, 5)
    gradient = tl.grad(MATRICES["trace"], (0, 1))
    for found, expected in zip(gradient(a, b), (b.T, a.T)):
        np.testing.assert_array_equal(found, expected)
    jaxpr = simplify_program(tl.make_jaxpr(gradient)(a, b).jaxpr)
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["transpose", "transpose"]


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_agree(name: str):
    random = np.random.default_rng(0)
    a, b, u, v = random.normal(size=(4, 5, 5))
    gradient = tl.jit(tl.grad(MATRICES[name], (0, 1)))(a, b)
    pushed = tl.jvp(MATRICES[name], (a, b), (u, v))[1]
    np.testing.assert_allclose(np.sum(np.asarray(gradient[0]) * u) + np.sum(np.asarray(gradient[1]) * v), pushed)
