"""Residuals are the cheapest values that the linear half can be made from by moving, comparing and counting."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import jvp, limits
from tapeless.interpreters.residuals import cut
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.terms.term_limits import Limit

N = 30
VALUES = np.arange(N, dtype=np.float32)
VECTOR, MATRIX = tl.ShapeDtypeStruct((N,), "float32"), tl.ShapeDtypeStruct((N, N), "float32")


def saved(f: Callable[..., Any], *args: Any) -> list[str]:
    return sorted(str(r.aval) for r in tl.unzip(f, *args).residuals)


def called_twice(f: Callable[..., Any]) -> Callable[..., Any]:
    g = tl.jit(f)
    return lambda x: g(x) + g(2 * x)


# Programs with the types of what they save.
SAVED: dict[str, tuple[Callable[..., Any], Any, list[str]]] = {
    "the argument, of which a mask is made": (
        lambda x: tnp.sum(tnp.where(x > 0, x * x, 0)), VECTOR, ["float32[30]"]
    ),
    "a mask, where nothing else is read": (lambda x: tnp.sum(tnp.where(x > 0, x, 2 * x)), VECTOR, ["bool[30]"]),
    "one mask of several": (
        lambda x: tnp.sum(tnp.where((x > 0) & (x < 1) | (x > 2), x, 0)), VECTOR, ["bool[30]"]
    ),
    "nothing of a mask of positions": (lambda x: tnp.sum(tnp.tril(x) @ x), MATRIX, ["float32[30,30]"]),
    "what is converted, if that is less": (
        lambda x: tnp.sum(x.astype("float32") * x[::-1].astype("float32")), tl.ShapeDtypeStruct((N,), "bfloat16"),
        ["bfloat16[30]"],
    ),
    "in a call": (called_twice(lambda x: tnp.sum(tnp.where(x > 0, x * x, 0))), VECTOR, ["float32[30]"] * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved(name: str):
    f, arg, expected = SAVED[name]
    assert saved(f, arg) == sorted(expected)


# Halves of a program that is called are remembered, whichever way they were cut; and as trees its mask is saved, too.
@pytest.mark.parametrize("name", [name for name in SAVED if name != "in a call"])
def test_without_the_flow_it_suffices_too(name: str, monkeypatch: pytest.MonkeyPatch):
    """Large parts of the graph are cut as trees."""
    f, arg, expected = SAVED[name]
    monkeypatch.setattr(limits, "CUT", Limit(0, "CUT", "", ""))
    assert saved(f, arg) == sorted(expected)


def test_loops_stack_what_changes():
    """Of the step x <- A.T tanh(x) the derivative reads tanh(x) and its derivative, and A, the same at each step."""

    def f(a: Any, x: Any) -> Any:
        return tnp.sum(lax.scan(lambda x, _: (a.T @ tnp.tanh(x), None), x, None, length=5)[0])

    assert saved(f, MATRIX, VECTOR) == ["float32[30,30]", "float32[5,30]", "float32[5,30]"]


def test_loops_do_not_stack_what_is_repeated():
    def f(b: Any, x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            return x * tnp.broadcast_to(tnp.exp(b), x.shape) + tnp.where(x > 0, x, 0), None

        return tnp.sum(lax.scan(step, x, None, length=5)[0])

    assert saved(f, VECTOR, MATRIX) == ["float32[30]", "float32[5,30,30]"]


def test_masks_of_loops_are_compared_again():
    """Five steps, of which a mask of bytes would be a fourth more."""

    def f(x: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            return tnp.where(x > 1, tnp.sin(x), x * x), None

        return tnp.sum(lax.scan(step, x, None, length=5)[0])

    assert tl.residual_bytes(tl.unzip(f, VECTOR)) == 2 * 5 * N * 4  # x, cos(x)


@pytest.mark.parametrize("policy", ["nothing_saveable", "everything_saveable", "dots_saveable"])
def test_policies_are_asked_after_the_cut(policy: str):
    """Of A x where it is positive: the mask is saved, or what it is made of, or nothing."""

    def f(a: Any, x: Any) -> Any:
        h = a @ x
        return tnp.sum(tnp.where(h > 0, h, 0))

    program = tl.unzip(tl.checkpoint(f, policy=getattr(tl.checkpoint_policies, policy)), MATRIX, VECTOR)
    made = [r.primitive for r in program.residuals if r.argument is None]
    assert made == {"nothing_saveable": [], "everything_saveable": ["gt"], "dots_saveable": ["dot_general"]}[policy]


def test_equal_values_are_saved_once():
    def f(x: Any) -> Any:
        return tnp.sum(tnp.sin(x) * tnp.sin(x))

    assert saved(f, VECTOR) == ["float32[30]"] * 2


def test_fences_stay_two():
    """A barrier is there to keep values apart."""
    x = np.ones(3)
    program = tl.unzip(lambda x: lax.optimization_barrier(x) * lax.optimization_barrier(x), x)
    assert [eqn.primitive.name for eqn in program.primal.eqns].count("optimization_barrier") == 2


# Terms of a sum that a loop computes, where a mask discards what is infinite at 0; their derivatives times x, twice.
DISCARDED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "x log x": (lambda x: tnp.where(x > 0, x * tnp.log(x), 0), lambda x: 1 / x),
    "a negative power": (lambda x: tnp.where(x != 0, tnp.sin(x**-1.0 * x**2), 0), lambda x: -np.sin(x)),
    "sin x / x": (
        lambda x: tnp.where(x != 0, tnp.sin(x) / x, 1),
        lambda x: -np.sin(x) / x - 2 * np.cos(x) / x**2 + 2 * np.sin(x) / x**3,
    ),
    "a quotient": (lambda x: tnp.where(x != 0, (x * x * x + x) / x, 1), lambda x: 2 + 0 * x),
    "overflow": (
        lambda x: tnp.where(x > 0, tnp.exp(800 - 1200 * x), 0),
        lambda x: 1200**2 * np.exp(800 - 1200 * x),
    ),
    "erf_inv": (
        lambda x: tnp.where(x > 0, lax.erf_inv(1 - x / 2), 0),
        lambda x: np.pi / 8 * scipy.special.erfinv(1 - x / 2) * np.exp(2 * scipy.special.erfinv(1 - x / 2) ** 2),
    ),
}


@pytest.mark.parametrize("name", DISCARDED)
def test_residuals_are_saved_with_their_mask(name: str):
    """The derivative of a residual of the first loop is infinite where the second loop discards it."""
    term, second = DISCARDED[name]
    x, t = np.array([0.0, 0.7, 0.0, 1.3]), np.array([0.5, -1.0, 2.0, 0.3])

    def total(x: Any) -> Any:
        return lax.fori_loop(0, 4, lambda i, s: s + term(x[i]), 0.0)

    def twice(x: Any) -> Any:
        return tl.grad(lambda x: tl.grad(total)(x) @ t)(x)

    expected = [second(y) * u if y else 0 for y, u in zip(x, t)]
    for f in (twice, tl.jit(twice)):
        np.testing.assert_allclose(f(x), expected, rtol=1e-9)


def test_products_are_saved_without_their_mask():
    """No derivative of a product is infinite: the primal half has no choice that the function lacks."""

    def f(x: Any) -> Any:
        def step(s: Any, e: Any) -> Any:
            h = e @ VALUES
            return s + tnp.where(e[0] > 0, h * h, 0), None

        return lax.scan(step, 0.0, x)[0]

    (loop,) = [eqn for eqn in tl.unzip(f, MATRIX).primal.eqns if eqn.primitive.name == "scan"]
    assert [eqn.primitive.name for eqn in loop.params["jaxpr"].eqns].count("select_n") == 1


def test_what_is_linear_in_each_operand_has_finite_derivatives():
    """By the table of linear primitives, which alone decides: its rules are finite where others are not."""
    point, zero = np.array([0.0, 1.0, -1.0]), np.zeros(3)
    infinite = {
        "sqrt": (tnp.sqrt, (point,)),
        "log": (tnp.log, (point,)),
        "arcsin": (tnp.arcsin, (point,)),
        "erfinv": (tl.scipy.special.erfinv, (point,)),
        "ndtri": (tl.scipy.special.ndtri, (point,)),
        "kl_div": (tl.scipy.special.kl_div, (zero, point)),
        "betaln": (tl.scipy.special.betaln, (zero, point)),
        "xlogy": (tl.scipy.special.xlogy, (zero, zero)),
        "power": (lambda x: x**0.3, (point,)),
        "a quotient": (lambda x: 2 / x, (point,)),
    }
    pushed = tl.jit(lambda: [tl.jvp(f, args, tuple(map(np.ones_like, args)))[1] for f, args in infinite.values()])()
    for tangents, (name, (f, args)) in zip(pushed, infinite.items()):
        eqns = tl.make_jaxpr(f)(*args).jaxpr.eqns
        assert not np.isfinite(tangents).all() and not all(map(cut._is_linear_in_each, eqns)), name
    elementwise = {p for p in vars(e).values() if isinstance(p, Primitive) and p in jvp.structurally_linear}
    binary = elementwise - {e.div_p, e.select_n_p, e.complex_p, e.convert_element_type_p}
    for primitive in [p for p in binary if p not in (e.conj_p, e.real_p, e.imag_p, e.copy_p, e.neg_p)]:
        (tangent,) = tl.jvp(primitive.bind, (zero, point), (np.ones(3), np.ones(3)))[1]
        assert np.isfinite(tangent).all(), primitive
