"""Which values are affine functions of their indices, and which comparisons are brackets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplifications.fusion.affine_values import affine_value, brackets_where
from tapeless.tracer.jaxpr import Jaxpr, Var

N, M = 4, 6


def rows(dtype: str = "int32") -> Any:
    return lax.broadcasted_iota(dtype, (N, M), 0)


def columns(dtype: str = "int32") -> Any:
    return lax.broadcasted_iota(dtype, (N, M), 1)


AFFINE: dict[str, Callable[[], Any]] = {
    "iota": rows,
    "sum": lambda: rows() + columns() - 3,
    "multiple": lambda: 2 * columns() - rows(),
    "negative": lambda: -rows(),
    "repeated": lambda: tnp.broadcast_to(tnp.arange(N)[:, None] + 1, (N, M)),
    "moved": lambda: lax.rev((2 * columns()).T, (1,))[1:, ::2],
    "split": lambda: tnp.arange(12).reshape(3, 4),
    "of floats": lambda: rows("float32") * 2.0 - columns("float32"),
    "wider": lambda: rows("int8").astype("float64"),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "squares": lambda: rows() * rows(),
    "joined": lambda: rows().reshape(N * M),
    "that wraps around": lambda: lax.add(columns("int8"), np.int8(125)),
    "that wraps around on the way": lambda: lax.sub(lax.add(columns("int8"), np.int8(125)), np.int8(125)),
    "that is rounded": lambda: lax.iota("bfloat16", 300),
    "fractions": lambda: rows("float32") * 0.5,
    "empty": lambda: lax.iota("int32", 0),
}


def traced(f: Callable[[], Any]) -> tuple[Jaxpr, Any, Any]:
    """The program, its result, and what gives the equations that compute variables."""
    jaxpr = tl.make_jaxpr(f)().jaxpr
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    return jaxpr, jaxpr.outvars[0], lambda x: made.get(x) if type(x) is Var else None


@pytest.mark.parametrize("name", AFFINE)
def test_affine_values(name: str):
    _, x, definition = traced(AFFINE[name])
    found, places = affine_value(x, definition), np.indices(x.aval.shape)
    assert found is not None
    value = found.constant + sum(k * places[d] for d, k in found.variables)
    np.testing.assert_array_equal(np.broadcast_to(value, x.aval.shape), AFFINE[name]())


@pytest.mark.parametrize("name", OTHERS)
def test_other_values(name: str):
    _, x, definition = traced(OTHERS[name])
    assert affine_value(x, definition) is None


@pytest.mark.parametrize("compare", [lax.eq, lax.lt, lax.le, lax.gt, lax.ge])
def test_comparisons(compare: Callable[[Any, Any], Any]):
    def f() -> Any:
        return tnp.transpose(compare(rows(), columns() - 1) & lax.le(rows(), lax.full_like(rows(), 2)))

    _, x, definition = traced(f)
    found, places = brackets_where(x, definition), np.indices((M, N))
    assert found is not None and len(found) == 2
    holds = np.ones((M, N), bool)
    for bracket in found:
        value = bracket.index.constant + sum(k * places[d] for d, k in bracket.index.variables)
        holds &= value == 0 if type(bracket).__name__ == "IsZero" else value >= 0
    np.testing.assert_array_equal(holds, f())


def test_other_comparisons():
    _, x, definition = traced(lambda: rows() * rows() == columns())
    assert brackets_where(x, definition) is None
