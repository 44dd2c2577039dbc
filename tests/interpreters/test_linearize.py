"""Structure is seen through so many operations, and no more; masked coefficients are equations where masks are read."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.limits import PROVENANCE


def test_a_value_made_of_very_many_others():
    """Each sum is made of what is repeated, and is not followed to the first one."""

    def f(x):
        total = tnp.outer(x, x)
        for _ in range(4 * PROVENANCE):
            total = total + tnp.outer(x, x)
        return tnp.sum(total @ x)

    np.testing.assert_allclose(tl.grad(f)(np.ones(2)), np.full(2, (4 * PROVENANCE + 1) * 3 * 2 * 2 / 2))  # (Σx)² Σx


def test_a_coefficient_is_chosen_where_its_mask_is_read():
    """The mask is a residual anyhow, and the jaxpr shows what it is good for."""
    x = np.array([0.0, 1.0, 2.0])
    jaxpr = tl.linearize(lambda x: tnp.where(x > 0, tnp.log(x), 0), x)[1].jaxpr
    assert [str(eqn.primitive) for eqn in jaxpr.eqns] == ["select_n", "div", "select_n"]
    assert [eqn.linear for eqn in jaxpr.eqns] == [False, True, True]
    assert [str(v.aval.dtype) for v in jaxpr.invars if not v.linear] == ["float64", "bool"]


def test_a_coefficient_is_a_residual_if_nothing_else_reads_its_mask():
    x = np.array([0.0, 1.0, 2.0])
    linear = tl.linearize(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0), x)[1]
    assert [str(eqn.primitive) for eqn in linear.jaxpr.eqns] == ["mul"]
    np.testing.assert_allclose(linear.residuals[0], [0, 0.5, 0.5 / np.sqrt(2)])
