"""Masks before products: what is multiplied by what, and where it is left alone."""

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.interpreters.analysis import sparse_cost
from tests.interpreters.simplifications.programs import A, B, X, after, names

FIRST = {
    "product": lambda a: tnp.eye(16, k=2) * (tnp.sin(a) * B),
    "of three": lambda a: (tnp.sin(a) * B * A) * tnp.eye(16, k=2),
    "outer product": lambda a: tnp.eye(16, k=2) * tnp.tensordot(tnp.sin(a[0]), a[1], 0),
    "batch": lambda a: tnp.tril(tnp.ones((16, 16), bool)).astype(float) * tnp.einsum("i,ij->ij", a[0], tnp.sin(a)),
}


@pytest.mark.parametrize("name", FIRST)
def test_masks_come_first(name):
    f = FIRST[name]
    closed, new = tl.make_jaxpr(f)(A), after(f, A)
    before, now = (sparse_cost.cost(jaxpr, closed.consts).work for jaxpr in (closed.jaxpr, new))
    assert now < before


@pytest.mark.parametrize(
    "f",
    [
        lambda a: tnp.eye(16) * (a * B) + a * B * 2,
        lambda a: [tnp.eye(16) * p + p for p in [tnp.sin(a) * B]],
        lambda a: tnp.eye(16)[0] * (X * a[0])[:1],
    ],
    ids=["a product of other work", "a product that is read twice", "a scalar"],
)
def test_what_is_left_alone(f):
    """No multiplication is added."""
    jaxpr = tl.make_jaxpr(f)(A).jaxpr
    assert names(after(f, A)).count("mul") <= names(jaxpr).count("mul")
