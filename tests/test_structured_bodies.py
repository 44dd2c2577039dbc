"""Structured programs as bodies of loops, branches and calls: halves and residuals are of the function's order.

Counted at n and 4 n: what a body computes, what its gradient does, and the bytes that are saved between them. A program
of vectors grows 4 times, one of matrices 16 times; a power of n more would be 4 times that.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

Function = Callable[..., Any]


def eye(x: Any) -> Any:
    return tnp.eye(len(x), dtype=bool)


VECTORS: dict[str, Function] = {
    "outer * eye": lambda x: tnp.sum(tnp.outer(x, x) * tnp.eye(len(x), dtype=x.dtype)),
    "where(eye, outer, 0)": lambda x: tnp.sum(tnp.where(eye(x), tnp.outer(x, x), 0)),
    "column and row": lambda x: tnp.dot(tnp.outer(x, x)[:, 0], tnp.outer(x, x)[0]),
    "diag": lambda x: tnp.dot(tnp.diag(x) @ x, x),
    "bands": lambda x: tnp.dot((tnp.diag(x[1:], 1) - tnp.diag(x[1:], -1)) @ x, x * x),
    "cumsum": lambda x: tnp.sum(tnp.cumsum(tnp.outer(x, x), 0)[0] ** 2),
    "take": lambda x: tnp.sum(tnp.sin(tnp.take(tnp.outer(x, x), np.array([0, 2, 5]), axis=1))),
}
MATRICES: dict[str, Function] = {
    "(A @ B) @ v": lambda a, b: tnp.sum(tnp.sin((a @ b) @ a[0])),
    "(A @ B @ A)[:, 0]": lambda a, b: tnp.sum(tnp.sin((a @ b @ a)[:, 0])),
    "trace": lambda a, b: tnp.trace(a @ b),
    "(A @ B) * eye": lambda a, b: tnp.sum((a @ b) * tnp.eye(len(a), dtype=a.dtype)),
    "where(eye, A @ B, 0)": lambda a, b: tnp.sum(tnp.where(eye(a), a @ b, 0) ** 2),
}


def in_a_scan(f: Function) -> Function:
    """Of arrays that each step changes."""
    return lambda *xs: lax.scan(lambda c, _: (c + f(*[x * c for x in xs]), None), 1.0, None, length=3)[0]


def in_a_scan_of_constants(f: Function) -> Function:
    return lambda *xs: lax.scan(lambda c, _: (0.5 * c + f(*xs) * c, None), 1.0, None, length=3)[0]


def in_a_branch(f: Function) -> Function:
    return lambda *xs: lax.cond(xs[0].ravel()[0] > 0, f, lambda *xs: tnp.sum(xs[0]), *xs)


def in_a_call(f: Function) -> Function:
    """Called twice, or it would be written in the place of its call."""
    g = tl.jit(f)
    return lambda *xs: g(*xs) + g(*[2 * x for x in xs])


BODIES = (in_a_scan, in_a_scan_of_constants, in_a_branch, in_a_call)
CASES = [(name, f, 1) for name, f in VECTORS.items()] + [(name, f, 2) for name, f in MATRICES.items()]


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name, f, power", CASES, ids=[name for name, *_ in CASES])
def test_halves_and_residuals_grow_as_the_function_does(name: str, f: Function, power: int, body: Function):
    def measured(n: int) -> np.ndarray:
        args = [tl.ShapeDtypeStruct((n,) * power, "float64")] * power
        halves = tl.unzip(body(f), *args)
        return np.array([tl.work(halves.primal), tl.work(halves.transposed), tl.residual_bytes(halves)])

    assert np.all(measured(64) <= 1.1 * 4**power * measured(16))


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_gradients_agree(body: Function):
    """With those of forward mode, which unzips nothing."""
    random = np.random.default_rng(0)
    for functions, shape in ((VECTORS, (7,)), (MATRICES, (4, 4))):
        args, tangents = random.normal(size=(2, len(shape), *shape))
        cotangent = random.normal(size=len(functions))

        def every(*xs: Any, functions: dict[str, Function] = functions) -> Any:
            return tnp.stack([body(f)(*xs) for f in functions.values()])

        def both(*xs: Any, every: Function = every, t: Any = tuple(tangents), ct: Any = cotangent) -> Any:
            return tl.jvp(every, xs, t)[1], tl.vjp(every, *xs)[1](ct)

        pushed, pulled = tl.jit(both)(*args)
        np.testing.assert_allclose(np.sum(np.asarray(pulled) * tangents), np.sum(pushed * cotangent), rtol=1e-10)
