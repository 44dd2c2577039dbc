"""How fast is the compiled gradient?

Baseline: JAX, whose gradient of the same program goes through the same compiler, so a ratio away from 1 is a difference
in the programs that the two hand over. Before timing, the two gradients are compared in value.
"""

from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Pair, Thunk, arguments, libraries, names, repeated, report

QUESTION = "How fast is the compiled gradient?"
TARGET = 1.05
CALLS = 20  # per sample, each waited for
TOLERANCE = 2e-3  # relative to the greatest entry: float32, sums of some thousand terms in another order
Problem = tuple[Callable[..., Any], tuple[Any, ...]]


def f32(*arrays: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(a, np.float32) for a in arrays)


def digits(lib: ModuleType) -> Problem:
    """Compute the loss of examples/digits.py for a batch of 256."""
    tnp, rng, sizes = lib.numpy, np.random.default_rng(0), (64, 128, 64, 10)
    params = [f32(rng.normal(size=(n, m)) * (2 / n) ** 0.5, np.zeros(m)) for n, m in pairwise(sizes)]
    images, labels = *f32(rng.uniform(size=(256, 64))), rng.integers(0, 10, 256).astype(np.int32)

    def loss(params: Any, images: Any, labels: Any) -> Any:
        x = images
        for w, b in params[:-1]:
            x = x @ w + b
            x = x / (1 + tnp.exp(-x))
        z = x @ params[-1][0] + params[-1][1]
        z = z - z.max(axis=1, keepdims=True)
        log_probability = z - tnp.log(tnp.exp(z).sum(axis=1, keepdims=True))
        return -log_probability[tnp.arange(256), labels].mean()

    return loss, (params, images, labels)


def lstm(lib: ModuleType) -> Problem:
    """Compute one step of an LSTM of 256 units on a batch of 64, and a squared error."""
    tnp, rng = lib.numpy, np.random.default_rng(1)
    weights, bias = f32(rng.normal(size=(512, 1024)) / 22, np.zeros(1024))
    x, h, c, target = f32(*rng.normal(size=(4, 64, 256)))

    def loss(parameters: Any, x: Any, h: Any, c: Any, target: Any) -> Any:
        weights, bias = parameters
        gates = tnp.concatenate([x, h], axis=1) @ weights + bias
        i, f, o = (1 / (1 + tnp.exp(-gates[:, k * 256 : (k + 1) * 256])) for k in range(3))
        c = f * c + i * tnp.tanh(gates[:, 768:])
        return tnp.sum((o * tnp.tanh(c) - target) ** 2)

    return loss, ((weights, bias), x, h, c, target)


def gmm(lib: ModuleType) -> Problem:
    """Compute the log-likelihood of 2,000 points in 8 dimensions under 10 Gaussians, given by triangular factors."""
    tnp, rng = lib.numpy, np.random.default_rng(2)
    points, means, logits = f32(rng.normal(size=(2000, 8)), rng.normal(size=(10, 8)), rng.normal(size=10))
    log_diagonal, lower = f32(rng.normal(size=(10, 8)) / 4, np.tril(rng.normal(size=(10, 8, 8)), -1) / 4)

    def log_likelihood(parameters: Any, points: Any) -> Any:
        logits, means, log_diagonal, lower = parameters
        centred = points[:, None, :] - means
        white = tnp.exp(log_diagonal) * centred + tnp.einsum("kij,nkj->nki", lower, centred)
        terms = logits + log_diagonal.sum(axis=1) - 0.5 * tnp.sum(white**2, axis=2)
        top = terms.max(axis=1, keepdims=True)
        return tnp.sum(top[:, 0] + tnp.log(tnp.sum(tnp.exp(terms - top), axis=1)))

    return log_likelihood, ((logits, means, log_diagonal, lower), points)


def gaussian(lib: ModuleType) -> Problem:
    """Compute the negative log-likelihood of a Gaussian process at 200 points, by a Cholesky factorization."""
    tnp, rng = lib.numpy, np.random.default_rng(3)
    x, y, scales = f32(np.sort(rng.uniform(size=200)), rng.normal(size=200), [0.3, 0.5])

    def loss(scales: Any, x: Any, y: Any) -> Any:
        covariance = tnp.exp(-(((x[:, None] - x) / scales[0]) ** 2)) + scales[1] * tnp.eye(200)
        factor = tnp.linalg.cholesky(covariance)
        white = lib.lax.linalg.triangular_solve(factor, y[:, None], left_side=True, lower=True)
        return tnp.sum(white**2) / 2 + tnp.sum(tnp.log(tnp.diagonal(factor)))

    return loss, (scales, x, y)


def factor(lib: ModuleType) -> Problem:
    """Compute Cholesky's factor of a matrix of 200 rows."""
    root = np.random.default_rng(4).normal(size=(200, 200))
    return lib.numpy.linalg.cholesky, f32(root @ root.T + 200 * np.eye(200))


def hartree_fock(lib: ModuleType) -> Problem:
    """Compute the energy of 8 orbitals in a basis of 24 functions, an einsum of five operands."""
    rng = np.random.default_rng(5)
    orbitals, integrals = f32(rng.normal(size=(24, 8)), rng.normal(size=(24,) * 4) / 24)

    def energy(c: Any, j: Any) -> Any:
        return lib.numpy.einsum("pi,qi,rj,sj,pqrs->", c, c, c, c, j)

    return energy, (orbitals, integrals)


def normal(*shape: int) -> Any:
    return np.random.default_rng(6).normal(size=shape).astype(np.float32)


def full_sum(*shape: int) -> Callable[[ModuleType], Problem]:
    """Sum all elements of an array."""
    return lambda lib: (lambda x: x.sum(), (normal(*shape),))


def axis_sum(axis: int, *shape: int) -> Callable[[ModuleType], Problem]:
    """Sum an array over one axis."""
    return lambda lib: (lambda x: x.sum(axis=axis), (normal(*shape),))


def row_maximum(lib: ModuleType) -> Problem:
    """Compute the greatest element of each row."""
    return lambda x: x.max(axis=1), (normal(1000, 1000),)


def softmax(lib: ModuleType) -> Problem:
    """Compute the softmax of each row."""
    return lib.nn.softmax, (normal(1000, 1000),)


def squared_softmax(lib: ModuleType) -> Problem:
    """Compute the sum of squares of the softmax of each row."""
    return lambda x: lib.numpy.sum(lib.nn.softmax(x) ** 2), (normal(1000, 1000),)


def layer_norm(lib: ModuleType) -> Problem:
    """Normalise each row to mean 0 and variance 1, scale and shift it."""

    def normalised(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred**2).mean(axis=1, keepdims=True)
        return centred * lib.lax.rsqrt(variance + 1e-5) * scale + shift

    return normalised, (normal(1000, 1000), normal(1000), normal(1000))


def squared_layer_norm(lib: ModuleType) -> Problem:
    """Compute the sum of squares of normalised rows."""
    normalised, args = layer_norm(lib)
    return lambda *args: lib.numpy.sum(normalised(*args) ** 2), args


def max_pooling(lib: ModuleType) -> Problem:
    """Compute the greatest elements of windows of 2 x 2, of 8 images of 16 channels."""
    images, window = normal(8, 128, 128, 16), (1, 2, 2, 1)
    return lambda x: lib.lax.reduce_window(x, -np.inf, lib.lax.max, window, window, "VALID"), (images,)


def squared_differences(lib: ModuleType) -> Problem:
    """Compute the sum of squared differences of neighbours."""
    return lambda x: lib.numpy.sum(lib.numpy.diff(x) ** 2), (normal(10**6),)


def matrix_product(n: int) -> Callable[[ModuleType], Problem]:
    """Compute the product of two square matrices."""
    return lambda lib: (lambda x, y: x @ y, (normal(n, n), normal(n, n)))


def compiled(problem: Callable[[ModuleType], Problem]) -> Callable[[ModuleType], Thunk]:
    def prepare(lib: ModuleType) -> Thunk:
        f, args = problem(lib)
        f, args = lib.jit(f), [lib.tree.map(lib.numpy.asarray, arg) for arg in args]
        return repeated(lib, lambda: lib.block_until_ready(f(*args)), CALLS)

    return prepare


def compiled_gradient(problem: Callable[[ModuleType], Problem]) -> Callable[[ModuleType], Thunk]:
    def gradient(lib: ModuleType) -> Problem:
        f, args = problem(lib)
        return lib.value_and_grad(f), args

    return compiled(gradient)


def check_agreement(pair: Pair, prepare: Callable[[ModuleType], Thunk]) -> None:
    results = (lib.tree.leaves(prepare(lib)()) for lib in (pair.ours, pair.baseline))
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE * np.abs(theirs).max())


ROWS: dict[str, Callable[[ModuleType], Thunk]] = {
    "digits loss, batch 256": compiled_gradient(digits),
    "LSTM step, 256 units": compiled_gradient(lstm),
    "GMM log-likelihood, 2000 points": compiled_gradient(gmm),
    "Gaussian process, 200 points": compiled_gradient(gaussian),
    "Hartree-Fock energy, 24 functions": compiled_gradient(hartree_fock),
    "Cholesky factor, n = 200, value only": compiled(factor),
    "full sum, 1000 x 1000": compiled(full_sum(1000, 1000)),
    "full sum, 100,000": compiled(full_sum(10**5)),
    "full sum, 1,000,000": compiled(full_sum(10**6)),
    "row sums, 1000 x 1000": compiled(axis_sum(1, 1000, 1000)),
    "row sums, 100,000 x 10": compiled(axis_sum(1, 10**5, 10)),
    "column sums, 1000 x 1000": compiled(axis_sum(0, 1000, 1000)),
    "row maxima, 1000 x 1000": compiled(row_maximum),
    "softmax of rows, 1000 x 1000": compiled(softmax),
    "softmax of rows, squared, gradient": compiled_gradient(squared_softmax),
    "layer norm, 1000 x 1000": compiled(layer_norm),
    "layer norm, squared, gradient": compiled_gradient(squared_layer_norm),
    "max pooling, 8 x 128 x 128 x 16": compiled(max_pooling),
    "squared differences, 1,000,000": compiled(squared_differences),
    "squared differences, gradient": compiled_gradient(squared_differences),
    "matrix product, 100 x 100": compiled(matrix_product(100)),
    "matrix product, 1000 x 1000": compiled(matrix_product(1000)),
}


def main() -> None:
    options = arguments(QUESTION)
    pair = libraries(options.control)
    rows = []
    for name, prepare in ROWS.items():
        if options.only in name:
            check_agreement(pair, prepare)
            rows.append(pair.compare(name, prepare, repeats=options.repeats, per=CALLS, target=TARGET))
    cannot_show = "speed on other devices or at sizes where memory, not arithmetic, is short."
    report(QUESTION, rows, names=names(options.control), cannot_show=cannot_show)


if __name__ == "__main__":
    main()
