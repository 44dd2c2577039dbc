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
from tapeless.interpreters.analysis import cost
from tapeless.interpreters.simplify import simplify_program

pytestmark = pytest.mark.usefixtures("eager_by_steps")

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


# ---- parts of what bodies take and give -----------------------------------------------------------------------


def outer(x: Any) -> Any:
    return tnp.outer(x, tnp.sin(x))


def looped(body: Any, x: Any) -> Any:
    return lax.scan(lambda c, _: (body(c), None), x, None, length=3)[0]


# A program with a body, and the same without.
PARTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "result of a call": (lambda x: tl.jit(outer)(x)[:, 0], lambda x: outer(x)[:, 0]),
    "diagonal of a call": (lambda x: tnp.diag(tl.jit(outer)(x)), lambda x: tnp.diag(outer(x))),
    "masked in a call": (tl.jit(lambda x: masked(x).sum(0)), lambda x: masked(x).sum(0)),
    "result of a checkpoint": (lambda x: tl.checkpoint(outer)(x)[:, 0], lambda x: outer(x)[:, 0]),
    "result of branches": (
        lambda x: lax.cond(x[1] < 0, outer, lambda x: 2 * outer(x), x)[1],
        lambda x: 2 * outer(x)[1],
    ),
    "operand of a call": (lambda x: tl.jit(lambda a: tnp.sin(a[:, 0]))(outer(x)), lambda x: tnp.sin(outer(x)[:, 0])),
    "constant of a loop": (
        lambda x: (lambda a: looped(lambda c: c * tnp.sin(a[:, 0]), x))(outer(x)),
        lambda x: x * tnp.sin(outer(x)[:, 0]) ** 3,
    ),
    "two parts of two calls": (
        lambda x: tl.jit(outer)(x)[0] + tl.jit(lambda x: (outer(x), x))(x)[0][:, 1],
        lambda x: outer(x)[0] + outer(x)[:, 1],
    ),
}


def masked(x: Any) -> Any:
    return tnp.where(tnp.eye(len(x), dtype=bool), outer(x), 0)


@pytest.mark.parametrize("name", PARTS)
def test_parts_go_through_bodies(name: str):
    """Values and derivatives are those without bodies; work and memory are linear."""
    f, plain = PARTS[name]
    x = np.linspace(0.5, 1.5, 6)
    second = lambda f: tl.hessian(lambda x: f(x).sum())  # noqa: E731
    for transform in (lambda f: f, tl.jit, tl.jacrev, lambda f: tl.jit(tl.jacfwd(f)), second):
        # Numbers of the order of 1, whose sums may be in another order: some roundings of float64.
        np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-12, atol=1e-14)
    gradient = tl.grad(lambda x: f(x).sum())
    for n in (32, 128):
        given = tl.ShapeDtypeStruct((n,), "float64")
        assert cost.work(simplify_program(tl.make_jaxpr(f)(given).jaxpr)) <= 12 * n
        assert cost.work(simplify_program(tl.make_jaxpr(gradient)(given).jaxpr)) <= 32 * n
    compiled = tl.jit(gradient).lower(tl.ShapeDtypeStruct((4000,), "float32")).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 64 * 4 * 4000


def test_results_that_nobody_reads_are_not_computed():
    """Nor are carries that only they, and carries of the same kind, depend on."""
    x = np.linspace(0.5, 1.5, 6)

    def f(x: Any) -> Any:
        step = lambda c, a: ((c[0] * a, tnp.log(c[1]) + c[0], tnp.exp(c[2])), tnp.cos(a))  # noqa: E731
        return lax.scan(step, (x[0], x[1], x[2]), x)[0][0]

    text = str(simplify_program(tl.make_jaxpr(f)(x).jaxpr))
    assert "n_carry=1" in text and not any(word in text for word in ("log", "exp", "cos"))
    np.testing.assert_allclose(tl.grad(f)(x), tl.grad(lambda x: x[0] * tnp.prod(x))(x), rtol=1e-14)
