"""Whole programs and their transformations on the GPU against the CPU."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.gpu.comparing import TF32, assert_same_on

RNG = np.random.default_rng(0)
W = RNG.normal(size=(8, 8)).astype(np.float32) / 3
X = RNG.normal(size=(5, 8)).astype(np.float32)


def network(w: Any, x: Any) -> Any:
    """Products, softmax, indexing by rows and columns."""
    z = tnp.tanh(x @ w) @ w.T
    z = z - z.max(axis=1, keepdims=True)
    return -tnp.mean((z - tnp.log(tnp.exp(z).sum(axis=1, keepdims=True)))[tnp.arange(5), tnp.arange(5) % 3])


def recurrence(w: Any, x: Any) -> Any:
    """A scan that carries a state and reads a row in each step."""
    h, hs = lax.scan(lambda h, row: (tnp.tanh(h @ w + row),) * 2, tnp.zeros(8, np.float32), x)
    return tnp.sum(h * hs[1])


def buffers(w: Any, x: Any) -> Any:
    """A loop that reads and overwrites one element of a carried array in each step."""

    def step(i: Any, buffer: Any) -> Any:
        return buffer.at[i].set(tnp.sin(buffer[i - 1]) + x[i % 5, i % 8])

    return tnp.sum(lax.fori_loop(1, 12, step, tnp.ones(12, np.float32) * w[0, 0]) ** 2)


def nested_loops(w: Any, x: Any) -> Any:
    """An inner loop that reads what the outer one carries."""

    def outer(carry: Any, row: Any) -> Any:
        v, total = carry
        total, _ = lax.scan(lambda a, b: (a + v * b, None), total, row)
        return (v * 0.5 + w[0, 0], total), None

    return tnp.sum(lax.scan(outer, (w[1], w[2] * 0), x)[0][1])


def decompositions(w: Any, x: Any) -> Any:
    """Functions of eigenvalues, singular values, LU and Cholesky factors."""
    square = w @ w.T + tnp.eye(8, dtype=np.float32)
    values = tnp.linalg.eigvalsh(square).sum() + tnp.linalg.svd(x, compute_uv=False).max() + tnp.linalg.det(w)
    return values + tnp.linalg.solve(square, x[0]).sum() + tnp.linalg.cholesky(square)[3, 1] + tnp.linalg.pinv(x)[0, 1]


def branches(w: Any, x: Any) -> Any:
    """A switch inside a loop, and a choice that protects from an infinite derivative."""

    def step(total: Any, i: Any) -> Any:
        taken = lax.switch(i % 3, [tnp.sin, tnp.cos, lambda y: y * y], x[i])
        return total + tnp.sum(taken), None

    total, _ = lax.scan(step, tnp.sum(w) * 0, tnp.arange(5))
    return total + tnp.sum(tnp.where(w > 0, tnp.sqrt(tnp.where(w > 0, w, 1)), 0))


def movements(w: Any, x: Any) -> Any:
    """Sorting, gathers, scatters, windows, cumulative sums and a convolution."""
    order = tnp.argsort(x[:, 0])
    spread = tnp.zeros((8, 8), np.float32).at[tnp.array([1, 1, 3])].add(tnp.sort(x, axis=1)[order][:3])
    smooth = tnp.convolve(tnp.cumsum(w[0]), x[0, :3])
    return tnp.sum(spread * w) + tnp.sum(smooth**2) + tnp.sum(tnp.take(w, tnp.array([0, 7, 9]), mode="clip"))


def checkpointed(w: Any, x: Any) -> Any:
    """Layers that are computed again for the gradient."""
    layer = tl.checkpoint(lambda h: tnp.tanh(h @ w) + h)
    for _ in range(4):
        x = layer(x)
    return tnp.mean(x**2)


def solves(w: Any, x: Any) -> Any:
    """Cholesky's factor and triangular systems."""
    a = w @ w.T + 4 * tnp.eye(8, dtype=w.dtype)
    factor = tnp.linalg.cholesky(a)
    return tnp.sum(lax.linalg.triangular_solve(factor, x.T, left_side=True, lower=True) ** 2)


PROGRAMS = [network, recurrence, buffers, nested_loops, branches, movements, checkpointed, solves, decompositions]
TRANSFORMATIONS = {
    "value": lambda f: f,
    "value_and_grad": lambda f: tl.value_and_grad(f, argnums=(0, 1)),
    "jvp": lambda f: lambda w, x: tl.jvp(f, (w, x), (w * 0.5, x * 0.25)),
    "hessian product": lambda f: lambda w, x: tl.jvp(lambda w: tl.grad(f)(w, x), (w,), (w * 0.5,)),
    "vmap": lambda f: lambda w, x: tl.vmap(tl.grad(f), (None, 0))(w, tnp.stack([x, x * 0.5])),
}


@pytest.mark.parametrize("how", TRANSFORMATIONS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_agrees_with_the_cpu(f: Any, how: str, device: Any, cpu: Any):
    assert_same_on(device, cpu, TRANSFORMATIONS[how](f), W, X, rtol=10 * TF32)  # a few products, one after the other


@pytest.mark.parametrize("f", [network, recurrence, branches], ids=lambda f: f.__name__)
def test_eager_gradients_agree_with_the_cpu(f: Any, device: Any, cpu: Any):
    found = []
    for place in (device, cpu):
        with tl.default_device(place):
            found.append(np.asarray(tl.grad(f)(*(tl.device_put(a, place) for a in (W, X)))))
    np.testing.assert_allclose(*found, rtol=10 * TF32, atol=10 * TF32 * np.abs(found[1]).max())
