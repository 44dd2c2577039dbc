"""Windows at places that are known."""

import numpy as np
import pytest

import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import A, X, after, names


@pytest.mark.parametrize("start", [0, 3, 12, 100, np.int32(5)])
def test_a_slice(start):
    """Beyond the end, the window is moved inside."""
    assert names(after(lambda x: lax.dynamic_slice(x, (start,), (4,)), X)) == ["slice"]
    assert names(after(lambda a: lax.dynamic_slice(a, (start, 0), (4, 16)), A)) == ["slice"]


def test_where_only_some_are_known():
    """What is read of a product is read of its factors."""
    jaxpr = after(lambda a, i: tnp.sum(lax.dynamic_slice(tnp.sin(a), (i, 2), (3, 4))), A, np.int32(7))
    (sin,) = [eqn for eqn in jaxpr.eqns if str(eqn.primitive) == "sin"]
    assert sin.outvars[0].aval.shape == (3, 4)


def test_all_of_an_array():
    assert names(after(lambda x, i: lax.dynamic_slice(x, (i,), (16,)) + 1, X, np.int32(3))) == ["add"]
    assert names(after(lambda x, i: lax.dynamic_update_slice(tnp.sin(x), 2 * x, (i,)), X, np.int32(3))) == ["mul"]
