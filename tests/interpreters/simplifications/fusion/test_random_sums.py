"""Random programs of repeated, masked, moved and summed arrays: what fusion makes of them against plain NumPy.

Integers wrap around in any order, so their programs are compared exactly. A few programs are compiled as users compile
them, for what a rewrite newly puts side by side XLA has to get right, too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.simplify import simplify_program
from tests.stepping import by_steps

N = 6
CLOSE = {"rtol": 1e-9, "atol": 1e-9}  # sums of some hundred products of the size of 1, in another order
Operation = Callable[[Any, np.random.Generator, Any, Any], Any]


def vector(x: Any) -> Any:
    return x if x.ndim == 1 else x[:, 1]


def matrix(lib: Any, x: Any) -> Any:
    return x if x.ndim == 2 else lib.outer(x, x[::-1])


def eye(lib: Any, x: Any, k: int = 0) -> Any:
    return lib.eye(N, k=k, dtype=x.dtype)


def places(lib: Any) -> tuple[Any, Any]:
    return lib.arange(N)[:, None], lib.arange(N)[None, :]


def masked(compare: Callable[[Any, Any], Any]) -> Operation:
    return lambda lib, r, x, y: lib.where(compare(*places(lib)), matrix(lib, x), 0)


OPERATIONS: dict[str, Operation] = {
    "outer": lambda lib, r, x, y: lib.outer(vector(x), vector(y)),
    "repeated": lambda lib, r, x, y: lib.broadcast_to(vector(x)[:, None], (N, N)),
    "diag": lambda lib, r, x, y: lib.diag(vector(x)),
    "band": lambda lib, r, x, y: lib.diag(vector(x)[1:], 1) - lib.diag(vector(y)[:-2], -2),
    "eye": lambda lib, r, x, y: eye(lib, x, int(r.integers(-2, 3))) * matrix(lib, x),
    "equal": masked(lambda i, j: i == j + 1),
    "turned": masked(lambda i, j: i + j == N - 1),
    "twice": masked(lambda i, j: 2 * i == j),
    "a row": masked(lambda i, j: (i == 2) & (j >= 0)),
    "triangle": masked(lambda i, j: i > j + 1),
    "kron": lambda lib, r, x, y: lib.kron(lib.eye(2, dtype=x.dtype), matrix(lib, x)[1:4, 2:5]),
    "kron of vectors": lambda lib, r, x, y: lib.kron(vector(x)[:2], vector(y)[3:]),
    "product": lambda lib, r, x, y: matrix(lib, x) @ matrix(lib, y),
    "applied": lambda lib, r, x, y: matrix(lib, x) @ vector(y),
    "from the left": lambda lib, r, x, y: vector(y) @ matrix(lib, x),
    "traced": lambda lib, r, x, y: vector(y) * lib.trace(matrix(lib, x) @ matrix(lib, y)),
    "by elements": lambda lib, r, x, y: matrix(lib, x) * matrix(lib, y),
    "rows": lambda lib, r, x, y: matrix(lib, x) * vector(y)[:, None],
    "difference": lambda lib, r, x, y: matrix(lib, x) - matrix(lib, y),
    "negative": lambda lib, r, x, y: -x,
    "thrice": lambda lib, r, x, y: 3 * x,
    "square": lambda lib, r, x, y: matrix(lib, x) ** 2,
    "transposed": lambda lib, r, x, y: matrix(lib, x).T,
    "reversed": lambda lib, r, x, y: x[::-1],
    "spread out": lambda lib, r, x, y: lib.concatenate([x[::2], x[1::2] * 0 + y[:3]]) if x.ndim == y.ndim else x,
    "padded": lambda lib, r, x, y: lib.pad(vector(x)[2:5], (1, 2)),
    "blocks": lambda lib, r, x, y: matrix(lib, x).reshape(2, 3, N).sum(1).repeat(3, 0),
    "sums": lambda lib, r, x, y: matrix(lib, x).sum(int(r.integers(2))),
    "total": lambda lib, r, x, y: vector(y) * x.sum(),
    "diagonal": lambda lib, r, x, y: lib.diagonal(matrix(lib, x)),
    "rows at positions": lambda lib, r, x, y: lib.take(matrix(lib, x), r.integers(0, N, N), 0),
    "elements at positions": lambda lib, r, x, y: matrix(lib, x)[r.integers(0, N, N), r.integers(0, N, N)],
    "along an axis": lambda lib, r, x, y: vector(y) + lib.take_along_axis(matrix(lib, x), r.integers(0, N, (N, 1)), 1),
    "running sums": lambda lib, r, x, y: lib.cumsum(matrix(lib, x), int(r.integers(2)), dtype=x.dtype),
    "running sum": lambda lib, r, x, y: lib.cumsum(x, dtype=x.dtype)[: N * N : x.ndim * N - N + 1][:N],
    "triangle, applied": lambda lib, r, x, y: lib.tri(N, k=int(r.integers(-1, 2)), dtype=x.dtype) @ vector(x),
    "a row of it": lambda lib, r, x, y: matrix(lib, x)[int(r.integers(N))],
    "joined": lambda lib, r, x, y: lib.concatenate([matrix(lib, x)[:2], matrix(lib, y)[2:]]),
}


def program(seed: int) -> Callable[..., Any]:
    """A function of a library, a vector and a matrix."""
    random = np.random.default_rng(seed)
    names = sorted(OPERATIONS)
    steps = [(names[random.integers(len(names))], *map(int, random.integers(99, size=3))) for _ in range(6)]

    def run(lib: Any, x: Any, a: Any) -> Any:
        pool = [x, a]
        for name, i, j, own in steps:
            operands = pool[-1 - i % min(3, len(pool))], pool[j % len(pool)]
            pool.append(OPERATIONS[name](lib, np.random.default_rng(own), *operands))
        return pool[-1], pool[-2] + 0

    return run


def arguments(dtype: Any) -> list[Any]:
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind == "i":
        return [random.integers(-9, 9, (N,) * k).astype(dtype) for k in (1, 2)]
    return [random.uniform(-1, 1, (N,) * k).astype(dtype) for k in (1, 2)]


def fused(f: Callable[..., Any], *args: Any) -> list[Any]:
    """The results of the simplified program, step by step."""
    closed = tl.make_jaxpr(f)(*args)
    return by_steps(simplify_program(closed.jaxpr), [*closed.consts, *args])


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("dtype", ["float64", "int8"])
@pytest.mark.parametrize("seed", range(24))
def test_values(seed: int, dtype: str):
    f, args = program(seed), arguments(dtype)
    for found, expected in zip(fused(lambda *args: f(tnp, *args), *args), f(np, *args), strict=True):
        if dtype == "float64":
            np.testing.assert_allclose(found, expected, **CLOSE)
        else:
            np.testing.assert_array_equal(found, np.asarray(expected).astype(np.asarray(found).dtype))


@pytest.mark.parametrize("seed", range(24))
def test_gradients(seed: int):
    """In a direction: what the program of forward mode says, which is not simplified here."""
    f, args = program(seed), arguments("float64")
    directions = [np.cos(x) for x in args]

    def total(*args: Any) -> Any:
        return sum(tnp.sum(tnp.tanh(y / 100)) for y in f(tnp, *args))

    closed = tl.make_jaxpr(lambda *args: tl.jvp(total, args, tuple(directions)))(*args)
    pushed = by_steps(closed.jaxpr, [*closed.consts, *args])[1]
    value, *gradient = fused(lambda *args: tl.value_and_grad(total, (0, 1))(*args), *args)
    assert np.isfinite(value)
    found = sum(np.sum(np.asarray(g) * t) for g, t in zip(gradient, directions, strict=True))
    np.testing.assert_allclose(found, pushed, **CLOSE)


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize("seed", range(0, 16, 4))
def test_compiled(seed: int):
    f, args = program(seed), arguments("float64")
    for found, expected in zip(tl.jit(lambda *args: f(tnp, *args))(*args), f(np, *args), strict=True):
        np.testing.assert_allclose(found, expected, **CLOSE)
