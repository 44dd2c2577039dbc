"""Sums of products in bodies become contractions, but for inner products, and for what others read."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tests.index_language.programs import operations

A, X = tnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 5)).astype(np.float32)), tnp.arange(5.0)


@pytest.mark.parametrize(
    "body, expected",
    [
        (lambda: ix.build(5, lambda i: ix.sum(5, lambda j: A[0, i, j] * X[j])), A[0] @ X),
        (lambda: ix.build(5, lambda i: ix.sum(5, lambda j: 2 * (A[0, j, i] * X[j]) * X[i])), 2 * (X @ A[0]) * X),
        (lambda: ix.build((5, 5), lambda i, j: ix.sum(5, lambda k: A[0, i, k] * A[1, j, k])), A[0] @ A[1].T),
    ],
)
def test_products_with_a_matrix(body, expected):
    np.testing.assert_allclose(body(), expected, rtol=1e-5, atol=1e-5)
    assert operations(body).count("dot_general") == 1 and "reduce_sum" not in operations(body)


def test_inner_products_are_left():
    assert "dot_general" not in operations(lambda x: ix.sum(5, lambda i: x[i] * X[i]), X)


def test_what_others_read_is_left():
    """Products that are sums' and a result's are computed once."""

    def f(a, x):
        y = ix.build((5, 5), lambda i, j: a[i, j] * x[j])
        return y, ix.build(5, lambda i: ix.sum(5, lambda j: y[i, j]))

    assert operations(f, A[0], X).count("mul") == 1


def test_the_larger_factor_is_read_in_its_order():
    """Summed over its first axes, it is the second operand of a contraction, which would else move it."""
    first = lambda a, x: ix.build(5, lambda i: ix.sum(5, lambda j: a[j, i] * x[j]))  # noqa: E731
    last = lambda a, x: ix.build(5, lambda i: ix.sum(5, lambda j: a[i, j] * x[j]))  # noqa: E731
    for f, expected in ((first, ("b a", ((0,), (0,)))), (last, ("a b", ((1,), (0,))))):
        program = lowered(f, A[0], X)
        (eqn,) = [eqn for eqn in program.eqns if eqn.primitive.name == "dot_general"]
        names = {program.invars[0]: "a", program.invars[1]: "b"}
        assert (" ".join(names[v] for v in eqn.invars), eqn.params["dimension_numbers"][0]) == expected


def lowered(f, *args):
    return ix.lower_terms(ix.fuse(tl.make_jaxpr(f)(*args))).jaxpr
