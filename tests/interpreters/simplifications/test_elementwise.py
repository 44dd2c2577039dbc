"""Neutral elements and broadcasts; signs of zeros, infinities, types."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer.jaxpr import Literal
from tests.interpreters.simplifications.programs import X, after, names

ZEROS = np.array([0.0, -0.0, 1.0, -1.0, np.inf])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 1.0,
        lambda x: 1.0 * x,
        lambda x: x * tnp.ones(x.shape, x.dtype),
        lambda x: x / 1.0,
        lambda x: lax.neg(lax.neg(x)),
        lambda x: x + (-0.0),
        lambda x: x - 0.0,
        lambda x: lax.integer_pow(x, 1),
        lambda x: lax.convert_element_type(x, x.dtype),
        lambda x: lax.select(x > 0, x, x),
    ],
)
def test_nothing_is_done(f):
    assert names(after(f, ZEROS)) == []


@pytest.mark.parametrize("f", [lambda x: x + 0.0, lambda x: x - (-0.0), lambda x: 0.0 * x, lambda x: 0.0 - x])
def test_what_looks_as_if_it_did_nothing(f):
    """0.0 is not neutral for -0.0, and 0 times infinity is nan."""
    closed = tl.make_jaxpr(f)(ZEROS[:4])
    assert names(closed.jaxpr) == names(after(f, ZEROS[:4]))


def test_linear_jaxprs_know_no_sign_of_zero():
    def f(x):
        return lax.add(lax.mul(x, 3.0), lax.mul(0.0, x))

    assert names(tl.linearize(f, X)[1].jaxpr) == ["mul"]


def test_a_zero_in_a_linear_jaxpr_makes_all_it_goes_through_zero():
    """The coefficient is nan where the tangent is known to be zero."""

    def f(x):
        padded = lax.pad(x, 0.0, [(0, 48, 0)])
        return lax.mul(lax.slice(padded, [16], [32]), np.full(16, np.nan)) + lax.slice(padded, [0], [16])

    assert names(tl.linearize(f, X)[1].jaxpr) == []


def test_types_stay():
    """One is neutral in value, but makes a weak type strong."""
    jaxpr = after(lambda x: lax.mul(x, np.ones((), np.float32)), 2.0)
    assert names(jaxpr) == ["mul"] and not jaxpr.outvars[0].aval.weak_type


def test_what_is_broadcast_alike_is_combined_before():
    def f(x):
        y = tnp.broadcast_to(x[:, None], (16, 9))
        return tnp.sin(y) * y

    jaxpr = after(f, X)
    assert names(jaxpr) == ["sin", "mul", "broadcast_in_dim"]
    assert jaxpr.eqns[0].outvars[0].aval.shape == (16,)


def test_scalars_are_not_broadcast():
    assert names(after(lambda x, y: x * tnp.broadcast_to(y, (16,)), X, np.array(3.0))) == ["mul"]


def test_numbers_are_computed():
    jaxpr = after(lambda: -tnp.multiply(np.float32(2.0), np.float32(3.0)))
    assert names(jaxpr) == []
    assert isinstance(jaxpr.outvars[0], Literal) and jaxpr.outvars[0].value == -6


def test_one_and_zero_of_a_mask_need_one_conversion():
    assert names(after(lambda x: (x > 1).astype(np.float32).astype(np.float64), X)) == ["gt", "convert_element_type"]
