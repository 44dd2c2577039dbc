"""Gathers, scatters and running sums in terms: what they replace, and what stays as it was."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.jaxpr import Jaxpr
from tests.stepping import by_steps, stepped

N = 8
X, Y = np.linspace(0.5, 1, N), np.linspace(1, 2, N)
PLACES, HALVES = np.array([0, 2, 5, 2]), np.arange(N)[::-1, None] // 2


def after(f: Callable[..., Any], *args: Any) -> tuple[Jaxpr, list[Any]]:
    closed = tl.make_jaxpr(f)(*args)
    return simplify_program(closed.jaxpr), [*closed.consts, *args]


def check(f: Callable[..., Any], *args: Any) -> list[str]:
    """Compare the simplified program with the one as written, and name what is square in it, or large."""
    jaxpr, given = after(f, *args)
    closed = tl.make_jaxpr(f)(*args)
    for found, expected in zip(by_steps(jaxpr, given), by_steps(closed.jaxpr, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    return [eqn.primitive.name for eqn in jaxpr.eqns if any(v.aval.size >= N * N for v in eqn.outvars)]


def added(x: Any, indices: Any, mode: str = "drop") -> Any:
    """Sums at positions."""
    return tnp.zeros((N, N), x.dtype).at[indices].add(x, mode=mode)


LINEAR: dict[str, Callable[..., Any]] = {
    "columns": lambda x, y: tnp.take(tnp.outer(x, y), PLACES, 1),
    "rows and columns": lambda x, y: tnp.outer(x, y)[PLACES[:, None], PLACES],
    "elements": lambda x, y: tnp.outer(x, y)[PLACES, PLACES[::-1]],
    "an element for each": lambda x, y: tnp.take_along_axis(
        tnp.outer(x, y), np.arange(N)[::-1, None] // 2, 1, mode="clip"
    ),
    "of a product": lambda x, y: tnp.take(tnp.outer(x, y) @ tnp.outer(y, x), PLACES, 0),
    "clipped": lambda x, y: tnp.take(tnp.outer(x, y), np.array([-3, 99]), 1, mode="clip"),
    "written, applied": lambda x, y: added(tnp.outer(x[:4], y), PLACES) @ y,
    "written at elements, applied": lambda x, y: added(x[:4], (PLACES, PLACES[::-1]), "promise_in_bounds") @ y,
    "written beyond, applied": lambda x, y: added(tnp.outer(x[:4], y), np.array([1, -100, 7, 100])) @ y,
    "running sums, applied": lambda x, y: tnp.cumsum(tnp.outer(x, y), 1) @ y,
    "row of running sums": lambda x, y: tnp.cumsum(tnp.outer(x, y), 1)[3],
    "running sums in the other direction": lambda x, y: lax.cumsum(tnp.outer(x, y), 0, reverse=True) @ x,
    "triangle": lambda x, y: tnp.tri(N, dtype=x.dtype) @ x,
    "triangle from the left": lambda x, y: x @ (tnp.tri(N, dtype=x.dtype) * y),
    "first of flat running sums": lambda x, y: tnp.cumsum(tnp.outer(x, y))[0],
}


@pytest.mark.parametrize("name", LINEAR)
def test_nothing_square_is_computed(name: str):
    assert not check(LINEAR[name], X, Y)


def test_running_sums_stay():
    """No triangle is written in the place of what is not cut."""
    assert check(lambda x: tnp.cumsum(x), X) == []
    jaxpr, _ = after(lambda x, y: tnp.cumsum(tnp.outer(x, y), 1) @ y, X, Y)
    assert [eqn.primitive.name for eqn in jaxpr.eqns].count("cumsum") == 1


INFINITE = np.array([np.inf, 1, 2, np.nan, 3, 4, 5, 6])
EDGES: dict[str, Callable[..., Any]] = {
    "filled with nan": lambda x, y: tnp.take(tnp.outer(x, x), np.array([0, 99]), 1, mode="fill"),
    "filled with zeros": lambda x, y: tnp.take(tnp.outer(x, y), np.array([0, 99]), 0, mode="fill", fill_value=0),
    "in the padding": lambda x, y: tnp.take(tnp.pad(tnp.outer(x, y), ((2, 3), (0, 0))), np.array([0, 3, 12]), 0),
    "dropped elements": lambda x, y: added(x[:4], (PLACES, np.array([1, -100, 7, 100]))) @ y,
    "moved inside": lambda x, y: added(tnp.outer(x[:4], y), np.array([1, 100, -100, 7]), "clip") @ x,
    "dropped": lambda x, y: added(tnp.outer(x[:4], y), np.array([1, 100, -100, 7])) @ x,
    "before the running sums": lambda x, y: tnp.cumsum(tnp.pad(tnp.outer(x, y), ((2, 0), (0, 0))), 0)[1],
    "no positions": lambda x, y: tnp.take(tnp.outer(x, y), np.zeros(0, int), 1),
    "one position": lambda x, y: tnp.take(tnp.outer(x, y), 3, 1),
    "an axis of one": lambda x, y: tnp.cumsum(tnp.outer(x[:1], y), 0) @ x,
    "positions of bytes": lambda x, y: tnp.outer(x, x)[:, np.array([255, 7], np.uint8).clip(0, 7)],
    "positions that are summed, too": lambda x, y: (lambda i: tnp.outer(x, x)[i] * i[:, None])(tnp.arange(3) * 2 + 1),
}


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str):
    """Where nothing is read there is 0, also where another factor is infinite."""
    check(EDGES[name], X, INFINITE)


def test_integers_wrap_around():
    x = np.arange(100, 100 + N).astype(np.int8)
    check(lambda x: tnp.cumsum(tnp.outer(x, x), 1, dtype=x.dtype)[:, -1], x)
    check(lambda x: tnp.take(tnp.outer(x, x), PLACES, 1).sum(1, dtype=x.dtype), x)


def test_sums_of_few_exponents_stay():
    x = np.full(N, 200, np.float16)
    assert "mul" in check(lambda x: tnp.cumsum(tnp.outer(x, x), 1)[:, 0], x)


@pytest.mark.usefixtures("optimized")
def test_compiled():
    def f(x: Any, y: Any) -> Any:
        return sum(tnp.sum(tnp.sin(g(x, y))) for g in LINEAR.values())

    both = tl.value_and_grad(f, (0, 1))
    value, gradients = tl.jit(both)(X, Y)
    expected_value, expected_gradients = stepped(both, X, Y)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for found, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
