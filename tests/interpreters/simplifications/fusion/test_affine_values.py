"""Which values are affine functions of their indices, and which comparisons are brackets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.simplifications.fusion.affine_values import affine_pieces, brackets_where
from tapeless.tracer.jaxpr import Jaxpr, Var

pytestmark = pytest.mark.usefixtures("eager_by_steps")

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
    "narrower": lambda: (rows("int64") - 4).astype("int8"),
    "clamped where bounds decide": lambda: lax.clamp(-3, rows() - 3, 0),
    "chosen where bounds decide": lambda: tnp.where(columns() < 0, columns() * columns(), columns()),
    "greater where bounds decide": lambda: lax.max(rows(), columns() + N),
    "rest where bounds decide": lambda: lax.rem(rows() + M, tnp.full_like(rows(), 10)) + M,
}
OTHERS: dict[str, Callable[[], Any]] = {
    "squares": lambda: rows() * rows(),
    "joined": lambda: rows().reshape(N * M),
    "that wraps around": lambda: lax.add(columns("int8"), np.int8(125)),
    "that wraps around on the way": lambda: lax.sub(lax.add(columns("int8"), np.int8(125)), np.int8(125)),
    "that is rounded": lambda: lax.iota("bfloat16", 300),
    "fractions": lambda: rows("float32") * 0.5,
    "empty": lambda: lax.iota("int32", 0),
    "narrowed to what does not hold it": lambda: (100 * columns()).astype("int8"),
    "less than nothing": lambda: lax.sub(columns("uint8"), np.uint8(1)),
    "truth of numbers": lambda: columns().astype(bool),
    "clamped": lambda: lax.clamp(0, rows(), 2),
}
PIECES: dict[str, tuple[Callable[[], Any], int]] = {
    "clamped": (lambda: lax.clamp(1, rows(), 2), 3),
    "bounds in the wrong order": (lambda: lax.clamp(2, rows(), 1), 2),
    "clamped to what moves": (lambda: lax.clamp(rows(), columns(), rows() + 1), 3),
    "greater": (lambda: lax.max(rows(), columns()), 2),
    "less": (lambda: lax.min(rows() - 1, 0 * rows()), 2),
    "modulo": (lambda: (columns() + 5) % 4, 2),
    "modulo of less than nothing": (lambda: (columns() - 3) % 4, 2),
    "modulo a negative number": (lambda: columns() % -4, 4),
    "rest": (lambda: lax.rem(columns() - 3, tnp.full_like(rows(), 2)), 3),
    "chosen": (lambda: tnp.where(rows() < 2, columns(), -rows()), 2),
    "of many": (lambda: lax.select_n(tnp.minimum(columns(), 2), rows(), columns(), 0 * rows()), 4),
    "all but one": (lambda: tnp.where(columns() != 2, 1, rows()), 3),
    "comparison": (lambda: rows() <= columns(), 2),
    "equality": (lambda: rows() == columns(), 3),
    "conjunction": (lambda: (rows() < 2) & (columns() > 3) & (columns() < 5), 4),
    "disjunction": (lambda: (rows() < 2) | ~(columns() > 3), 3),
    "truth values as numbers": (lambda: (rows() < 2).astype("int8") * np.int8(5), 2),
    "truth values that differ": (lambda: (rows() < 2) != (columns() < 3), 4),
    "joined": (lambda: tnp.concatenate([rows(), columns() + 9], 1), 2),
    "padded": (lambda: lax.pad(rows(), np.int32(7), [(1, 2, 0), (0, 1, 0)]), 4),
    "wrapping where it is not chosen": (
        lambda: tnp.where(columns("int8") < 0, columns("int8") + np.int8(125), columns("int8")),
        1,
    ),
}


def traced(f: Callable[[], Any]) -> tuple[Jaxpr, Any, Any]:
    """The program, its result, and what gives the equations that compute variables."""
    jaxpr = tl.make_jaxpr(f)().jaxpr
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    return jaxpr, jaxpr.outvars[0], lambda x: made.get(x) if type(x) is Var else None


def affine_value(x: Any, definition: Any) -> Any:
    """The value as one affine function of its indices; None if it is not."""
    found = affine_pieces(x, definition)
    return found[0].value if len(found) == 1 and not found[0].brackets else None


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


@pytest.mark.parametrize("name", PIECES)
def test_pieces(name: str):
    """Each element is in one piece."""
    f, count = PIECES[name]
    _, x, definition = traced(f)
    found, places = affine_pieces(x, definition), np.indices(x.aval.shape)

    def at(a: Any) -> Any:
        return a.constant + sum(k * places[d] for d, k in a.variables)

    total, number = np.zeros(x.aval.shape, int), np.zeros(x.aval.shape, int)
    for p in found:
        assert p.value is not None
        holds = np.ones(x.aval.shape, bool)
        for b in p.brackets:
            holds &= at(b.index) == 0 if type(b).__name__ == "IsZero" else at(b.index) >= 0
        total, number = total + holds * at(p.value), number + holds
    np.testing.assert_array_equal(total, np.asarray(f()).astype(int))
    assert (number == 1).all() and len(found) == count


def test_long_chains_are_not_followed():
    def f() -> Any:
        x = rows()
        for _ in range(2000):
            x = x + x - x
        return x

    _, x, definition = traced(f)
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
