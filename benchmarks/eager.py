"""What does one operation, or one function of the library, cost without `jit`?

Baseline: JAX. Operands have three or nine floats: the arithmetic is a few nanoseconds, the rest is overhead. Functions
of many operations count most: they are one program each, or many. Calls are issued back to back, and the last result of
a sample is waited for.
"""

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Row, Thunk, arguments, libraries, names, repeated, report

QUESTION = "What does one operation cost without jit?"
CALLS = 200  # per sample, so that one clock reading and one wait are nothing among them
WORST = 1.5  # the ratio that no row should exceed

VECTOR = np.array([0.5, 1.0, 2.0], np.float32)
MATRIX = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
Operation = Callable[[ModuleType, Any, Any], Any]  # of a library, a vector and a matrix of its own


def module(lib: ModuleType, name: str) -> ModuleType:
    """Import a part of a library, such as "scipy.stats"."""
    return import_module(f"{lib.__name__}.{name}")


OPERATIONS: dict[str, Operation] = {
    "x + x": lambda lib, x, a: x + x,
    "x * 2.": lambda lib, x, a: x * 2.0,
    "x + numpy": lambda lib, x, a: x + VECTOR,
    "x > 0": lambda lib, x, a: x > 0,
    "-x": lambda lib, x, a: -x,
    "x ** 2": lambda lib, x, a: x**2,
    "x.sum()": lambda lib, x, a: x.sum(),
    "x @ x": lambda lib, x, a: x @ x,
    "where(x > 0, x, 0.)": lambda lib, x, a: lib.numpy.where(x > 0, x, 0.0),
    "linalg.norm(x)": lambda lib, x, a: lib.numpy.linalg.norm(x),
    "nn.softmax(x)": lambda lib, x, a: lib.nn.softmax(x),
    "np.asarray(x) again": lambda lib, x, a: np.asarray(x),
    "tree.map": lambda lib, x, a: lib.tree.map(lambda v: v, {"a": x, "b": (a, x)}),
    "sin(x)": lambda lib, x, a: lib.numpy.sin(x),
    "x[2]": lambda lib, x, a: x[2],
    "x[1:3]": lambda lib, x, a: x[1:3],
    "x.at[0].set(7.)": lambda lib, x, a: x.at[0].set(7.0),
    "float(x[0])": lambda lib, x, a: float(x[0]),
    "random.split": lambda lib, x, a: lib.random.split(lib.random.key(0)),
    "device_put": lambda lib, x, a: lib.device_put(VECTOR),
    "grad(sum(sin(x) * x))": lambda lib, x, a: lib.grad(lambda x: lib.numpy.sum(lib.numpy.sin(x) * x))(x),
    "vmap(lambda v: v * v + 1)": lambda lib, x, a: lib.vmap(lambda v: v * v + 1)(x),
}
# What nobody wrote this benchmark for: functions that consist of several operations.
FUNCTIONS: dict[str, Operation] = {
    "mean": lambda lib, x, a: lib.numpy.mean(a, axis=0),
    "var": lambda lib, x, a: lib.numpy.var(a),
    "std, keepdims": lambda lib, x, a: lib.numpy.std(a, axis=1, keepdims=True),
    "median": lambda lib, x, a: lib.numpy.median(a),
    "percentile": lambda lib, x, a: lib.numpy.percentile(x, 30.0),
    "average, weights": lambda lib, x, a: lib.numpy.average(x, weights=x),
    "cov": lambda lib, x, a: lib.numpy.cov(a),
    "nanmean": lambda lib, x, a: lib.numpy.nanmean(a),
    "clip": lambda lib, x, a: lib.numpy.clip(x, 0.6, 1.5),
    "linspace": lambda lib, x, a: lib.numpy.linspace(0.0, 1.0, 7),
    "interp": lambda lib, x, a: lib.numpy.interp(x, x, x),
    "allclose": lambda lib, x, a: lib.numpy.allclose(x, x),
    "outer": lambda lib, x, a: lib.numpy.outer(x, x),
    "cumsum": lambda lib, x, a: lib.numpy.cumsum(x),
    "sort": lambda lib, x, a: lib.numpy.sort(x),
    "concatenate": lambda lib, x, a: lib.numpy.concatenate([x, x]),
    "stack": lambda lib, x, a: lib.numpy.stack([x, x]),
    "einsum": lambda lib, x, a: lib.numpy.einsum("ij,j->i", a, x),
    "isclose": lambda lib, x, a: lib.numpy.isclose(x, x),
    "nn.gelu": lambda lib, x, a: lib.nn.gelu(x),
    "nn.elu": lambda lib, x, a: lib.nn.elu(x),
    "nn.leaky_relu": lambda lib, x, a: lib.nn.leaky_relu(x),
    "nn.log_softmax": lambda lib, x, a: lib.nn.log_softmax(a),
    "nn.logsumexp": lambda lib, x, a: lib.nn.logsumexp(a, axis=1),
    "nn.standardize": lambda lib, x, a: lib.nn.standardize(a),
    "nn.one_hot": lambda lib, x, a: lib.nn.one_hot(lib.numpy.array([0, 2]), 3),
    "nn.mish": lambda lib, x, a: lib.nn.mish(x),
    "linalg.det": lambda lib, x, a: lib.numpy.linalg.det(a),
    "linalg.inv": lambda lib, x, a: lib.numpy.linalg.inv(a),
    "linalg.solve": lambda lib, x, a: lib.numpy.linalg.solve(a, x),
    "linalg.slogdet": lambda lib, x, a: lib.numpy.linalg.slogdet(a),
    "linalg.cond": lambda lib, x, a: lib.numpy.linalg.cond(a),
    "stats.norm.logpdf": lambda lib, x, a: module(lib, "scipy.stats").norm.logpdf(x, 0.0, 2.0),
    "stats.gamma.logpdf": lambda lib, x, a: module(lib, "scipy.stats").gamma.logpdf(x, x),
    "stats.t.logpdf": lambda lib, x, a: module(lib, "scipy.stats").t.logpdf(x, 3.0),
    "stats.zscore": lambda lib, x, a: (
        module(lib, "scipy.stats").zscore(x)
        if hasattr(module(lib, "scipy.stats"), "zscore")
        else (x - x.mean()) / x.std()
    ),
    "special.logit": lambda lib, x, a: module(lib, "scipy.special").logit(x / 3),
    "special.betaln": lambda lib, x, a: module(lib, "scipy.special").betaln(x, x),
}
ROWS = OPERATIONS | FUNCTIONS


def prepare(operation: Operation) -> Callable[[ModuleType], Thunk]:
    """Make the thunk of an operation for either library."""

    def of(lib: ModuleType) -> Thunk:
        x, a = (lib.numpy.asarray(each) for each in (VECTOR, MATRIX))
        return repeated(lib, lambda: operation(lib, x, a), CALLS)

    return of


def geometric_mean(rows: Sequence[Row]) -> float:
    return math.exp(math.fsum(math.log(row.ratio) for row in rows) / len(rows))


def main() -> None:
    options = arguments(QUESTION)
    pair = libraries(options.control)
    rows = [
        pair.compare(name, prepare(operation), repeats=options.repeats, per=CALLS, target=WORST)
        for name, operation in ROWS.items()
        if options.only in name
    ]
    cannot_show = "throughput of large arrays (see steady), the first call, nor calls from several threads."
    report(QUESTION, rows, names=names(options.control), cannot_show=cannot_show)
    worst = max(rows, key=lambda row: row.ratio)
    print(f"Geometric mean {geometric_mean(rows):.2f}, worst {worst.ratio:.2f} ({worst.name})")


if __name__ == "__main__":
    main()
