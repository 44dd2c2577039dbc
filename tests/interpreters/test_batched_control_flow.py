"""Branches and loops that differ between the examples of a vmap."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import limits

pytestmark = pytest.mark.usefixtures("eager_by_steps")

MODES = ["auto", "select", "loop"]
XS = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
each_mode = pytest.mark.parametrize("mode", MODES)


def guarded_log(x):
    return lax.cond(x > 0, lambda x: tnp.log(x) * x, lambda x: 3.0 * x, x)


def reference(x):
    return np.where(x > 0, np.log(np.where(x > 0, x, 1)) * x, 3 * x), np.where(
        x > 0, np.log(np.where(x > 0, x, 1)) + 1, 3
    )


@each_mode
def test_cond_and_its_derivatives(mode):
    f = tl.vmap(guarded_log, control_flow=mode)
    value, slope = reference(XS)
    np.testing.assert_allclose(f(XS), value, rtol=1e-6)
    np.testing.assert_allclose(tl.jit(f)(XS), value, rtol=1e-6)
    np.testing.assert_allclose(tl.grad(lambda xs: f(xs).sum())(XS), slope, rtol=1e-6)
    np.testing.assert_allclose(tl.vmap(tl.grad(guarded_log), control_flow=mode)(XS), slope, rtol=1e-6)
    np.testing.assert_allclose(tl.jvp(f, (XS,), (np.ones_like(XS),))[1], slope, rtol=1e-6)


@each_mode
def test_branches_of_no_examples(mode):
    f, none = tl.vmap(guarded_log, control_flow=mode), XS[:0]
    for found in (
        f(none),
        tl.grad(lambda xs: f(xs).sum())(none),
        tl.vmap(tl.grad(guarded_log), control_flow=mode)(none),
    ):
        assert found.shape == (0,)


@each_mode
def test_switch_with_an_index_for_each_example_and_operands_in_common(mode):
    w = tnp.array([1.0, 2.0])

    def f(i, x):
        return lax.switch(i, [lambda x: x * w, lambda x: x + w, lambda x: tnp.sin(x) * w[::-1]], x)

    index = np.array([0, 1, 2, 1])
    found = tl.vmap(f, control_flow=mode)(index, XS)
    rows = [
        x * np.array([1, 2]) if i == 0 else x + np.array([1, 2]) if i == 1 else np.sin(x) * np.array([2, 1])
        for i, x in zip(index, XS)
    ]
    np.testing.assert_allclose(found, rows, rtol=1e-6)


@each_mode
def test_an_index_in_common_stays_one_branch(mode):
    f = tl.vmap(lambda x, p: lax.cond(p, tnp.sin, tnp.cos, x), in_axes=(0, None), control_flow=mode)
    np.testing.assert_allclose(f(XS, True), np.sin(XS), rtol=1e-6)
    assert "select_n" not in str(tl.make_jaxpr(f)(XS, True))


def test_what_a_branch_does_to_others_stays_inside():
    """The loop in the branch ends for positive numbers only: an example that does not take it is not given to it."""

    def halve(x):
        return lax.while_loop(lambda y: abs(y) > 0.1, lambda y: tnp.where(y > 0, y / 2, y), x)

    f = tl.vmap(lambda x: lax.cond(x > 0, halve, lambda x: x, x), control_flow="select")
    np.testing.assert_allclose(f(XS), [0.0625, -1.0, 0.0625, 0.0])


@each_mode
def test_while_runs_every_example_as_long_as_its_own(mode):
    def power(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]

    n = np.array([3, 0, 2, 5])
    f = tl.vmap(power, control_flow=mode)
    np.testing.assert_allclose(f(XS, n), XS**n, rtol=1e-6)
    tangents = tl.jvp(lambda xs: f(xs, n), (XS,), (np.ones_like(XS),))[1]
    np.testing.assert_allclose(tangents, n * XS ** np.maximum(n - 1, 0), rtol=1e-6)


def test_a_loop_of_common_length_stays_one_loop():
    f = tl.vmap(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1])
    np.testing.assert_allclose(f(XS), XS**4, rtol=1e-6)
    assert "reduce_or" not in str(tl.make_jaxpr(f)(XS))


def test_explained():
    w = tnp.ones((30, 30))
    f = tl.vmap(lambda x: lax.cond(x > 0, lambda x: (x * w @ w @ w).sum(), lambda x: x, x))
    decisions = tl.explain_control_flow(f)(XS)
    assert [d.strategy for d in decisions] == ["loop"]
    assert decisions[0].examples == 4 and decisions[0].cost >= limits.COSTLY
    assert str(decisions).startswith("cond at ") and "test_batched_control_flow.py:" in str(decisions)
    assert "4 examples: loop, because an example costs" in str(decisions)
    (cheap,) = tl.explain_control_flow(tl.vmap(guarded_log))(XS)
    assert cheap.strategy == "select"
    (asked,) = tl.explain_control_flow(tl.vmap(guarded_log, control_flow="loop"))(XS)
    assert (asked.strategy, asked.reason) == ("loop", "it was asked for")
    assert str(tl.explain_control_flow(tnp.sin)(XS)) == "no control flow differs between the examples of a vmap"


def test_the_choice_is_visible_in_the_program():
    shown = {mode: str(tl.make_jaxpr(tl.vmap(guarded_log, control_flow=mode))(XS)) for mode in ("select", "loop")}
    assert "select_n" in shown["select"] and "scan" not in shown["select"]
    assert "each_cond" in shown["loop"] and "scan" in shown["loop"]


def test_no_expensive_branch_is_computed_that_nobody_takes():
    """Counted: its matrix products stand in a branch of their own, which is taken if some example takes it."""
    w = tnp.ones((300, 300))
    f = tl.vmap(lambda x: lax.cond(x > 0, lambda x: (x * w @ w).sum(), lambda x: x, x), control_flow="select")
    outside = str(tl.make_jaxpr(f)(XS)).splitlines()
    main = outside[max(i for i, line in enumerate(outside) if line.startswith("{ lambda")) :]
    assert not any("dot_general" in line for line in main)


def test_the_choice_of_an_outer_vmap_is_not_that_of_an_inner_one():
    inner = tl.vmap(guarded_log, control_flow="select")
    outer = tl.vmap(
        lambda xs: inner(xs) + lax.cond(xs[0] > 0, lambda x: x[0], lambda x: -x[0], xs), control_flow="loop"
    )
    xss = np.stack([XS, -XS])
    decisions = tl.explain_control_flow(outer)(xss)
    assert [d.strategy for d in decisions][:1] == ["select"] and "loop" in [d.strategy for d in decisions]
    wanted = np.stack([reference(xs)[0] + abs(xs[0]) for xs in xss])
    np.testing.assert_allclose(outer(xss), wanted, rtol=1e-6)


def test_unknown_mode():
    with pytest.raises(
        ValueError,
        match='vmap: control_flow must be "auto", "select" or "loop", not "both"'.replace('"both"', "'both'"),
    ):
        tl.vmap(guarded_log, control_flow="both")
