"""Check a row: step by step and compiled, both modes, two points at once, second derivatives; in two programs."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tests.numpy_agreement.evaluators import interpreted
from tests.public_reports.report import Refusal, Report, is_inexact

STEP = 3e-4  # of differences of fourth order: their error is its fourth power times a fifth derivative
LOOSE = 1e-6  # relative; of differences, as the fifth derivatives of the rows reach some millions


def check(row: Report) -> None:
    """Raise AssertionError with what differs.

    One program is compiled: of the value, the gradient and, if the row says so, the Hessian times a vector. The value
    alone is another one where it is not differentiated, or where what is done in place may depend on it. The program of
    values and tangents at two points under vmap is evaluated by the oracle of tests/fuzzing, and so are single steps.
    """
    with tl.enable_x64(row.bits == 64):
        _check(row, tuple(map(np.asarray, row.args)))


def _check(row: Report, args: tuple[Any, ...]) -> None:
    right = leaves(row.right(*args) if callable(row.right) else row.right)
    if row.steps:
        same(leaves(row.f(*map(tl.numpy.asarray, args))), right, row.rtol, "step by step")
    if row.alone or not row.differentiated:
        same(leaves(tl.jit(row.f)(*args)), right, row.rtol, "compiled")
    if row.differentiated:
        check_slopes(row, args, right)
    elif row.mapped:
        check_two_points(row, args, right, [np.zeros_like(args[i]) for i in row.inexact])


def check_slopes(row: Report, args: tuple[Any, ...], right: list[Any]) -> None:
    """Check the gradient of a weighted sum of the results, and tangents and second derivatives by it."""
    rng = np.random.default_rng(0)
    stated = not isinstance(row.slopes, str)
    plain = stated or row.hessian is not None
    weights = [np.ones(y.shape) if plain else rng.uniform(0.5, 1.5, y.shape) for y in right]
    slopes = list(row.slopes) if stated else by_differences(row, args, weights)
    tangents = [directions(args[i], rng) for i in row.inexact]
    program = differentiated(row.f, row.inexact, row.hessian is not None)
    values, pulled, curved = program(args, weights, tangents)
    same(values, right, row.rtol, "compiled with its gradient")
    tolerance = row.rtol if stated else max(LOOSE, row.rtol)
    same(pulled, slopes, tolerance, "gradient")
    pushed = check_two_points(row, args, right, tangents)
    along = [float(np.sum(np.real(g * t))) for g, t in zip(slopes, tangents)]
    inexact = [w for w, y in zip(weights, right) if is_inexact(y.dtype)]
    if np.all(np.isfinite(along)):
        found = sum(float(np.sum(np.real(w * p))) for w, p in zip(inexact, pushed, strict=True))
        same([found], [sum(along)], tolerance, "tangent")
    if row.hessian is not None:
        check_curvature(row, program, (args, weights, tangents), curved)


def check_two_points(row: Report, args: tuple[Any, ...], right: list[Any], tangents: list[Any]) -> list[Any]:
    """Check the values under vmap at the point and a second one; the tangents at the first."""
    points = [args, tuple(map(np.asarray, row.second_point()))] if row.mapped else [args]

    def one(*point: Any) -> Any:
        part = of_inexact(row.f, row.inexact, point)
        xs = [point[i] for i in row.inexact]
        if not row.differentiated:
            return part(*xs), []
        values, pushed = tl.jvp(part, xs, tangents)
        return values, [p for p in pushed if p.dtype != tl.float0]

    stacked = [np.stack(xs) for xs in zip(*points)]
    found = by_oracle(lambda xs: tl.vmap(one)(*xs), stacked)
    values, pushed = found[: len(right)], found[len(right) :]
    for k, point in enumerate(points):
        if callable(row.right) or k == 0:
            expected = leaves(row.right(*point)) if callable(row.right) else right
            same([v[k] for v in values], expected, row.rtol, f"point {k} of two")
    return [p[0] for p in pushed]


def by_oracle(f: Callable[..., Any], operands: list[Any]) -> list[Any]:
    """Evaluate the program of `f` by NumPy; compiled if it has operations that the oracle does not know."""
    try:
        return interpreted(f)(operands)
    except KeyError:
        return leaves(tl.jit(f)(operands))


def check_curvature(row: Report, program: Any, given: Any, curved: Any) -> None:
    """Compare the product of the Hessian and the tangents with what is stated, or with differences of gradients."""
    args, weights, tangents = given
    if row.hessian is not True:
        same(curved[:1], [np.dot(row.hessian, tangents[0])], row.rtol, "Hessian times a vector")
        return

    def gradient(h: float) -> Any:
        at = list(args)
        for i, t in zip(row.inexact, tangents):
            at[i] = args[i] + h * t
        return [np.asarray(g) for g in program(tuple(at), weights, tangents)[1]]

    slopes = [difference(lambda h, k=k: gradient(h)[k]) for k in range(len(curved))]
    same(curved, slopes, max(LOOSE, row.rtol), "Hessian times a vector")


def of_inexact(f: Any, inexact: tuple[int, ...], args: Any) -> Callable[..., Any]:
    """A function as one of its inexact arguments, which gives a list."""

    def part(*xs: Any) -> Any:
        at = list(args)
        for i, x in zip(inexact, xs):
            at[i] = x
        return [tl.numpy.asarray(y) for y in tl.tree.leaves(f(*at))]

    return part


@cache
def differentiated(f: Any, inexact: tuple[int, ...], twice: bool) -> Any:
    """The compiled program of the value, the gradient of the weighted sum, and the Hessian times the tangents."""

    def program(args: Any, weights: Any, tangents: Any) -> Any:
        def pulled(*xs: Any) -> Any:
            outs, pull = tl.vjp(of_inexact(f, inexact, args), *xs)
            return outs, pull([cotangent(w, y) for w, y in zip(weights, outs)])

        xs = [args[i] for i in inexact]
        if not twice:
            return *pulled(*xs), ()
        (outs, slopes), (_, curved) = tl.jvp(pulled, xs, tangents)
        return outs, slopes, curved

    return tl.jit(program)


def cotangent(w: Any, y: Any) -> Any:
    return tl.numpy.asarray(w, y.dtype) if is_inexact(y.dtype) else np.zeros(y.shape, tl.float0)


def by_differences(row: Report, args: tuple[Any, ...], weights: list[Any]) -> list[Any]:
    """The gradient of the weighted sum of `right`, element by element; g with the derivative Re(g t) along t."""
    wide = [x.astype(np.result_type(x.dtype, np.float64)) if i in row.inexact else x for i, x in enumerate(args)]

    def total(i: int, k: int, h: Any) -> float:
        at = [x.copy() for x in wide]
        at[i].reshape(-1)[k] += h
        return float(
            sum(np.sum(np.real(w * y)) for w, y in zip(weights, leaves(row.right(*at))) if is_inexact(y.dtype))
        )

    def slope(i: int, k: int) -> Any:
        real = difference(lambda h: total(i, k, h))
        return real - 1j * difference(lambda h: total(i, k, h * 1j)) if wide[i].dtype.kind == "c" else real

    return [np.array([slope(i, k) for k in range(wide[i].size)]).reshape(wide[i].shape) for i in row.inexact]


def difference(f: Callable[[float], Any]) -> Any:
    """The derivative at 0 by central differences of fourth order."""
    return (8 * (f(STEP) - f(-STEP)) - (f(2 * STEP) - f(-2 * STEP))) / (12 * STEP)


def directions(x: Any, rng: np.random.Generator) -> Any:
    imaginary = 1j * rng.uniform(-1, 1, x.shape) if x.dtype.kind == "c" else 0
    return np.asarray(rng.uniform(-1, 1, x.shape) + imaginary, x.dtype)


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(y) for y in tl.tree.leaves(tree)]


def same(found: Any, right: Any, rtol: float, where: str) -> None:
    """Compare arrays: shapes, integers exactly, the dtype where `right` has one of fewer than 64 bits."""
    assert len(found) == len(right), f"{where}: {len(found)} results, {len(right)} wanted"
    for a, b in zip(map(np.asarray, found), map(np.asarray, right)):
        assert a.shape == b.shape, f"{where}: shape {a.shape}, {b.shape} wanted"
        if b.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b, where)
        else:
            scale = np.max(np.abs(b), initial=1, where=np.isfinite(b))
            wide = a.astype(np.result_type(b.dtype, np.float64))
            np.testing.assert_allclose(wide, b, rtol, rtol * scale, err_msg=where)


def check_refusal(row: Refusal) -> None:
    """Raise AssertionError where a program runs, or its error says something else, step by step and compiled."""
    for f in (row.f, tl.jit(row.f)):
        with pytest.raises(row.error) as caught:
            f(*row.args)
        assert [part for part in row.parts if part not in str(caught.value)] == []


def parametrized(*tables: Any) -> Any:
    """Mark a test to run for every row; those with a fault have to fail, so that whoever mends it is told."""
    rows = [row for table in tables for row in table.ROWS]
    marks = {str(row): [pytest.mark.xfail(strict=True, reason=row.fault)] for row in rows if getattr(row, "fault", "")}
    return pytest.mark.parametrize(
        "row", [pytest.param(row, id=str(row), marks=marks.get(str(row), [])) for row in rows]
    )
