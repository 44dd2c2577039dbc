"""partial_eval: the halves give what the function gives, known work is done once, and residuals are few."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.test_properties import drawn, programs
from tests.messages import raises
from tests.stepping import by_steps

policies = tl.checkpoint_policies
W, X = np.array([[0.5, -0.25], [1.0, 0.75]], "float32"), np.array([0.5, -2.0], "float32")


def same(f, parts, known, unknown):
    """The halves give the bits of the whole, computed operation by operation without XLA."""
    program = tl.make_jaxpr(f)(*known, *unknown)
    whole = by_steps(program.jaxpr, [*program.consts, *known, *unknown])
    first, second = parts.known.jaxpr, parts.unknown.jaxpr
    residuals = by_steps(first.jaxpr, [*first.consts, *known])
    for a, b in zip(by_steps(second.jaxpr, [*residuals, *unknown]), whole, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


POLICIES = (None, policies.nothing_saveable, policies.dots_saveable, policies.budget(0), policies.budget(0.5))


@settings(max_examples=25, deadline=None)
@given(programs())
def test_random_programs_are_the_same_bit_for_bit(f):
    x = drawn(0)
    least = tl.residual_bytes(tl.partial_eval(f, *x, known=(0, 1), policy=policies.budget(0)))
    all_of_them = tl.residual_bytes(tl.partial_eval(f, *x, known=(0, 1)))
    assert least <= all_of_them
    for policy in POLICIES[:4]:
        same(f, tl.partial_eval(f, *x, known=(0, 1), policy=policy), x[:2], x[2:])
    bounded = tl.partial_eval(f, *x, known=(0, 1), policy=policies.budget(max(least, all_of_them // 2) or 1))
    assert tl.residual_bytes(bounded) <= max(least, all_of_them // 2)
    same(f, bounded, x[:2], x[2:])


def in_scan(w, x):
    def step(carry, v):
        h, k = carry
        return (tnp.tanh(tnp.sin(w) @ h * k + v), tnp.sin(k) * 2), h + k

    return lax.scan(step, (x, w[0]), tnp.ones((3, 2)))[1]


def in_while(w, x):
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + tnp.sin(w) @ c[0], c[1] + 1, c[2] * 2), (x, 0, w))[0]


def until(w, x):
    return lax.while_loop(lambda c: tnp.sum(c) < 9, lambda c: 1 + abs(tnp.sin(w) @ c), x)


def in_branch(w, x):
    return lax.cond(w[0, 0] > 0, lambda a, b: tnp.sin(a) @ b, lambda a, b: b, w, x)


def in_checkpoint(w, x):
    return tl.checkpoint(lambda w, x: tnp.sin(w) @ x)(w, x)


def called_twice(w, x):
    f = tl.jit(lambda w, x: tnp.sin(w) @ x)
    return f(w, f(w, x))


def names(jaxpr):
    return [str(eqn.primitive) for eqn in jaxpr.eqns] + [name for inner in jaxpr.programs for name in names(inner)]


@pytest.mark.parametrize("f", [in_scan, in_while, until, in_branch, in_checkpoint, called_twice])
def test_known_work_in_bodies_is_done_once(f):
    parts = tl.partial_eval(f, W, X, known=0)
    assert "sin" not in names(parts.unknown.jaxpr.jaxpr) and "sin" in names(parts.known.jaxpr.jaxpr)
    same(f, parts, [W], [X])


def test_an_unknown_predicate_keeps_the_branches_whole():
    def f(w, x):
        return lax.cond(x[0] > 0, lambda a, b: tnp.sin(a) @ b, lambda a, b: b, w, x)

    parts = tl.partial_eval(f, W, X, known=0)
    assert "sin" in names(parts.unknown.jaxpr.jaxpr)
    same(f, parts, [W], [X])


def test_a_users_rule_stays_with_its_function():
    @tl.custom_jvp
    def scaled(w, x):
        return w * x

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 7 * tangents[1]))
    parts = tl.partial_eval(lambda w, x: scaled(tnp.exp(w), x), 1.0, 2.0, known="w")
    assert tl.grad(lambda x: parts.unknown(parts.known(1.0), x))(2.0) == 7


def test_effects_keep_their_order():
    def f(w, x):
        for value in (w, x, 2 * w):
            tl.debug.print("{}", value)
        return w * x

    parts = tl.partial_eval(f, 1.0, 2.0, known=0)
    assert [names(half.jaxpr.jaxpr).count("debug_callback") for half in (parts.known, parts.unknown)] == [1, 2]


def model(w, x):
    return tnp.tanh(tnp.sin(w) @ tnp.cos(w)) @ x


def test_work_is_divided_and_residuals_are_few():
    parts = tl.partial_eval(model, W, X, known=0)
    assert tl.work(parts) == tl.work(tl.make_jaxpr(model)(W, X))
    assert tl.residual_bytes(parts) == 16 and parts.residuals.recomputed == 0
    again = tl.partial_eval(model, W, X, known=0, policy=policies.nothing_saveable)
    assert [r.argument for r in again.residuals] == ["the argument w"] and again.residuals.recomputed == 4
    assert str(parts).startswith("known\n{ lambda a:f32[2,2]") and "\n\nresiduals\nfloat32[2,2] from tanh" in str(parts)


def test_halves_are_functions_under_every_transformation():
    parts = tl.partial_eval(model, tl.ShapeDtypeStruct((2, 2), "float32"), X, known="w")
    saved = parts.known(W)
    close = partial(np.testing.assert_allclose, rtol=1e-6)  # XLA may contract in another order
    close(tl.vmap(parts.unknown, (None, 0))(saved, np.stack([X, X])), [model(W, X)] * 2)
    close(
        tl.grad(lambda w: tl.jit(parts.unknown)(tl.jit(parts.known)(w), X).sum())(W),
        tl.grad(lambda w: model(w, X).sum())(W),
    )
    close(tl.jvp(lambda x: parts.unknown(saved, x), (X,), (X,))[1], model(W, X))


def test_trees_keywords_and_results_that_are_known():
    def f(params, x, *, scale):
        return {"y": tnp.exp(params["w"]) * x * scale, "n": 2 * params["b"]}

    params = {"w": X, "b": 1.5}
    parts = tl.partial_eval(f, params, X, scale=2.0, known=("params", "scale"))
    found = parts.unknown(parts.known(params, scale=2.0), X)
    assert found["n"] == 3
    np.testing.assert_array_equal(found["y"], f(params, X, scale=2.0)["y"])


def test_errors():
    def f(w, x):
        return w * x

    for known, kind, text in (
        ((), ValueError, "so that nothing is known"),
        ((0, "x"), ValueError, "so that nothing is unknown"),
        (2, ValueError, "names argument 2, but f at"),
        ("q", ValueError, "was given w, x."),
        (1.5, TypeError, "known must be the position or the name of an argument, or several of them, not 1.5."),
        (True, TypeError, "known must be the position or the name of an argument, or several of them, not True."),
    ):
        with pytest.raises(kind, match="partial_eval: known") as caught:
            tl.partial_eval(f, X, X, known=known)
        assert text in str(caught.value)
    with raises(TypeError, "partial_eval: expected a function and its arguments, not 3."):
        tl.partial_eval(3, X, known=0)
    with raises(TypeError, "partial_eval: expected a policy of tl.checkpoint_policies, or a function, not 3."):
        tl.partial_eval(f, X, X, known=0, policy=3)
    with pytest.raises(
        ValueError, match=r"budget\(3\): 3 bytes are too few for the residuals, which take at least 8\."
    ):
        tl.partial_eval(f, X, X, known=0, policy=policies.budget(3))
    parts = tl.partial_eval(f, X, X, known=0)
    with pytest.raises(TypeError, match=r"argument x of the unknown half of f .* is float32\[2\], but was given as"):
        parts.unknown(parts.known(X), W)
    with pytest.raises(TypeError, match=r"the known half of f .* takes \(float32\[2\]\), but was called with \(\)"):
        parts.known()
