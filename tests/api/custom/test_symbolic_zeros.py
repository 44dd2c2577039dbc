"""Symbolic zeros: what rules that ask for them are told, and may return."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.custom_derivatives import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from tests.api.comparing import each_way
from tests.close import small_programs as close
from tests.messages import raises

X, Y = np.array(0.5), np.array(3.0)


# ---- tangents --------------------------------------------------------------------------------------------------


def noting():
    """A function, and what its rule saw."""
    seen = []

    @tl.custom_jvp
    def f(x, p):
        return x * p["a"], p["n"] + 1

    def rule(primals, tangents):
        (x, p), (dx, dp) = primals, tangents
        seen.append([type(t) is SymbolicZero for t in (dx, dp["a"], dp["n"])])
        zero = type(dx) is SymbolicZero
        assert not zero or (dx.shape, dx.dtype, dx.ndim, dx.size) == ((), np.float64, 0, 1)
        value = f(x, p)
        return value, (dp["a"] * x if zero else dx * p["a"], SymbolicZero.from_primal_value(value[1]))

    f.defjvp(rule, symbolic_zeros=True)
    return f, seen


@pytest.mark.parametrize("way", [lambda f: f, tl.jit])
def test_symbolic_zeros(way):
    f, seen = noting()
    p = {"a": Y, "n": 2}
    close(tl.grad(lambda x: way(f)(x, p)[0])(X), 3)
    assert seen[0] == [False, True, True]
    del seen[:]
    close(tl.jvp(lambda a: way(f)(X, {"a": a, "n": 2})[0], (Y,), (2.0,))[1], 1)
    assert seen[0] == [True, False, True]


def test_symbolic_zeros_that_are_returned():
    step = tl.custom_jvp(lambda x: tnp.floor(x))
    step.defjvp(lambda p, t: (step(*p), SymbolicZero.from_primal_value(p[0])), symbolic_zeros=True)
    close(tl.grad(lambda x: step(x) * x)(np.array(2.5)), 2)
    close(tl.jvp(tl.jit(step), (2.5,), (1.0,))[1], 0)


def test_symbolic_zeros_are_no_arrays():
    f = tl.custom_jvp(lambda x, y: (x, y))
    f.defjvp(lambda p, t: (f(*p), (np.asarray(t[1]), t[0])), symbolic_zeros=True)
    message = "SymbolicZero(f64[]) is no array: a rule with symbolic_zeros=True must look for it before it computes."
    with raises(TypeError, message):
        tl.jvp(lambda x: f(x, Y), (X,), (1.0,))


# ---- cotangents ------------------------------------------------------------------------------------------------


def noting_cotangents():
    """A function of two arguments with two results, and what its rules saw."""
    seen = []

    @tl.custom_vjp
    def f(x, p):
        return {"product": x * p["a"], "x": x}

    def fwd(x, p):
        assert type(x) is CustomVJPPrimal
        seen.append([x.perturbed, p["a"].perturbed])
        x, p = custom_vjp_primal_tree_values((x, p))
        return f(x, p), (x, p["a"])

    def bwd(residuals, cts):
        x, a = residuals
        zeros = [type(cts[name]) is SymbolicZero for name in ("product", "x")]
        seen.append(zeros)
        if zeros[0]:
            return cts["x"], {"a": cts["product"]}
        return cts["product"] * a, {"a": None if zeros[1] else cts["product"] * x}

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f, seen


@each_way
def test_symbolic_cotangents(way):
    f, seen = noting_cotangents()
    close(tl.grad(lambda x: way(f)(x, {"a": Y})["product"])(X), 3)
    assert seen[0] == [True, False] and [False, True] in seen
    del seen[:]
    close(tl.grad(lambda a: way(f)(X, {"a": a})["x"])(Y), 0)
    assert seen[0] == [False, True] and [True, False] in seen
    close(tl.jvp(lambda x: way(f)(x, {"a": Y})["product"], (X,), (2.0,))[1], 6)


def test_symbolic_cotangents_with_arrays_of_ones_own():
    w = np.array([2.0, 3.0])
    f = tl.custom_vjp(lambda x: (x * w, x))

    def bwd(_, cts):
        return (cts[1] if type(cts[0]) is SymbolicZero else 10 * w * cts[0],)

    f.defvjp(lambda x: (f(x.value), None), bwd, symbolic_zeros=True)
    for g in (f, tl.jit(f)):
        close(tl.grad(lambda x, g=g: tnp.sum(g(x)[0]))(np.ones(2)), 10 * w)
        close(tl.grad(lambda x, g=g: tnp.sum(g(x)[1]))(np.ones(2)), [1, 1])
    close(tl.grad(lambda x: tnp.sum(tl.vmap(f)(x)[0]))(np.ones((1, 2))), [10 * w])


def test_symbolic_cotangents_of_mapped_calls():
    seen = []
    f = tl.custom_vjp(lambda x, y: (lax.psum(x * y, "i"), 2 * y))

    def bwd(residuals, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        x, y = residuals
        a, b = [0 * y if type(ct) is SymbolicZero else ct for ct in cts]
        a = lax.psum(a, "i")
        return y * a, x * a + 2 * b

    f.defvjp(lambda x, y: (f(x.value, y.value), (x.value, y.value)), bwd, symbolic_zeros=True)
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0) + 1

    def total(k, x, y):
        inner = tl.vmap(f, in_axes=(0, None), axis_name="j")  # over the rows
        return tnp.sum(tl.vmap(inner, in_axes=(1, 0), out_axes=1, axis_name="i")(x, y)[k])

    # The sum over the axis i is each of the three examples' result; the result of each row is counted.
    close(tl.grad(total, (1, 2))(0, x, y), (np.tile(3 * y, (2, 1)), 3 * x.sum(0)))
    assert seen[-1] == [False, True]
    close(tl.grad(total, (1, 2))(1, x, y), (np.zeros((2, 3)), np.full(3, 4.0)))
    assert seen[-1] == [True, False]


def test_symbolic_zeros_are_of_tangent_types():
    assert repr(SymbolicZero.from_primal_value(np.ones((2, 3), np.float32))) == "SymbolicZero(f32[2,3])"
    zeros = zero_from_primal({"x": X, "n": 3})
    assert (zeros["x"].dtype == np.float64 and zeros["n"].dtype.names is not None) or zeros["n"].dtype != np.int32
    assert type(zero_from_primal(X, symbolic_zeros=True)) is SymbolicZero
    with raises(TypeError, "custom_vjp_primal_tree_values: 3 of type int is no CustomVJPPrimal."):
        custom_vjp_primal_tree_values([3])
