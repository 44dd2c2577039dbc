"""The oracle against what is computed across examples; of other rows of primitives, in tests/test_primitives.py."""

import numpy as np
import pytest

import tapeless as tl
from tapeless.tracer import core
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tests.fuzzing import oracle
from tests.fuzzing.oracle_agreement import assert_agree
from tests.samples.sample import Sample
from tests.test_primitives import bind, rows_by_primitive


def test_every_primitive_has_a_meaning():
    assert sorted(p.name for p in core.all_primitives() if p.name not in oracle.meanings) == []


def test_every_meaning_is_of_a_primitive():
    assert sorted(set(oracle.meanings) - {p.name for p in core.all_primitives()}) == []


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
