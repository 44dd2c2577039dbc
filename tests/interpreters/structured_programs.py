"""Random programs of structured values: outer products, diagonals, broadcasts, and parts and sums of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeless.numpy as tnp
from tapeless import lax

N = 8
Operation = Callable[[np.random.Generator, Any, Any], Any]


def vector(x: Any) -> Any:
    return x if np.ndim(x) == 1 else x[:, 1]


def matrix(x: Any) -> Any:
    return x if np.ndim(x) == 2 else tnp.outer(x, x)


def alike(x: Any, y: Any) -> tuple[Any, Any]:
    return (x, y) if np.ndim(x) == np.ndim(y) else (vector(x), vector(y))


def position(y: Any) -> Any:
    """An index that is not known."""
    return tnp.argmax(vector(y))


OPERATIONS: dict[str, Operation] = {
    # structure is made
    "outer": lambda r, x, y: tnp.outer(vector(x), vector(y)),
    "diag": lambda r, x, y: tnp.diag(vector(x)),
    "broadcast": lambda r, x, y: tnp.broadcast_to(vector(x), (N, N)),
    "eye": lambda r, x, y: tnp.eye(N) * matrix(x),
    "eye off the diagonal": lambda r, x, y: (tnp.eye(N, k=1) * matrix(x)) @ vector(y),
    "diagonals": lambda r, x, y: tnp.diag(vector(x)[:-1], 1) - tnp.diag(vector(y)[2:], -2),
    "differences": lambda r, x, y: (tnp.eye(N, k=1) - 2 * tnp.eye(N) + tnp.eye(N, k=-1)) @ x,
    "kron": lambda r, x, y: tnp.kron(tnp.eye(2), matrix(x)[2:6, :4]) @ y,
    "kron of the second": lambda r, x, y: x @ tnp.kron(matrix(y)[:2, 3:5], tnp.eye(4)),
    "kron of vectors": lambda r, x, y: matrix(x) * tnp.kron(vector(y)[:2], vector(x)[4:]),
    "one place": lambda r, x, y: tnp.where(tnp.arange(N) == int(r.integers(N)), x, 0),
    "tril": lambda r, x, y: tnp.tril(matrix(x)),
    "one-hot": lambda r, x, y: matrix(x) @ tnp.eye(N)[r.integers(N)],
    # elementwise
    "mul": lambda r, x, y: tnp.multiply(*alike(x, y)),
    "mul rows": lambda r, x, y: matrix(x) * vector(y),
    "mul columns": lambda r, x, y: matrix(x) * vector(y)[:, None],
    "add": lambda r, x, y: tnp.add(*alike(x, y)),
    "sub rows": lambda r, x, y: matrix(x) - vector(y),
    "sin": lambda r, x, y: tnp.sin(x),
    "neg": lambda r, x, y: -x,
    "times 0": lambda r, x, y: x * 0.0,
    "times 1": lambda r, x, y: x * 1.0,
    "plus 0": lambda r, x, y: x + tnp.zeros(x.shape),
    "where": lambda r, x, y: tnp.where(vector(x) > 0, vector(y), 0),
    "guarded": lambda r, x, y: tnp.where(vector(x) > 0, tnp.sqrt(vector(x)) * vector(y), vector(y)),
    # parts are read
    "diagonal": lambda r, x, y: tnp.diag(matrix(x)),
    "column": lambda r, x, y: matrix(x)[:, r.integers(N)],
    "row": lambda r, x, y: matrix(x)[r.integers(N)],
    "dynamic row": lambda r, x, y: lax.dynamic_index_in_dim(matrix(x), position(y), 0, False),
    "dynamic window": lambda r, x, y: lax.dynamic_slice(matrix(x), (position(y), 2), (3, 4))[1] @ tnp.ones((4, N)),
    "columns": lambda r, x, y: tnp.concatenate([matrix(x)[::2, r.integers(N)], matrix(y)[1::2, 0]]),
    "flat": lambda r, x, y: matrix(x).reshape(-1)[r.integers(0, 8) * 2 :][:24:3],
    "of reversed": lambda r, x, y: matrix(x)[:, ::-1][:, 2],
    "of joined": lambda r, x, y: tnp.concatenate([vector(x), vector(y)])[4:12],
    "of joined columns": lambda r, x, y: tnp.concatenate([matrix(x), matrix(y)], 1)[:, 3:11],
    "of padded": lambda r, x, y: tnp.pad(vector(x), 3)[1:9],
    "of spread": lambda r, x, y: lax.pad(vector(x), 0.5, [(2, -1, 1)])[3:11],
    # written at known places
    "written": lambda r, x, y: matrix(x).at[2, 3].set(vector(y)[1]).at[:, 5].add(vector(y)),
    "read of written": lambda r, x, y: matrix(x).at[2:5, 3].set(vector(y)[:3])[int(r.integers(N))],
    "rotated": lambda r, x, y: (
        tnp.eye(N, dtype=np.float64).at[1, 1].set(tnp.cos(x[0].sum())).at[1, 2].set(tnp.sin(y[0].sum())) @ x
    ),
    # moved
    "transposed": lambda r, x, y: matrix(x).T,
    "rolled": lambda r, x, y: tnp.roll(x, 3),
    "swapped": lambda r, x, y: tnp.concatenate(tnp.split(vector(x), 2)[::-1]),
    # summed
    "rows": lambda r, x, y: tnp.sum(matrix(x), 0),
    "sums": lambda r, x, y: tnp.sum(matrix(x), 1),
    "all": lambda r, x, y: vector(y) * tnp.sum(x),
    "blocks": lambda r, x, y: tnp.sum(matrix(x).reshape(2, 4, N) * vector(y)[:4, None], 1).repeat(4, 0),
    "pairs": lambda r, x, y: (matrix(x).reshape(N, 4, 2) @ vector(y)[:2]).reshape(-1)[::4],
    "largest": lambda r, x, y: tnp.max(matrix(x), 0)[::2].repeat(2),
    "running": lambda r, x, y: tnp.cumsum(x, 0),
    "trace": lambda r, x, y: vector(y) * tnp.trace(matrix(x)),
    "trace of product": lambda r, x, y: vector(y) * tnp.trace(matrix(x) @ matrix(y)),
    "product": lambda r, x, y: matrix(x) @ matrix(y),
    "applied": lambda r, x, y: matrix(x) @ vector(y),
    "einsum": lambda r, x, y: tnp.einsum("ij,kj->i", matrix(x), matrix(y)),
}


def program(seed: int) -> Callable[[Any, Any], Any]:
    """A function of a vector and a matrix."""
    random = np.random.default_rng(seed)
    names = sorted(OPERATIONS)
    steps = [
        (names[random.integers(len(names))], *map(int, random.integers(99, size=3)))
        for _ in range(random.integers(2, 9))
    ]

    def run(x: Any, a: Any) -> Any:
        pool = [x, a]
        for name, i, j, own in steps:
            operands = pool[-1 - i % min(3, len(pool))], pool[j % len(pool)]
            pool.append(OPERATIONS[name](np.random.default_rng(own), *operands))
        return tnp.tanh(pool[-1])

    return run


def arguments(seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.normal(size=N), random.normal(size=(N, N))
