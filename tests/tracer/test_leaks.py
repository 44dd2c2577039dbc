"""Traced arrays that outlive their functions are found where they are held, and nothing else is."""

import gc
from types import SimpleNamespace

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

RUNS = {
    "jit": lambda f, x: tl.jit(f)(x),
    "vmap": lambda f, x: tl.vmap(f)(x),
    "grad": lambda f, x: tl.grad(lambda x: f(x).sum())(x),
    "jvp": lambda f, x: tl.jvp(f, (x,), (x,)),
    "scan": lambda f, x: lax.scan(lambda c, y: (c, f(y)), 0.0, x),
    "cond": lambda f, x: lax.cond(x[0] == 0, f, lambda x: x, x),
}


@pytest.fixture(autouse=True)
def few_objects():
    """Leave out of every search what is there already: in a process that ran other tests each would take seconds."""
    gc.freeze()


@pytest.mark.parametrize("name", RUNS)
def test_leaks_are_found(name: str):
    kept, x = [], tnp.arange(3.0)

    def f(x):
        kept.append(x)
        return x * 2

    error = tl.errors.UnexpectedTracerError
    with (
        tl.checking_leaks(),
        pytest.raises(error, match=r"outlives its function: float32\[.*\n  It is held by"),
    ):
        RUNS[name](f, x)
    kept.clear()
    RUNS[name](f, x)


def test_holders_are_named():
    thing = SimpleNamespace(x=None)

    def f(x):
        thing.x = {"x": [tnp.sin(x)]}
        return x

    def g(x):
        held = []
        lax.scan(lambda c, y: (held.append(y), (c, y))[1], 0.0, x)
        return x

    with tl.check_tracer_leaks(True):
        with pytest.raises(tl.errors.UnexpectedTracerError, match="held by an object of type SimpleNamespace"):
            tl.jit(f)(1.0)
        with pytest.raises(tl.errors.UnexpectedTracerError, match="held by the function <lambda> at"):
            tl.jit(g)(tnp.ones(2))


scaled = tl.custom_vjp(lambda x, n: x * n, nondiff_argnums=(1,))
scaled.defvjp(lambda x, n: (x * n, n), lambda n, residual, ct: (ct * residual,))


def test_nothing_else_is():
    def f(x):
        ref = tl.new_ref(x)
        c, ys = lax.scan(lambda c, y: (ref.addupdate(y, 0), (c + tnp.sin(y), c))[1], 0.0, x)
        z = lax.cond(c > 0, lambda: c * x, lambda: x)
        q = tl.checkpoint(lambda x: tnp.sin(x) * c)(x)
        u = tl.vmap(lambda y: y * c + scaled(y, c))(x)
        k = tl.jit(lambda y: y + c)(x) + tl.grad(lambda v: (v * c).sum())(x)
        return (z + ys + q + u + k + ref[...]).sum()

    with tl.checking_leaks():
        for run in (f, tl.jit(f), tl.jit(tl.grad(f))):
            run(tnp.arange(3.0))
        tl.vmap(f)(tnp.ones((2, 3)))
