"""The oracle against what is computed across examples; of other rows of primitives, in tests/test_primitives.py."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer import core
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.fuzzing import oracle
from tests.fuzzing.oracle import fourier, reductions
from tests.fuzzing.oracle_agreement import assert_agree
from tests.samples.sample import Sample
from tests.test_primitives import bind, rows_by_primitive


def test_every_primitive_has_a_meaning():
    assert sorted(p.name for p in core.all_primitives() if p.name not in oracle.meanings) == []


def test_every_meaning_is_of_a_primitive():
    assert sorted(set(oracle.meanings) - {p.name for p in core.all_primitives()}) == []


# ---- many elements -----------------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((300, 2))
LONG = {
    "cummax": lambda x: lax.cummax(x),
    "cummin": lambda x: lax.cummin(x, reverse=True),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x),
    "max": lambda x: tnp.max(x, 0),
    "min": lambda x: tnp.min(x),
    "fft": lambda x: tnp.abs(tnp.fft.fft(tnp.fft.irfft(tnp.fft.rfft(x, axis=0), axis=0), axis=0)),
}


@pytest.mark.parametrize("name", LONG)
def test_many_elements_at_once_are_as_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch):
    """By halves, doubling and NumPy's transform as row by row and by matrices, with derivatives."""
    jaxpr = tl.make_jaxpr(LONG[name])(X)
    found: list[Any] = []
    for rows in (16, 1_000):
        monkeypatch.setattr(reductions, "ROWS", rows)
        monkeypatch.setattr(fourier, "LONGEST", rows)
        derivative, _ = oracle.directional(jaxpr, [X], [np.cos(X)])
        found.append([*oracle.evaluate(jaxpr, [X], exact=True), *derivative])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)  # a few hundred roundings of float64


# ---- values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [r for rows in rows_by_primitive().values() for r in rows if r.axis], ids=str)
def test_values_across_examples(row: Sample):
    name_and_size = row.axis
    assert name_and_size is not None
    avals = [aval_of(x) for x in row.args]
    jaxpr, _ = trace_to_jaxpr(
        lambda *xs: row.primitive.bind(*xs, **row.params), [a.update(shape=a.shape[1:]) for a in avals]
    )
    wanted = oracle.evaluate_mapped(jaxpr, row.args, name_and_size[1])
    assert_agree(jaxpr, [np.asarray(y) for y in bind(row, row.args)], wanted)


def test_derivatives_of_transposed_linear_maps():
    """A complex step passes the residuals of a linear map that is the transpose of a rule's."""
    cube = tl.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, t: (3 * x**2 * t,))
    x, t = np.array([2.0, -1.0]), np.array([1.0, 3.0])
    jaxpr = tl.make_jaxpr(lambda x: tl.jvp(cube, (x,), (t,))[1])(x)
    (found,), _ = oracle.directional(jaxpr, [x], [t])
    np.testing.assert_allclose(found, 6 * x * t**2, rtol=1e-14)
