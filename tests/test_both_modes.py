"""Reverse mode agrees with forward mode: at kinks, ties, zeros and infinities, and behind what a choice discards.

Forward mode is `jvp`, by the rules as they are written. Where it is finite reverse mode is, and is the same. Where a
coefficient is not finite, the modes meet it with other zeros: of elementwise operations, every element is compared
with itself, and they are the same there too. Other primitives are tests/test_derivatives.py's.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import jvp, simplify
from tapeless.interpreters.analysis.cost import cost
from tapeless.interpreters.linearize import linearize
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.zero import instantiate
from tapeless.tracer.types import aval_of
from tests.samples import FAMILIES
from tests.samples.sample import Sample
from tests.test_primitives import applied, compute, differentiable_at

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

POINTS = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, np.inf, -np.inf])

# ---- elementwise operations ----------------------------------------------------------------------------------


def is_real(row: Sample) -> bool:
    """Whether an operation is one of real numbers alone, and has a derivative."""
    avals = tuple(map(aval_of, row.args))
    return bool(differentiable_at(row)) and all(
        a.dtype.kind == "f" for a in (*avals, *row.primitive.type(avals, dict(row.params)))
    )


def one_each(rows: Sequence[Sample]) -> list[Sample]:
    """A row for every primitive and its params."""
    return list(
        {(row.primitive, len(row.args), tuple(row.params.items())): row for row in rows if is_real(row)}.values()
    )


@pytest.mark.parametrize("row", one_each([*FAMILIES["elementwise"], *FAMILIES["special"]]), ids=str)
def test_elementwise(row: Sample):
    """Both modes, element by element, at all points for every operand: the same, infinities and nan too."""
    args = [np.array(column) for column in zip(*product(POINTS, repeat=len(row.args)))]
    for k in differentiable_at(row):
        f = applied(row, args, [k])

        def both(x: Any, t: Any, f: Any = f) -> Any:
            (out,), (pushed,) = jvp.jvp(f, (x,), (t,))
            _, program = linearize(f, (x,))
            (pulled,) = program.pull_back([np.ones(out.shape)])
            return instantiate(pushed), instantiate(pulled)

        pushed, pulled = compute(both, args[k], np.ones(len(args[k])))
        np.testing.assert_array_equal(np.isfinite(pulled), np.isfinite(pushed))
        np.testing.assert_allclose(pulled, pushed, rtol=1e-12)  # the same products in another order


# ---- behind what a choice discards ---------------------------------------------------------------------------

X = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.5, 1e-3])
KNOWN = np.array([0.0, 1, 0, 2, 3, 0, 0])
MASK = np.array([True, False, True, True, False, False, True])
W = np.arange(49.0).reshape(7, 7) / 10
CAUSAL = np.tril(np.ones((7, 7), bool))


def log0(x: Any) -> Any:
    return tnp.where(x > 0, tnp.log(x), 0)


def rows(x: Any) -> Any:
    return tnp.stack([x, 2 * x], 1)


def softmax(x: Any) -> Any:
    e = tnp.exp(x - tl.stop_gradient(tnp.max(x, -1, keepdims=True)))
    return e / tnp.sum(e, -1, keepdims=True)


def logsumexp(x: Any) -> Any:
    m = tl.stop_gradient(tnp.max(x, -1))
    m = tnp.where(tnp.isfinite(m), m, 0)
    return tnp.log(tnp.sum(tnp.exp(x - m[..., None]), -1)) + m


@tl.custom_jvp
def root(x: Any) -> Any:
    return tnp.sqrt(x)


root.defjvp(lambda primals, tangents: (root(*primals), tangents[0] * 0.5 / root(*primals)))


def shared(x: Any) -> Any:
    y = tnp.log(x)
    return tnp.where(x > 0, tnp.where(x > 1, y, 2 * y), 0) + tnp.where(x > 1, y * y, 1)


def attention(x: Any) -> Any:
    q = x[:, None] * np.ones((1, 3))
    weights = softmax(tnp.where(MASK[:, None] & CAUSAL, q @ q.T, -np.inf))
    return tnp.where(MASK[:, None], weights @ q, 0)


def normalized(a: Any) -> Any:
    n = tnp.sqrt(tnp.sum(a * a, 1, keepdims=True))
    return tnp.where(n > 0, a / n, 0)


def forces(x: Any) -> Any:
    d = (x[:, None] - x[None, :])[:, :, None] * np.ones(2)
    near = tnp.sum(d * d, -1, keepdims=True)
    return tnp.sum(tnp.where(near > 0, d / tnp.sqrt(near), 0), (1, 2))


GUARDS: dict[str, Callable[[Any], Any]] = {
    # functions with poles and edges
    "sqrt": lambda x: tnp.where(x > 0, tnp.sqrt(x), 0),
    "log": log0,
    "sinc": lambda x: tnp.where(x == 0, 1, tnp.sin(x) / x),
    "division": lambda x: tnp.where(x != 0, x[::-1] / x, 0),
    "log1p": lambda x: tnp.where(x > -1, tnp.log1p(x), 0),
    "arccos": lambda x: tnp.where(abs(x) < 1, tnp.arccos(x), 0),
    "arctan2": lambda x: tnp.where(x != 0, tnp.arctan2(x, x), 0),
    "power": lambda x: tnp.where(x > 0, x**x, 0),
    "integer power": lambda x: tnp.where(x != 0, x**-2, 0),
    "known coefficient": lambda x: tnp.where(KNOWN > 0, x * tnp.log(KNOWN), 0),
    "complex": lambda x: tnp.where(x != 0, abs(1 / (x + 1j * x)), 0),
    # several choices
    "both cases": lambda x: tnp.where(x > 0, tnp.sqrt(x), tnp.sqrt(1 - x) * x).sum(),
    "select": lambda x: tnp.select([x > 1, x > 0, x < -1], [tnp.log(x), tnp.sqrt(x), tnp.sqrt(-x)], 0.0),
    "nested": lambda x: tnp.where(x > 0, tnp.where(x > 1, tnp.log(x - 1), tnp.sqrt(x)), 0),
    "shared": lambda x: tnp.where(x > 0, shared(x), 0),
    "either": lambda x: (lambda y: tnp.where(x > 1, tnp.sin(y), tnp.where(x > 0, y, 0)))(tnp.log(x)),
    # through other operations, before and after
    "mean": lambda x: tnp.mean(log0(x)),
    "dot": lambda x: W @ log0(x),
    "indexing": lambda x: log0(x)[np.array([0, 2, 2])],
    "reshaped": lambda x: tnp.where((x > 0)[:, None], tnp.sqrt(x)[:, None], 0),
    "broadcast": lambda x: tnp.where(rows(x) > 0, tnp.log(x)[:, None] * np.ones((1, 2)), 0),
    "transposed": lambda x: tnp.where(rows(x).T > 0, tnp.sqrt(rows(x)).T, 0),
    "sliced": lambda x: tnp.where(x[1:4] > 0, tnp.log(x)[1:4], 0),
    "rolled": lambda x: tnp.where(tnp.roll(x, 1) > 0, tnp.roll(tnp.sqrt(x), 1), 0),
    "split": lambda x: tnp.where(x[3:5] > 0, tnp.split(tnp.sqrt(x) * x, (3, 5))[1], 0) + tnp.split(x * x, (2,))[0],
    "product of all": lambda x: tnp.where(x > 0, tnp.prod(tnp.sqrt(x)[:, None] * np.arange(1, 6), 1), 0),
    "joined": lambda x: tnp.where(tnp.stack([x, x]) > 0, tnp.stack([tnp.sqrt(x), tnp.log(x)]), 0),
    "gathered": lambda x: tnp.where(x[np.array([3, 1, 0])] > 0, tnp.sqrt(x)[np.array([3, 1, 0])], 0),
    "written": lambda x: tnp.where(x > 0, tnp.zeros(7, x.dtype).at[np.arange(7)].set(tnp.sqrt(x)), 0),
    "window": lambda x: (lambda i: tnp.where(x[1:4] > 0, lax.dynamic_slice(tnp.log(x), (i,), (3,)), 0))(
        tnp.argmax(x) - 3
    ),
    "product": lambda x: tnp.where(x > 0, tnp.prod(tnp.stack([tnp.sqrt(x), tnp.log(x)]), 0), 0),
    "product, kept": lambda x: tnp.where(
        (x > 0)[:, None], tnp.prod(tnp.sqrt(x)[:, None] * np.ones(5), 1, keepdims=True), 0
    ),
    "product of one row": lambda x: tnp.where((x > 0).all(), tnp.prod(tnp.sqrt(x[None]), 1), 0),
    "running sum": lambda x: tnp.where(np.arange(7) > 1, lax.cumsum(tnp.sqrt(abs(x)), reverse=True), 0),
    "running sum, padded": lambda x: tnp.where(np.arange(7) > 1, tnp.cumsum(tnp.sqrt(abs(x))[::-1])[::-1], 0),
    "sum": lambda x: tnp.where(tnp.sum(x) > 100, tnp.sum(tnp.log(x)), 0),
    "scalar": lambda x: tnp.where(x[0] > 0, tnp.log(x[0]) * x, x),
    "rows": lambda x: tnp.where((KNOWN > 0)[:, None], x[None, :] / KNOWN[:, None], 0),
    "product of matrices": lambda x: tnp.where((KNOWN > 0)[:, None], rows(x) / KNOWN[:, None] @ np.ones((2, 2)), 0),
    "norm": lambda x: (lambda n: tnp.where(n > 0, tnp.sqrt(n), 0))(tnp.sum((x[:, None] - x) ** 2 * np.ones(7), 0) * x),
    "normalized": lambda x: normalized(rows(x)),
    "forces": forces,
    # what people mask
    "softmax": lambda x: softmax(tnp.where(MASK, x, -np.inf)),
    "logsumexp": lambda x: logsumexp(tnp.where(MASK, x, -np.inf)),
    "logsumexp of nothing": lambda x: (lambda y: tnp.where(y > -np.inf, y, 0))(
        logsumexp(tnp.where(x > 100, x, -np.inf))
    ),
    "attention": attention,
    # in and around programs
    "jit": lambda x: tnp.where(x > 0, tl.jit(lambda y: tnp.sqrt(y) * y)(x), 0),
    "checkpoint": lambda x: tnp.where(x > 0, tl.checkpoint(lambda y: tnp.sqrt(y) * y)(x), 0),
    "custom_jvp": lambda x: tnp.where(x > 0, root(x), 0),
    "vmap": lambda x: tl.vmap(lambda x: tnp.where(x > 0, tnp.sqrt(x), 0))(x),
    "cond": lambda x: tnp.where(x > 0, lax.cond(x[2] > 0, tnp.sqrt, tnp.log, x), 0),
    "unread branch": lambda x: lax.cond(x[0] > 0, lambda y: 2 * y, lambda y: x, tnp.sqrt(x)),
    "unread scalar": lambda x: lax.cond(x[0] > 0, lambda y: y * x, lambda y: x, tnp.log(x[0])),
    "choice in a branch": lambda x: lax.cond(x[0] > 0, lambda y: y, lambda y: tnp.where(x > 0, y, 0), tnp.sqrt(x)),
    "switch": lambda x: lax.switch(
        tnp.argmax(x) - 3, [lambda y: y, lambda y: tnp.where(x > 0, y, 0), lambda y: x], tnp.sqrt(x)
    ),
    "branch of a step": lambda x: lax.scan(
        lambda c, a: (c + lax.cond(a > 0, lambda y: y, lambda y: 0 * c, tnp.log(a)), None), 0.0, x
    )[0],
    "carry": lambda x: tnp.where(x > 0, lax.scan(lambda c, _: (tnp.sqrt(c) * c, None), x, None, length=2)[0], 0),
    "stacked": lambda x: tnp.where(x > 0, lax.scan(lambda c, a: (c, tnp.log(a)), 0.0, x)[1], 0),
    "in a scan": lambda x: lax.scan(lambda c, a: (c + tnp.where(a > 0, tnp.sqrt(a), 0), log0(a)), 0.0, x)[1],
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: tnp.where(c > 0, tnp.sqrt(c) * c, c), x),
    # derivatives of derivatives
    "second": lambda x: tl.grad(lambda x: tnp.sum(tnp.where(x > 0, tnp.sqrt(x) * x, 0)))(x),
    "second of product": lambda x: tl.grad(
        lambda x: tnp.sum(tnp.where(x > 0, tnp.prod(tnp.stack([tnp.sqrt(x), tnp.log(x)]), 0), 0))
    )(x),
    "second of sinc": lambda x: tl.grad(lambda x: tnp.sum(tnp.where(x == 0, 1, tnp.sin(x) / x)))(x),
    "vector product": lambda x: tl.jvp(tl.grad(lambda x: tnp.sum(log0(x) * x)), (x,), (np.ones(7),))[1],
}


@pytest.mark.parametrize("name", GUARDS)
def test_guards(name: str):
    """Forward mode is finite, and reverse mode is the same, compiled and, of every third function, eagerly."""
    f, tangents = GUARDS[name], tl.vmap(tl.linearize(GUARDS[name], X)[1])
    both = tl.jit(lambda x, ts: (tl.jacfwd(f)(x), tl.jacrev(f)(x), tangents(ts)))(X, np.eye(7))
    forwards, backwards, pushed = map(np.asarray, both)
    assert np.isfinite(forwards).all()
    np.testing.assert_allclose(backwards, forwards, rtol=1e-6, atol=1e-9)  # sums in another order
    np.testing.assert_allclose(np.moveaxis(pushed, 0, -1), forwards, rtol=1e-6, atol=1e-9)
    if list(GUARDS).index(name) % 3 == 0:
        np.testing.assert_allclose(tl.jacrev(f)(X), forwards, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", GUARDS)
def test_masks_add_no_linear_work_and_leave_nothing_to_do(name: str):
    jaxpr = tl.linearize(GUARDS[name], X)[1].jaxpr
    before = cost(jaxpr)
    after = cost(simplify._simplify(jaxpr))
    assert simplify_program(jaxpr) is simplify_program(simplify_program(jaxpr))
    assert after.adds + after.multiplies <= before.adds + before.multiplies


# ---- a choice here, what it chooses in a program ---------------------------------------------------------------

CALLS: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda x: tnp.where(x > 0, tl.jit(tnp.sqrt)(x), 0),
    "reciprocal": lambda x: tnp.where(x != 0, tl.jit(lambda x: 1 / x)(x), 0),
    "one after another": lambda x: tnp.where(x > 0, tl.jit(tnp.log)(tl.jit(tnp.sqrt)(x)), 0),
    "one in another": lambda x: tnp.where(x > 0, tl.jit(lambda x: tl.jit(tnp.sqrt)(x) * tnp.log(x))(x), 0),
    "custom_jvp": lambda x: tnp.where(x > 0, tl.jit(root)(x), 0),
    "checkpoint": lambda x: tnp.where(x > 0, tl.jit(tl.checkpoint(lambda x: tnp.sqrt(x) * x))(x), 0),
    "cond": lambda x: tnp.where(x > 0, lax.cond(x[2] > 0, tnp.sqrt, tnp.log, x), 0),
    "stacked": lambda x: tnp.where(x > 0, lax.scan(lambda c, a: (c, tnp.sqrt(a)), 0.0, x)[1], 0),
    "in a scan": lambda x: lax.scan(lambda c, a: (c, tnp.where(a > 0, tl.jit(tnp.sqrt)(a), 0)), 0.0, x)[1],
    "broadcast": lambda x: tnp.where((x > 0)[:, None], tl.jit(lambda x: tnp.sqrt(x)[:, None] * np.ones(2))(x), 0),
    "gathered": lambda x: tnp.where(x[::-1] > 0, tl.jit(lambda x: tnp.sqrt(x)[np.arange(7)[::-1]])(x), 0),
    "sum": lambda x: tnp.where(tnp.sum(x) > 100, tl.jit(lambda x: tnp.sum(tnp.sqrt(x)))(x), 0),
    # the other way round: the choice in a program, what it chooses is computed before
    "choice of a call": lambda x: chosen(tl.jit(tnp.sqrt)(x), x),
    "choice of a value": lambda x: chosen(tnp.sqrt(x), x),
    "choice in every step": lambda x: lax.scan(
        lambda c, a: (c, tnp.where(a[1] > 0, tnp.sin(a[0]), 0)), 0.0, (tnp.sqrt(x), x)
    )[1],
    "choice of a constant": lambda x: lax.scan(
        lambda c, a: (c + tnp.where(x > 0, a * tnp.sin(c), 0), None), tnp.sqrt(abs(x) + 1), tnp.ones(2)
    )[0],
}


@tl.jit
def chosen(y: Any, x: Any) -> Any:
    return tnp.where(x > 0, 3 * tnp.sqrt(y), 0)


@pytest.mark.parametrize("name", CALLS)
def test_second_derivatives_through_calls(name: str):
    """All four ways to a second derivative are finite, and the same; one of them, each in turn, is eager."""

    def f(x: Any) -> Any:
        return tnp.sum(CALLS[name](x))

    pairs = product((tl.jacfwd, tl.jacrev), (tl.jacfwd, tl.grad))
    ways = [outer(inner(f)) for outer, inner in pairs]
    eager = ways.pop(list(CALLS).index(name) % 4)
    expected, *others = map(np.asarray, tl.jit(lambda x: [way(x) for way in ways])(X))
    assert np.isfinite(expected).all()
    for found in (*others, eager(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)  # sums in another order


def test_third_derivative_through_a_call():
    def f(x: Any) -> Any:
        return tnp.where(x > 0, tl.jit(tnp.sqrt)(x), 0.0)

    assert [tl.grad(tl.grad(tl.grad(f)))(x) for x in (0.0, 1.0)] == [0.0, 0.375]


# ---- exceptions ----------------------------------------------------------------------------------------------


@tl.custom_vjp
def own_log(x: Any) -> Any:
    return tnp.log(x)


own_log.defvjp(lambda x: (tnp.log(x), x), lambda x, ct: (ct / x,))

# Guards where reverse mode is not finite though forward mode is, and why.
EXCEPTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "custom_vjp": (
        lambda x: tnp.where(x > 0, own_log(x), 0),
        "the user's backward rule runs as it is written, on a cotangent that is 0",
    ),
}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_needed(name: str):
    f, _ = EXCEPTIONS[name]
    assert np.isfinite(tl.jacfwd(f)(X)).all()
    assert not np.isfinite(tl.jacrev(f)(X)).all()
