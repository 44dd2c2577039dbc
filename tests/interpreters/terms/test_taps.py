"""Windows as sums of shifted parts: term by term against loops, and what is left as it is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.interpreters import limits
from tapeless.interpreters.terms.taps import in_taps
from tapeless.tracer.terms.term import variables_of
from tests.index_language.programs import operations
from tests.tracer.terms.random_terms import looped, operands, terms


@settings(max_examples=150)
@given(t=terms(), seed=st.integers(0, 2**16))
def test_terms_mean_the_same(t: Any, seed: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "TAP_ELEMENTS", 1)
        found = in_taps(t)
    given = operands(seed)
    np.testing.assert_array_equal(looped(found, given), looped((t,), given))
    if found != (t,):
        indices = [a for x in found for a in (*x.out, *[a for f in x.factors for a in f.access])]
        assert all(len(list(variables_of(a))) <= 1 for a in indices)


def filtered(x: Any, g: Any) -> Any:
    n, m = len(x) - len(g) + 1, len(g)
    return ix.build((n, n), lambda i, j: ix.sum((m, m), lambda p, q: g[p, q] * x[i + p, j + q]))


def loss(x: Any, g: Any) -> Any:
    return (filtered(x, g) ** 2).sum()


X, G = np.random.default_rng(0).normal(size=(2, 40, 40)).astype(np.float32)


@pytest.mark.parametrize("f", [filtered, tl.grad(loss, 0), tl.grad(loss, 1)])
def test_a_small_filter_is_shifted_parts(f: Any):
    """Nothing is copied as often as the window has taps."""
    args = tnp.asarray(X), tnp.asarray(G[:5, :5])
    ran = operations(f, *args)
    assert not {"conv_general_dilated", "gather", "scatter_add"} & set(ran)
    largest = max(v.aval.size for eqn in ix.lower_terms(ix.fuse(tl.make_jaxpr(f)(*args))).eqns for v in eqn.outvars)
    assert largest <= X.size


@pytest.mark.parametrize("size", [5, 9])
def test_values_and_gradients(size: int):
    """Of a window that is taken apart, and of one that has too many taps."""
    x, g = tnp.asarray(X), tnp.asarray(G[:size, :size])
    n = len(X) - size + 1
    expected = sum(float(G[p, q]) * X[p : p + n, q : q + n].astype(float) for p in range(size) for q in range(size))
    np.testing.assert_allclose(tl.jit(filtered)(x, g), expected, rtol=1e-4, atol=1e-4)
    in_x, in_g = tl.jit(tl.grad(loss, (0, 1)))(x, g)
    wanted = [[(2 * expected * X[p : p + n, q : q + n]).sum() for q in range(size)] for p in range(size)]
    np.testing.assert_allclose(in_g, wanted, rtol=1e-3, atol=1e-2)
    step = np.zeros_like(X)
    step[7, 11] = 1e-2
    slope = (float(loss(x + step, g)) - float(loss(x - step, g))) / 2e-2
    np.testing.assert_allclose(in_x[7, 11], slope, rtol=2e-2, atol=0.5)  # differences of sums of 1e5 in 32 bits


def test_contractions_of_windows_are_left():
    """With channels to sum over, one contraction is large."""
    x, g = tnp.ones((8, 34, 34)), tnp.ones((4, 8, 3, 3))

    def f(x: Any, g: Any) -> Any:
        return ix.build(
            (4, 32, 32), lambda o, i, j: ix.sum((8, 3, 3), lambda c, p, q: g[o, c, p, q] * x[c, i + p, j + q])
        )

    assert operations(f, x, g).count("dot_general") == 1
