"""Choices around programs, nested: masks sink into them, one for each result, whatever the depth."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

pytestmark = pytest.mark.usefixtures("eager_by_steps")

Function = Callable[[Any], Any]
X = np.array([0.0, 0.5, -0.5, 1.5, 2.0])


def twice(g: Function) -> Function:
    h = tl.jit(g)
    return lambda x: tnp.where(x > 0, h(tnp.cos(x)), h(x))


# What is put around a function of a vector.
STEPS: dict[str, Callable[[Function], Function]] = {
    "call": lambda g: lambda x: tnp.where(x > 0, tl.jit(g)(tnp.cos(x)), 2 * x),
    "call twice": twice,
    "checkpoint": lambda g: lambda x: tnp.where(x > 0, tl.checkpoint(g)(tnp.cos(x)), 2 * x),
    "loop": lambda g: lambda x: lax.scan(lambda c, _: (tnp.where(c > 0, g(c), c), None), x, None, length=2)[0],
    "stacked": lambda g: lambda x: lax.scan(lambda c, e: (c, tnp.where(e > 0, g(e), c)), x[0], x)[1],
    "branch": lambda g: lambda x: tnp.where(x > 0, lax.cond(x[1] > 0, g, lambda x: 2 * x, x), 2 * x),
    "branch alone": lambda g: lambda x: lax.cond(x[1] > 0, g, lambda x: 2 * x, x),
    "branches mapped": lambda g: lambda x: tl.vmap(lambda e: lax.cond(e > 0, g, lambda e: 2 * e, e))(x),
}


def nested(name: str, depth: int, inner: Function) -> Function:
    """Elements are nested as they are; the step is around them."""
    if name == "branches mapped":
        f = reduce(lambda g, _: lambda e: lax.cond(e > 0, g, lambda e: 2 * e, e), range(depth - 1), inner)
        return STEPS[name](f)
    if name == "stacked":
        f = reduce(lambda g, _: lambda e: tnp.where(e > 0, tl.jit(g)(e), 2 * e), range(depth - 1), inner)
        return STEPS[name](f)
    return reduce(lambda g, _: STEPS[name](g), range(depth), inner)


@pytest.mark.parametrize("name", [name for name in STEPS if name != "call twice"])
def test_programs_grow_with_the_depth(name: str):
    """Lists of residuals are as long as programs are deep: with them it is a little more than twice; 3 is not 4.

    What is called twice at every depth has 2 ** depth residuals, as it has work.
    """
    sizes = []
    for depth in (4, 8):
        f = nested(name, depth, lambda x: tnp.sin(x) * x)
        sizes.append(tl.program_size(tl.make_jaxpr(tl.grad(lambda x: tnp.sum(f(x))))(X)))  # noqa: B023
    assert sizes[1] <= 3 * sizes[0]


@pytest.mark.parametrize("name", STEPS)
def test_work_is_that_of_the_function(name: str):
    for depth in (1, 3, 6):
        unzipped = tl.unzip(nested(name, depth, lambda x: tnp.sin(x) * x), X)
        assert tl.work(unzipped.linear) <= 4 * tl.work(unzipped.primal)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("depth", [1, 3])
def test_what_is_discarded_does_no_harm(name: str, depth: int):
    """The function inside has infinite derivatives where it is not chosen."""
    f = nested(name, depth, lambda x: tnp.where(x > 0, tnp.sqrt(x) * tnp.log(x), x))
    t = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    pushed, pulled = tl.jvp(f, (X,), (t,))[1], tl.vjp(f, X)[1](t)[0]
    np.testing.assert_allclose(np.vdot(t, pushed), np.vdot(pulled, t), rtol=1e-12)
    np.testing.assert_allclose(tl.jit(lambda x: tl.vjp(f, x)[1](t)[0])(X), pulled, rtol=1e-12)


def test_masks_of_positions_inside_of_bodies():
    """What a body compares with a number may be an index, which is made of nothing."""

    def f(x):
        return tnp.tanh(tnp.where(tnp.arange(x.shape[1]) == 1, x, 0.0))

    x = np.array([[-0.5]])
    again = tl.checkpoint(f, policy=tl.checkpoint_policies.budget(0))
    assert tl.jit(lambda x: tl.vjp(again, x)[1](x)[0])(x) == 0


def test_a_branch_of_a_step_that_numbers_alone_choose():
    """The chosen branch has no axis of steps, though what it is given has one."""

    def step(c, p):
        k = tnp.arange(1).reshape(()).astype("int32")
        y = lax.switch(k, [lambda a: a * tnp.sin(p), lambda a: a[0] * a, tnp.cos], c)
        return 0.5 * y + c, y * p

    def unrolled(c):
        ys = list[Any]()
        for p in x:
            c, y = step(c, p)
            ys.append(y)
        return c, tnp.stack(ys)

    def slope(f):
        loss = lambda x: sum(tnp.sum(tnp.sin(y)) for y in f(x))  # noqa: E731
        return tl.grad(lambda x: tnp.sum(tl.grad(loss)(x) ** 2))

    x = np.arange(1.0, 4)
    loop = lambda c: lax.scan(step, c, x)  # noqa: E731
    np.testing.assert_allclose(tl.jit(slope(loop))(x), slope(unrolled)(x), rtol=1e-9)
