"""Do programs written by their elements run as the best bulk programs written by hand do, here and in JAX?

Baseline: by hand, the program in bulk operations that one would write for it. Each row times the compiled value and
gradient: of the index form against the bulk form here (wanted: at most 1.1), and against the bulk form in JAX.
"""

import argparse
from collections.abc import Callable
from time import process_time
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import libraries, machine, sample, seconds
from tapeless import index as ix
from tapeless import numpy as tnp

QUESTION = __doc__.splitlines()[0]
RNG = np.random.default_rng(0)
TARGET = 1.1


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


class Problem(NamedTuple):
    """A scalar function by elements, the same in bulk operations of either library, and its arguments."""

    by_elements: Callable[..., Any]
    in_bulk: Callable[[ModuleType], Callable[..., Any]]
    args: tuple[Any, ...]


# ---- products of matrices, and what is read of them


def product(a: Any, b: Any) -> Any:
    (n, k), m = a.shape, b.shape[1]
    return ix.build((n, m), lambda i, j: ix.sum(k, lambda p: a[i, p] * b[p, j]))


MATRIX_PRODUCT = Problem(
    lambda a, b: (product(a, b) ** 2).sum(),
    lambda lib: lambda a, b: ((a @ b) ** 2).sum(),
    (normal(384, 384), normal(384, 384)),
)
TRACE_OF_A_PRODUCT = Problem(
    lambda a, b: ix.sum(len(a), lambda i: product(a, b)[i, i]),
    lambda lib: lambda a, b: (a * b.T).sum(),
    (normal(512, 512), normal(512, 512)),
)


def _row_times_column(x: Any) -> Any:
    outer = ix.build((len(x), len(x)), lambda i, j: x[i] * x[j])
    return ix.sum(len(x), lambda i: outer[i, 0] * outer[0, i])


ROW_TIMES_COLUMN = Problem(_row_times_column, lambda lib: lambda x: x[0] ** 2 * (x * x).sum(), (normal(100_000),))

# ---- stencils and convolutions


def _convolved(x: Any, g: Any) -> Any:
    n = len(x) - len(g) + 1
    y = ix.build(n, lambda i: ix.sum(len(g), lambda j: g[j] * x[i + j]))
    return (y**2).sum()


CONVOLUTION = Problem(
    _convolved,
    lambda lib: lambda x, g: (lib.numpy.convolve(x, g[::-1], "valid") ** 2).sum(),
    (normal(20_000), normal(9)),
)


def _filtered(x: Any, g: Any) -> Any:
    n, m = len(x) - len(g) + 1, len(g)
    y = ix.build((n, n), lambda i, j: ix.sum((m, m), lambda p, q: g[p, q] * x[i + p, j + q]))
    return (y**2).sum()


def _filtered_in_bulk(lib: ModuleType) -> Any:
    def f(x: Any, g: Any) -> Any:
        y = lib.lax.conv_general_dilated(x[None, None], g[None, None], (1, 1), "VALID")
        return (y**2).sum()

    return f


def image_filter(n: int) -> Problem:
    """Make the problem of an image of n by n, and 5 by 5 weights."""
    return Problem(_filtered, _filtered_in_bulk, (normal(n, n), normal(5, 5)))


def _smoothed(x: Any) -> Any:
    h, w = x.shape
    y = ix.build((h, w), lambda i, j: x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j])
    return (y**2).sum()


def _smoothed_in_bulk(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        p = lib.numpy.pad(x, 1)
        y = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x
        return (y**2).sum()

    return f


LAPLACIAN = Problem(_smoothed, _smoothed_in_bulk, (normal(512, 512),))

# ---- networks


def _network(x: Any, *weights: Any) -> Any:
    for w in weights:
        x = _layer(x, w)
    return (x**2).sum()


def _layer(x: Any, w: Any) -> Any:
    (n, k), m = x.shape, w.shape[1]

    def activation(i: Any, j: Any) -> Any:
        z = ix.sum(k, lambda p: x[i, p] * w[p, j])
        return ix.where(z > 0, z, 0.0)

    return ix.build((n, m), activation)


def _network_in_bulk(lib: ModuleType) -> Any:
    def f(x: Any, *weights: Any) -> Any:
        for w in weights:
            z = x @ w
            x = lib.numpy.where(z > 0, z, 0.0)
        return (x**2).sum()

    return f


LAYERS = [0.05 * normal(784, 300), 0.05 * normal(300, 100), 0.1 * normal(100, 10)]
NETWORK = Problem(_network, _network_in_bulk, (normal(128, 784), *LAYERS))


def _pooled(x: Any, g: Any) -> Any:
    """Convolve images [n, c, h, w] with g [d, c, k, k], and take maxima of 2 by 2 elements and 0."""
    (n, c, h, w), (d, _, k, _) = x.shape, g.shape
    h, w = h - k + 1, w - k + 1
    y = ix.build(
        (n, d, h, w), lambda b, o, i, j: ix.sum((c, k, k), lambda q, p, r: g[o, q, p, r] * x[b, q, i + p, j + r])
    )

    def pooled(b: Any, o: Any, i: Any, j: Any) -> Any:
        return ix.where(largest(b, o, i, j) > 0, largest(b, o, i, j), 0.0)

    def largest(b: Any, o: Any, i: Any, j: Any) -> Any:
        return ix.max((2, 2), lambda p, r: y[b, o, 2 * i + p, 2 * j + r])

    return ix.build((n, d, h // 2, w // 2), pooled)


def _convolutional(x: Any, *filters: Any) -> Any:
    for g in filters:
        x = _pooled(x, g)
    return (x**2).sum()


def _convolutional_in_bulk(lib: ModuleType) -> Any:
    def f(x: Any, *filters: Any) -> Any:
        for g in filters:
            y = lib.lax.conv_general_dilated(x, g, (1, 1), "VALID")
            y = lib.lax.reduce_window(y, -np.inf, lib.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
            x = lib.numpy.where(y > 0, y, 0.0)
        return (x**2).sum()

    return f


FILTERS = [0.2 * normal(8, 1, 5, 5), 0.1 * normal(16, 8, 3, 3)]
CONVOLUTIONAL = Problem(_convolutional, _convolutional_in_bulk, (normal(16, 1, 28, 28), *FILTERS))


def _recurrent(xs: Any, w: Any, u: Any) -> Any:
    (steps, k), n = xs.shape, len(w)

    def step(h: Any, t: Any) -> Any:
        def unit(i: Any) -> Any:
            return tnp.tanh(ix.sum(n, lambda j: w[i, j] * h[j]) + ix.sum(k, lambda j: u[i, j] * xs[t, j]))

        return ix.build(n, unit)

    return (ix.fold(step, tnp.zeros(n), steps) ** 2).sum()


def _recurrent_in_bulk(lib: ModuleType) -> Any:
    def f(xs: Any, w: Any, u: Any) -> Any:
        step = lambda h, x: (lib.numpy.tanh(w @ h + u @ x), None)  # noqa: E731
        return (lib.lax.scan(step, lib.numpy.zeros(len(w)), xs)[0] ** 2).sum()

    return f


RECURRENT = Problem(
    _recurrent, _recurrent_in_bulk, (normal(200, 128), 0.05 * normal(128, 128), 0.05 * normal(128, 128))
)

# ---- the repulsion of the Hartree-Fock method


def _repulsion(C: Any, J: Any) -> Any:
    n, occupied = C.shape
    D = ix.build((n, n), lambda p, q: ix.sum(occupied, lambda i: C[p, i] * C[q, i]))
    return ix.sum((n, n, n, n), lambda p, q, r, s: D[p, q] * D[r, s] * J[p, q, r, s])


def _repulsion_in_bulk(lib: ModuleType) -> Any:
    def f(C: Any, J: Any) -> Any:
        D = C @ C.T
        return (D * lib.numpy.einsum("pqrs,rs->pq", J, D)).sum()

    return f


def repulsion(n: int) -> Problem:
    """Make the problem of n basis functions."""
    return Problem(_repulsion, _repulsion_in_bulk, (normal(n, n // 4), normal(n, n, n, n)))


# ---- loops and entries


def fold(n: int) -> Problem:
    """Multiply n numbers."""
    return Problem(
        lambda x: ix.fold(lambda c, k: c * x[k], 1.0, len(x)),
        lambda lib: lambda x: lib.lax.scan(lambda c, y: (c * y, None), 1.0, x)[0],
        (1 + 1e-6 * normal(n),),
    )


FOLD = fold(200_000)
LONG = {"fold of 5e7": 50_000_000}  # run if they are asked for
N, ENTRIES = 100_000, 1_000_000
ROWS, COLUMNS = RNG.integers(0, N, (2, ENTRIES)).astype(np.int32)


def _sparse(values: Any, x: Any) -> Any:
    s = ix.sparse((ROWS, COLUMNS), values, (N, N))
    y = ix.build(N, lambda i: ix.sum(N, lambda j: s[i, j] * x[j]))
    return (y**2).sum()


def _sparse_in_bulk(lib: ModuleType) -> Any:
    def f(values: Any, x: Any) -> Any:
        y = lib.numpy.zeros(N, np.float32).at[ROWS].add(values * x[COLUMNS])
        return (y**2).sum()

    return f


ENTRIES_TIMES_VECTOR = Problem(_sparse, _sparse_in_bulk, (normal(ENTRIES), normal(N)))

PROBLEMS = {
    "matrix product": MATRIX_PRODUCT,
    "trace of a product": TRACE_OF_A_PRODUCT,
    "row times column of an outer product": ROW_TIMES_COLUMN,
    "convolution": CONVOLUTION,
    **{f"filter of an image, {n} by {n}": image_filter(n) for n in (6, 12, 24, 48, 96, 192)},
    "Laplacian": LAPLACIAN,
    "network 784-300-100-10": NETWORK,
    "convolutional network with pooling": CONVOLUTIONAL,
    "recurrent network of width 128": RECURRENT,
    "Hartree-Fock, 24 basis functions": repulsion(24),
    "Hartree-Fock, 48 basis functions": repulsion(48),
    "fold": FOLD,
    "entries times vector": ENTRIES_TIMES_VECTOR,
}


def compiled(lib: ModuleType, f: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a thunk that computes value and gradient, compiled before."""
    run = lib.jit(lib.value_and_grad(f, tuple(range(len(args)))))
    on_device = [lib.numpy.asarray(x) for x in args]
    lib.block_until_ready(run(*on_device))
    return lambda: lib.block_until_ready(run(*on_device))


def _processor_time(thunk: Callable[[], Any]) -> float:
    """Measure the seconds of all threads in one call of a few."""
    began = process_time()
    for _ in range(CALLS):
        thunk()
    return (process_time() - began) / CALLS


CALLS = 5  # more than a tick of the clock


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--repeats", type=int, default=15, help="samples per side")
    parser.add_argument("--only", default="", help="run rows whose name contains this")
    parser.add_argument("--processor", action="store_true", help="least processor time, for machines that are in use")
    parser.add_argument("--long", action="store_true", help="run rows of minutes, too: a fold of 5e7")
    options = parser.parse_args()
    pair = libraries(False)
    print(
        f"{QUESTION}\n{machine()}\n\n{'':38}{'by elements':>12}{'in bulk':>12}{'ratio':>7}{'JAX, bulk':>12}{'ratio':>7}"
    )
    longer = {name: fold(n) for name, n in LONG.items() if options.long}
    for name, problem in (PROBLEMS | longer).items():
        if options.only in name:
            thunks = [
                compiled(pair.ours, problem.by_elements, problem.args),
                compiled(pair.ours, problem.in_bulk(pair.ours), problem.args),
                compiled(pair.baseline, problem.in_bulk(pair.baseline), problem.args),
            ]
            taken = _processor_time if options.processor else sample
            samples = [[taken(thunk) for thunk in thunks] for _ in range(options.repeats)]
            ours, bulk, theirs = (np.min if options.processor else np.median)(samples, axis=0)
            missed = "  <- missed" if ours > TARGET * bulk else ""
            print(
                f"{name:38}{seconds(ours):>12}{seconds(bulk):>12}{ours / bulk:7.2f}{seconds(theirs):>12}"
                f"{ours / theirs:7.2f}{missed}", flush=True,
            )  # fmt: skip
    print("\nCannot show: what happens on other devices, how long compiling takes.")


if __name__ == "__main__":
    main()
