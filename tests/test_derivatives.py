"""Derivatives of every primitive, by its rows in tests/samples, in float64.

One program gives both modes: forward mode by the rules as they are written, and the linear jaxpr, pushed and pulled.
At a row's operands the first is compared with central differences of the primitive itself, and the others with it:
transposition is exact, so the dot products <J u, v> and <u, J^T v> agree to rounding. At zeros, ties and infinities
they do too, wherever J u is finite. Complex numbers pair as Re(x y), without conjugation.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapeless.interpreters import jvp
from tapeless.interpreters.linearize import linearize
from tapeless.interpreters.zero import instantiate
from tapeless.lowering import dispatch
from tapeless.tracer import dtypes
from tapeless.tracer.check import check
from tapeless.tracer.primitives.factorization import qr_p
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.samples import SAMPLES
from tests.samples.sample import Sample
from tests.test_primitives import applied, differentiable_at, is_inexact, over, widened

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinities

H = 1e-5  # central differences are then accurate to 1e-10 times the third derivative, and to 1e-11 by rounding


class Values(NamedTuple):
    """What both modes give at one point: inexact results alone, in float64 or complex128."""

    outs: list[Any]
    forwards: list[Any]  # the derivative along us, by the rules
    pushed: list[Any]  # the same by the linear jaxpr
    pulled: list[Any]  # its transpose of vs


class Derivative:
    """The derivative of a row's primitive by the operands at `positions`, along us and of vs, which are random."""

    def __init__(self, row: Sample, positions: Sequence[int]) -> None:
        args = [widened(x) for x in row.args]
        f = applied(row, args, positions)
        self.primals = [args[k] for k in positions]
        self.us = directions(self.primals, seed=1)
        avals = trace_to_jaxpr(f, [aval_of(x) for x in self.primals])[0].out_avals
        self._inexact = [dtypes.is_inexact(a.dtype) for a in avals]
        self.vs = directions([np.zeros(a.shape, a.dtype) for a in self._only(avals)], seed=2)
        given = [aval_of(x) for x in (*self.primals, *self.us, *self.vs)]
        self._program, self._consts = trace_to_jaxpr(self._both_modes(f), given)
        check(self._program)

    def at(self, primals: Sequence[Any]) -> Values:
        """Both modes at a point."""
        results = dispatch.run(self._program, [*self._consts, *primals, *self.us, *self.vs])
        found, n = [np.asarray(x) for x in results], len(self.vs)
        return Values(found[:n], found[n : 2 * n], found[2 * n : 3 * n], found[3 * n :])

    def _both_modes(self, f: Callable[..., Any]) -> Callable[..., Any]:
        def both(*xs: Any) -> Any:
            n = len(self.primals)
            primals, us, vs = xs[:n], xs[n : 2 * n], iter(xs[2 * n :])
            outs, forwards = jvp.jvp(f, primals, us)
            assert [aval_of(t) for t in forwards] == [aval_of(y).tangent() for y in outs]
            _, program = linearize(f, primals)
            check(program.jaxpr)
            pulled = program.pull_back([next(vs) if some else None for some in self._inexact])
            pushed = program.apply(us)
            return [*self._only(outs), *map(instantiate, [*self._only(forwards), *self._only(pushed), *pulled])]

        return both

    def _only(self, xs: Sequence[Any]) -> list[Any]:
        return [x for x, some in zip(xs, self._inexact, strict=True) if some]


@over([row for row in SAMPLES if differentiable_at(row)])
def test_modes(row: Sample):
    d = Derivative(row, differentiable_at(row))
    here = d.at(d.primals)
    assert_differences(here.forwards, *[d.at([x + s * H * u for x, u in zip(d.primals, d.us)]).outs for s in (1, -1)])
    for pushed, forwards in zip(here.pushed, here.forwards, strict=True):
        np.testing.assert_allclose(pushed, forwards, rtol=1e-10, atol=1e-10)  # the same products in another order
    np.testing.assert_allclose(inner(here.pushed, d.vs), inner(here.pulled, d.us), rtol=1e-10, atol=1e-10)
    if tuple(differentiable_at(row)) == row.linear_in:
        assert_linear(d)
    for special in (zeros, equal, mixed):
        if (str(row), special) not in SINGULAR:
            assert_products(d, special)


def is_linear_otherwise(row: Sample) -> bool:
    """Whether a primitive is linear in operands that are not all that it has a derivative by."""
    return row.linear_in != tuple(differentiable_at(row)) and any(is_inexact(row.args[k]) for k in row.linear_in)


@over([row for row in SAMPLES if is_linear_otherwise(row)])
def test_linear_structure(row: Sample):
    assert_linear(Derivative(row, row.linear_in))


def assert_differences(tangents: Sequence[Any], ahead: Sequence[Any], behind: Sequence[Any]) -> None:
    """Tangents are central differences, of results at both sides of a point."""
    for t, a, b in zip(tangents, ahead, behind, strict=True):
        scale = 1 + np.max(np.abs(a[np.isfinite(a)]), initial=0)
        difference = np.where(np.isnan(a) & np.isnan(b), 0, a - b)  # a gather fills in nan, which is constant
        np.testing.assert_allclose(t, difference / (2 * H), rtol=1e-6, atol=1e-7 * scale)


def assert_linear(d: Derivative) -> None:
    """Pushing u through a linear primitive is applying it to u; pulling back is its adjoint to the last bits."""
    there, zero = d.at(d.us), d.at([np.zeros_like(u) for u in d.us])
    # Where a gather fills in a constant, possibly nan, nothing is pushed.
    images = [np.nan_to_num(y - y0) for y, y0 in zip(there.outs, zero.outs)]
    for pushed, image in zip(there.pushed, images, strict=True):
        np.testing.assert_allclose(pushed, image, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(inner(images, d.vs), inner(there.pulled, d.us), rtol=1e-12, atol=1e-12)


# ---- zeros, ties and infinities ------------------------------------------------------------------------------


def zeros(x: Any) -> Any:
    return np.zeros_like(x)


def equal(x: Any) -> Any:
    return np.ones_like(x)


def mixed(x: Any) -> Any:
    """Zeros of both signs, ties and infinities, one after another."""
    return np.resize(np.array([0.0, -0.0, 1, 1, -1, np.inf, -np.inf]), np.shape(x)).astype(x.dtype)


# Points where a row's matrix is singular, so that it has no derivative: nan if a factor is singular exactly, else as
# large as rounding is small, and rounding is another on every processor.
SINGULAR = {
    **{
        (str(row), equal): lambda d: d.primals[0]
        for row in SAMPLES
        if row.primitive is qr_p and row.args[0].shape[-1] > 1
    },
    ("tridiagonal_solve-perturbed", zeros): lambda d: d.primals[1],  # the diagonal
}


def assert_products(d: Derivative, special: Callable[[Any], Any]) -> None:
    """<J u, v> = <u, J^T v> wherever J u is finite, by the rules of forward mode as they are written."""
    found = d.at([special(x) for x in d.primals])
    if all(np.isfinite(t).all() for t in found.forwards):
        assert all(np.isfinite(ct).all() for ct in found.pulled)
        # The same products in another order; here they may be large, and cancel.
        np.testing.assert_allclose(inner(found.forwards, d.vs), inner(found.pulled, d.us), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "special"), SINGULAR)
def test_singular_points_are_singular(name: str, special: Callable[[Any], Any]):
    (row,) = [row for row in SAMPLES if str(row) == name]
    matrix = special(SINGULAR[name, special](Derivative(row, differentiable_at(row))))
    assert np.all(np.linalg.matrix_rank(matrix) < min(np.shape(matrix)[-2:]))


# ---- helpers -------------------------------------------------------------------------------------------------


def directions(xs: Sequence[Any], seed: int) -> list[Any]:
    """A random direction for each value."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(rng.normal(size=x.shape) + (1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else 0), x.dtype)
        for x in xs
    ]


def inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """The pairing of tangents with cotangents."""
    return float(sum(np.sum(np.real(x * y)) for x, y in zip(xs, ys, strict=True)))
