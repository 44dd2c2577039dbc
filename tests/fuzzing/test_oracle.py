"""The oracle against what is computed: all rows of all primitives, in the dtypes that they name."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import dispatch
from tapeless.tracer import core, dtypes
from tapeless.tracer.check import check
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.fuzzing import oracle
from tests.fuzzing.oracle.linalg import NOT_UNIQUE
from tests.samples.sample import Sample, numpys, ours
from tests.test_primitives import bind, converted, rows_by_primitive

# Roundings of a few operations, of a series, of an iteration: in units of the dtype's.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "complex64": 1e-5, "float64": 1e-9, "complex128": 1e-9}


def test_every_primitive_has_a_meaning():
    assert sorted(p.name for p in core.all_primitives() if p.name not in oracle.meanings) == []


def test_every_meaning_is_of_a_primitive():
    assert sorted(set(oracle.meanings) - {p.name for p in core.all_primitives()}) == []


# ---- values ----------------------------------------------------------------------------------------------------


def cases(rows: Sequence[Sample]) -> Iterator[tuple[Sample, list[Any]]]:
    """The rows with their operands as they are, and in all of their dtypes that these do not have."""
    for row in rows:
        args = [ours(x) for x in row.args]
        yield row, args
        others = [dtypes.canonical(name) for name in row.dtypes if not any(x.dtype.name == name for x in args)]
        yield from ((row, converted(row.args, dtype)) for dtype in others)


@pytest.mark.parametrize("rows", rows_by_primitive().values(), ids=rows_by_primitive())
def test_values(rows: Sequence[Sample]):
    """One program of all rows and dtypes of a primitive; in exact runs, too."""
    found = [(row, args) for row, args in cases(rows) if row.axis is None]
    args = [x for _, given in found for x in given]

    def f(*xs: Any) -> list[Any]:
        given = iter(xs)
        return [y for row, of_row in found for y in bind(row, [next(given) for _ in of_row])]

    jaxpr, consts = trace_to_jaxpr(f, [aval_of(x) for x in args])
    outs = [numpys(y) for y in dispatch.run(check(jaxpr), [*consts, *args])]
    for exact in (False, True):
        wanted = oracle.evaluate(jaxpr, [*consts, *args], exact=exact)
        assert_agree(jaxpr, outs, wanted)


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


def assert_agree(jaxpr: Any, outs: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Results agree within the tolerance of their dtype; integers exactly. Phases of vectors are left free."""
    free = {id(v) for eqn in jaxpr.eqns for k, v in enumerate(eqn.outvars) if k in free_results(eqn)}
    for v, got, want in zip(jaxpr.outvars, outs, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype if v.aval.dtype is KEY else v.aval.dtype)
        rtol = TOLERANCE.get(got.dtype.name, 0.0)
        if id(v) in free:
            got, want = np.abs(got), np.abs(want)
        if not rtol:
            np.testing.assert_array_equal(got, want)
        else:
            wide = np.result_type(want.dtype, np.float64)
            scale = np.max(np.abs(want[np.isfinite(want)]), initial=0).astype(float)
            np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol * scale)


def free_results(eqn: Any) -> tuple[int, ...]:
    """Results that are determined up to phases: none where there are no vectors."""
    return NOT_UNIQUE.get(eqn.primitive.name, ()) if len(eqn.outvars) > 1 else ()
