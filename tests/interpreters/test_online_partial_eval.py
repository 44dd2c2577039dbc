"""Partial evaluation: what needs only known inputs has run, the rest is written down."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.core import ShapedArray
from tapeless.like_jax.partial_values import partial_eval
from tapeless.tracer.jaxpr import eval_jaxpr

VECTOR = ShapedArray((2,), np.dtype(np.float32))


def test_known_and_unknown():
    x = tnp.array([1.0, 2.0])
    jaxpr, (known, unknown, given), consts = partial_eval(
        lambda x, y: (2 * x, tnp.sin(x) * y, 3.0), [(None, x), (VECTOR, None)]
    )
    assert known[0] is None and known[1].tolist() == [2.0, 4.0] and given == (None, 3.0)
    assert unknown == (VECTOR, None) and [str(eqn.primitive) for eqn in jaxpr.eqns] == ["mul"]
    np.testing.assert_allclose(eval_jaxpr(jaxpr, [*consts, x])[0], np.sin(x) * np.asarray(x))


@pytest.mark.parametrize(
    "wrap", [tl.jit, tl.checkpoint, lambda f: tl.jit(tl.checkpoint(f))], ids=["jit", "remat", "both"]
)
def test_calls_are_entered(wrap):
    """Of two results of a call, one is known."""
    x = tnp.array([1.0, 2.0])
    jaxpr, (a, b), consts = partial_eval(wrap(lambda x, y: (tnp.cos(x), x * y)), [(None, x), (VECTOR, None)])
    assert a[0] is None and np.allclose(a[1], np.cos(x)) and b == (VECTOR, None)
    assert eval_jaxpr(jaxpr, [*consts, x])[0].tolist() == [1.0, 4.0]


def test_functions_with_rules_of_their_own_are_entered():
    scaled = tl.custom_jvp(lambda x, y: (2 * x, x * y))
    scaled.defjvp(lambda primals, tangents: (scaled(*primals), scaled(*tangents)))
    _, (a, b), _ = partial_eval(lambda x, y: tl.jit(scaled)(x, y), [(None, tnp.ones(2)), (VECTOR, None)])
    assert a[0] is None and a[1].tolist() == [2.0, 2.0] and b == (VECTOR, None)


def test_branches_are_unknown_as_a_whole():
    def f(x, y):
        return tl.lax.cond(x[0] > 0, lambda: (x, y), lambda: (y, x))

    jaxpr, outs, consts = partial_eval(f, [(VECTOR, None), (None, tnp.zeros(2))])
    assert outs == [(VECTOR, None)] * 2
    assert [z.tolist() for z in eval_jaxpr(jaxpr, [*consts, tnp.ones(2)])] == [[1.0, 1.0], [0.0, 0.0]]


def test_under_transformations():
    """Known values may be traced themselves; an error of Python's about unknown ones is the user's."""

    def f(x):
        _, ((_, known), _), _ = partial_eval(lambda x, y: (x * x, x * y), [(None, x), (VECTOR, None)])
        return known.sum()

    assert tl.jit(tl.grad(f))(tnp.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert tl.vmap(f)(tnp.ones((3, 2))).tolist() == [2.0] * 3
    with pytest.raises(tl.errors.TracerBoolConversionError):
        partial_eval(lambda y: [y if y[0] > 0 else -y], [(VECTOR, None)])
