"""Loops in chunks: the same values, and as many states live at once as twice the root of the number of steps."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters.residuals import chunks
from tapeless.interpreters.residuals.chunks import scans_in_chunks
from tapeless.tracer.primitives.checkpoint import checkpoint_p
from tapeless.tracer.primitives.control_flow import scan_p
from tests.stepping import by_steps, in_steps, stepped

LEAST = tl.checkpoint_policies.budget(0)
W = np.linspace(0.5, 1.5, 4)


def loop(w: Any, xs: Any, reverse: bool = False) -> Any:
    """A loop with a carry, inputs of each step and results of each step."""
    last, ys = lax.scan(lambda c, x: (tnp.sin(c * w + x), c * x), 0.1 * w, xs, reverse=reverse)
    return tnp.sum(last) + tnp.sum(ys * ys)


def inputs(length: int) -> Any:
    return np.linspace(-1, 1, length * 4).reshape(length, 4)


def without_inputs(w: Any, xs: Any) -> Any:
    return tnp.sum(lax.fori_loop(0, xs.shape[0], lambda k, c: tnp.sin(c * w) + 0.1 * k, w))


def nested(w: Any, xs: Any) -> Any:
    """A loop whose steps are loops and branches."""

    def step(c: Any, x: Any) -> Any:
        c = lax.fori_loop(0, 3, lambda _, c: tnp.sin(c * w), c)
        return lax.cond(c[0] > 0.2, lambda c: tnp.exp(-c * x), lambda c: c * w, c), None

    return tnp.sum(lax.scan(step, w, xs)[0])


def called(w: Any, xs: Any) -> Any:
    """Loops in a jitted function, that is called twice, and in a branch."""
    inner = tl.jit(loop)
    return lax.cond(w[0] > 0, lambda w: inner(w, xs), lambda w: w[0], w) + inner(2.0 * w, xs)


LOOPS = {"loop": loop, "reverse": lambda w, xs: loop(w, xs, True), "none": without_inputs, "nested": nested}


@pytest.mark.parametrize(("length", "saved", "loops"), [(2, 64, 1), (3, 3000, 1), (12, 400, 1), (61, 2000, 2)])
@pytest.mark.parametrize("name", LOOPS)
def test_values_bit_for_bit(name: str, length: int, saved: int, loops: int):
    """Also where steps are left over, as no number of steps near the best divides all."""
    closed = tl.make_jaxpr(LOOPS[name])(W, inputs(length))
    changed = scans_in_chunks(closed.jaxpr, lambda eqn: saved)
    args = [*closed.consts, W, inputs(length)]
    np.testing.assert_array_equal(by_steps(changed, args), by_steps(closed.jaxpr, args))
    bodies = [eqn.params["jaxpr"] for eqn in changed.eqns if eqn.primitive is scan_p]
    assert len(bodies) == loops
    assert any(eqn.primitive is checkpoint_p for eqn in bodies[0].eqns + bodies[-1].eqns)


def test_programs_that_save_nothing_stay_as_they_are():
    jaxpr = tl.make_jaxpr(loop)(W, inputs(12)).jaxpr
    assert scans_in_chunks(jaxpr, lambda eqn: 0) is jaxpr


@pytest.mark.parametrize("length", [7, 100, 1000, 4096])
@pytest.mark.parametrize("ratio", [1, 2, 5])
def test_a_chunk_balances_carries_and_residuals(length: int, ratio: int):
    """At most 1.7 times as many bytes as at the best number of steps, which may not divide the length."""

    def live(k: int) -> float:
        return -(-length // k) + ratio * k

    found = chunks._steps(length, ratio * length, 1)
    assert live(found) <= 1.7 * min(map(live, range(1, length + 1))) + ratio


TRANSFORMS = {
    "grad": lambda f: tl.grad(f, (0, 1)),
    "jvp": lambda f: lambda w, xs: tl.jvp(f, (w, xs), (xs[0], 2.0 * xs)),
    "vmap of grad": lambda f: lambda w, xs: tl.vmap(tl.grad(f), (0, None))(tnp.stack([w, 0.5 * w]), xs),
    "grad of vmap": lambda f: tl.grad(lambda w, xs: tnp.sum(tl.vmap(f, (0, None))(tnp.stack([w, 0.5 * w]), xs))),
    "hessian": lambda f: tl.hessian(f),
    "grad of grad": lambda f: tl.grad(lambda w, xs: tnp.sum(tnp.sin(tl.grad(f)(w, xs)))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", [loop, nested, called, without_inputs])
def test_transforms(f: Any, transform: str):
    apply = TRANSFORMS[transform]
    found, right = (stepped(apply(g), W, inputs(13)) for g in (tl.checkpoint(f, policy=LEAST), f))
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(right), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)  # float64, cotangents added in another order


def test_inside_of_loops_and_branches():
    """A checkpoint in a body is given the program of one step."""

    def f(again: Any) -> Any:
        g = tl.checkpoint(without_inputs, policy=LEAST) if again else without_inputs

        def total(w: Any, xs: Any) -> Any:
            step = lambda c, x: (c + g(c * x, xs), None)  # noqa: E731
            return lax.cond(w[0] > 0, lambda w: tnp.sum(lax.scan(step, w, xs)[0]), lambda w: w[0], w)

        return tl.grad(total)

    xs = inputs(9)
    np.testing.assert_allclose(in_steps(f(True), W, xs)(W, xs), in_steps(f(False), W, xs)(W, xs), rtol=1e-12)
