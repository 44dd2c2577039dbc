"""How do gradients grow with the size of the problem?

Baseline: JAX on the same programs, in the same process, in turn. Printed are the time of the compiled gradient and the
temporary bytes that the compiler says it needs, at three sizes, and the exponents that fit: 1 is linear, 2 quadratic.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import libraries, machine, seconds

QUESTION = "How do gradients grow with the size of the problem?"
TOO_LONG = 3.0  # seconds: the larger sizes are left out after that
Problem = Callable[[ModuleType], Callable[[Any], Any]]

# ---- loops: n steps of constant work


def read(lib: ModuleType) -> Any:
    return lambda x: lib.lax.fori_loop(0, len(x), lambda i, s: lib.numpy.sin(s) * x[i], 1.0)


def read_reversed(lib: ModuleType) -> Any:
    return lambda x: lib.lax.fori_loop(0, len(x), lambda i, s: lib.numpy.sin(s) * x[::-1][i], 1.0)


def read_padded(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        return lib.lax.fori_loop(0, len(x), lambda i, s: lib.numpy.sin(s) * lib.numpy.pad(x, 1)[i], 1.0)

    return f


def read_rows(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        rows = lib.numpy.stack([x, 2 * x], axis=1)
        return lib.lax.fori_loop(0, len(x), lambda i, s: lib.numpy.sin(s) * rows[i].sum(), 1.0)

    return f


def read_in_a_branch(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return lib.lax.cond(i % 3 == 0, lambda s: s * x[i], lib.numpy.sin, s)

        return lib.lax.fori_loop(0, len(x), step, 1.0)

    return f


def write_a_buffer(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            s, buffer = state
            s = lib.numpy.sin(s) + x[i]
            return s, buffer.at[i].set(s)

        return (lib.lax.fori_loop(0, len(x), step, (1.0, lib.numpy.zeros(len(x))))[1] ** 2).sum()

    return f


def add_to_a_buffer(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            s, buffer = state
            s = lib.numpy.sin(s) + x[i]
            return s, buffer.at[i].add(s)

        return (lib.lax.fori_loop(0, len(x), step, (1.0, lib.numpy.zeros(len(x))))[1] ** 2).sum()

    return f


def read_then_overwrite(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            s, buffer = state
            value = buffer[i]
            return 0.9 * s + value**2, buffer.at[i].set(0.0)

        return lib.lax.fori_loop(0, len(x), step, (0.0, x))[0]

    return f


def recurrence(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        return lib.lax.fori_loop(1, len(x), lambda i, b: b.at[i].set(lib.numpy.sin(b[i - 1]) + x[i]), x).sum()

    return f


def swap(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        n = len(x)

        def step(i: Any, b: Any) -> Any:
            j = (7 * i + 3) % n
            u, v = b[i], b[j]
            return b.at[i].set(1.01 * v).at[j].set(u)

        return (lib.lax.fori_loop(0, n, step, x) * lib.numpy.arange(n)).sum()

    return f


def scanned(lib: ModuleType) -> Any:
    return lambda x: lib.lax.scan(lambda s, e: (lib.numpy.sin(s) + e, s * e), 0.0, x)[1].sum()


def index_for_each_example(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def one(offset: Any) -> Any:
            return lib.lax.fori_loop(0, len(x), lambda i, s: 0.9 * s + x[(i + offset) % len(x)], 0.0)

        return lib.vmap(one)(lib.numpy.arange(4)).sum()

    return f


def loop_in_a_loop(lib: ModuleType) -> Any:
    """Run three steps of an inner loop in each step of an outer loop; both read and write the outer carry."""

    def f(x: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            s, buffer = state
            s = lib.lax.fori_loop(0, 3, lambda j, s: lib.numpy.sin(s) + buffer[i], s)
            return s, buffer.at[i].set(s)

        return (lib.lax.fori_loop(0, len(x), step, (1.0, x))[1] ** 2).sum()

    return f


# ---- structured intermediates: n x n on paper, n in fact


def row_and_column_of_outer(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: tnp.dot(tnp.outer(x, x)[:, 0], tnp.outer(x, x)[0, :])


def trace_of_outer(lib: ModuleType) -> Any:
    return lambda x: lib.numpy.trace(lib.numpy.outer(x, x))


def diagonal_matrix(lib: ModuleType) -> Any:
    return lambda x: lib.numpy.dot(lib.numpy.diag(x) @ x, x)


def outer_times_vector(lib: ModuleType) -> Any:
    return lambda x: (lib.numpy.outer(x, x) @ x).sum()


def second_differences(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        n = len(x)
        matrix = lib.numpy.eye(n, k=1) - 2 * lib.numpy.eye(n) + lib.numpy.eye(n, k=-1)
        return lib.numpy.dot(matrix @ x, x)

    return f


def equal_blocks(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: tnp.dot(tnp.kron(tnp.eye(len(x) // 4), tnp.outer(x[:4], x[:4])) @ x, x)


def product_of_diagonals(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: (tnp.diag(x) @ tnp.diag(x) @ x).sum()


def sum_of_masked_outer(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: (tnp.outer(x, x) * tnp.eye(len(x))).sum()


def choice_by_position(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        tnp, places = lib.numpy, lib.numpy.arange(len(x))
        return (tnp.where(places[:, None] == places, tnp.outer(x, x), 0) @ x).sum()

    return f


def constant_diagonal(lib: ModuleType) -> Any:
    return lambda x: lib.numpy.dot(np.eye(len(x), k=1, dtype=np.float32) @ x, x)


def columns_of_outer(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: tnp.sin(tnp.take(tnp.outer(x, x), np.array([0, 2, 5]), axis=1)).sum()


def row_of_running_sums(lib: ModuleType) -> Any:
    tnp = lib.numpy
    return lambda x: tnp.sin(tnp.cumsum(tnp.outer(x, x), axis=1)[0]).sum()


def row_of_a_call(lib: ModuleType) -> Any:
    return lambda x: lib.numpy.sin(lib.jit(lib.numpy.outer)(x, x)[0]).sum()


def read_in_a_call(lib: ModuleType) -> Any:
    return lambda x: lib.numpy.sin(lib.jit(lambda a: a[0])(lib.numpy.outer(x, x))).sum()


def read_by_branches(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        return lib.numpy.sin(lib.lax.cond(x[0] > 0, lambda a: a[0], lambda a: a[1], lib.numpy.outer(x, x))).sum()

    return f


# ---- pointful: elements are written one by one, and mapped over their indices


def turned_by_index(lib: ModuleType) -> Any:
    return lambda x: lib.vmap(lambda i: x[i] * x[len(x) - 1 - i])(lib.numpy.arange(len(x))).sum()


def shifted_by_index(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        def element(i: Any) -> Any:
            return lib.numpy.where(i < 10, x[i], x[i - 10]) * x[i]

        return lib.vmap(element)(lib.numpy.arange(len(x))).sum()

    return f


def product_by_index(lib: ModuleType) -> Any:
    """Compute the elements of A @ A, each a sum over k of A[i, k] A[k, j]."""

    def f(x: Any) -> Any:
        a, tnp = square(lib, x), lib.numpy

        def each(element: Any) -> Any:
            return lib.vmap(element)(tnp.arange(len(a)))

        return tnp.sin(each(lambda i: each(lambda j: tnp.sum(each(lambda k: a[i, k] * a[k, j]))))).sum()

    return f


# ---- products of matrices, of whose n x n elements x has all: one power of n less than the product takes


def square(lib: ModuleType, x: Any) -> Any:
    n = round(len(x) ** 0.5)
    return lib.numpy.reshape(x, (n, n))


def product_times_vector(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        a = square(lib, x)
        return lib.numpy.sin((a @ a) @ a[0]).sum()

    return f


def column_of_a_product(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        a = square(lib, x)
        return lib.numpy.sin((a @ a @ a)[:, 0]).sum()

    return f


def diagonal_of_a_product(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        a = square(lib, x)
        return lib.numpy.sin((a @ a) * lib.numpy.eye(len(a))).sum()

    return f


def trace_of_a_product(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        a = square(lib, x)
        return lib.numpy.trace(a @ a)

    return f


def hessian_of_a_quadratic(lib: ModuleType) -> Any:
    def f(x: Any) -> Any:
        a = square(lib, x)
        return lib.numpy.sin(lib.hessian(lambda v: v @ a @ v)(a[0])).sum()

    return f


# ---- gradients that are linear everywhere, for comparison


def elementwise(lib: ModuleType) -> Any:
    return lambda x: (lib.numpy.sin(x) * x).sum()


def sorted_sum(lib: ModuleType) -> Any:
    return lambda x: (lib.numpy.sort(x) * lib.numpy.arange(len(x))).sum()


def cumulative(lib: ModuleType) -> Any:
    return lambda x: (lib.numpy.cumsum(x) ** 2).sum()


def gathered(lib: ModuleType) -> Any:
    return lambda x: (x[lib.numpy.arange(len(x)) * 7 % len(x)] ** 2).sum()


def associative(lib: ModuleType) -> Any:
    return lambda x: lib.lax.associative_scan(lambda a, b: a * b, 1 + x / len(x)).sum()


LOOPS = [
    read, read_reversed, read_padded, read_rows, read_in_a_branch,
    write_a_buffer, add_to_a_buffer, read_then_overwrite, recurrence, swap,
]  # fmt: skip
LOOPS += [scanned, index_for_each_example, loop_in_a_loop]
STRUCTURED = [row_and_column_of_outer, trace_of_outer, diagonal_matrix, outer_times_vector]
STRUCTURED += [second_differences, equal_blocks, product_of_diagonals, sum_of_masked_outer, choice_by_position]
STRUCTURED += [
    constant_diagonal,
    columns_of_outer,
    row_of_running_sums,
    row_of_a_call,
    read_in_a_call,
    read_by_branches,
]
POINTFUL = [turned_by_index, shifted_by_index]
PRODUCTS = [
    product_times_vector,
    column_of_a_product,
    diagonal_of_a_product,
    trace_of_a_product,
    hessian_of_a_quadratic,
]
PLAIN = [elementwise, sorted_sum, cumulative, gathered, associative]
SIZES = {
    **dict.fromkeys(LOOPS + POINTFUL + PLAIN, (1_000, 10_000, 100_000)),
    **dict.fromkeys(STRUCTURED, (1_000, 4_000, 16_000)),
    product_by_index: (50**2, 100**2, 200**2),
    **dict.fromkeys(PRODUCTS, (100**2, 200**2, 400**2)),
}


@dataclass(frozen=True)
class Growth:
    """Seconds and temporary bytes at the sizes that were tried."""

    sizes: tuple[int, ...]
    times: tuple[float, ...]
    temporaries: tuple[int, ...]

    def __str__(self) -> str:
        times = " ".join(f"{seconds(t):>8}" for t in self.times).ljust(26)
        return (
            f"{times} n^{exponent(self.sizes, self.times):4.2f}   {self.bytes_text():>9} n^{self.bytes_exponent():4.2f}"
        )

    def bytes_text(self) -> str:
        return f"{self.temporaries[-1] / 1e6:.2f} MB"

    def bytes_exponent(self) -> float:
        return exponent(self.sizes, [max(n, 1) for n in self.temporaries])


def exponent(sizes: Any, values: Any) -> float:
    """Fit the exponent of a power in logarithms; of the last step alone, where starting costs count least."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2])) if len(values) > 1 else float("nan")


def growth(lib: ModuleType, problem: Problem, sizes: tuple[int, ...], repeats: int) -> Growth:
    times: list[float] = []
    temporaries: list[int] = []
    for n in sizes:
        if times and times[-1] > TOO_LONG:
            break
        x = lib.numpy.linspace(0.1, 0.9, n)
        compiled = lib.jit(lib.grad(problem(lib))).lower(x).compile()
        temporaries.append(compiled.memory_analysis().temp_size_in_bytes)
        times.append(min(_timed(lib, compiled, x) for _ in range(repeats)))
    return Growth(sizes[: len(times)], tuple(times), tuple(temporaries))


def _timed(lib: ModuleType, compiled: Any, x: Any) -> float:
    began = perf_counter()
    lib.block_until_ready(compiled(x))
    return perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--repeats", type=int, default=3, help="runs per size, of which the fastest counts")
    parser.add_argument("--only", default="", help="run programs whose name contains this")
    options = parser.parse_args()
    pair = libraries(False)
    print(f"{QUESTION}\n{machine()}\n\n{'':26}{'time at three sizes':34} {'bytes at the largest':>20}")
    for problem, sizes in SIZES.items():
        if options.only in problem.__name__:
            print(problem.__name__.replace("_", " "))
            for lib in (pair.ours, pair.baseline):
                print(f"    {lib.__name__:>9}  {growth(lib, problem, sizes, options.repeats)}", flush=True)
    print("\nCannot show: what happens on other devices, or once caches are too small. Exponents are of the last step.")


if __name__ == "__main__":
    main()
