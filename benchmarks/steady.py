"""How fast are single operations, compiled, and their gradients?

Baseline: JAX, whose program of the same operation goes through the same compiler, so a ratio away from 1 is a
difference in the programs that the two hand over. Before timing, the two are compared in value. `python -m benchmarks`
compares whole programs.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Thunk, arguments, libraries, names, repeated, report

QUESTION = "How fast are single operations, compiled, and their gradients?"
TARGET = 1.05
CALLS = 20  # per sample, each waited for
Problem = tuple[Callable[..., Any], tuple[Any, ...]]


def f32(*arrays: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(a, np.float32) for a in arrays)


def factor(lib: ModuleType) -> Problem:
    """Compute Cholesky's factor of a matrix of 200 rows."""
    root = np.random.default_rng(4).normal(size=(200, 200))
    return lib.numpy.linalg.cholesky, f32(root @ root.T + 200 * np.eye(200))


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


ROWS: dict[str, Callable[[ModuleType], Thunk]] = {
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
            pair.agree(prepare)
            rows.append(pair.compare(name, prepare, repeats=options.repeats, per=CALLS, target=TARGET))
    cannot_show = "speed on other devices or at sizes where memory, not arithmetic, is short."
    report(QUESTION, rows, names=names(options.control), cannot_show=cannot_show)


if __name__ == "__main__":
    main()
