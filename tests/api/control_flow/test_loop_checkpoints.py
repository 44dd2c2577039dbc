"""Loops with the argument `checkpoint`: the same values, bit for bit, and few states in the compiled program."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import raises
from tests.stepping import stepped

W = np.linspace(0.5, 1.5, 4)
ALL = ["sqrt", "log", 7, "1GB", tl.checkpoint_policies.budget(0)]


def inputs(n: int) -> Any:
    return np.linspace(-1, 1, n * 4).reshape(n, 4)


def loop(w: Any, xs: Any, **how: Any) -> Any:
    """Pytrees of carries and elements, one of them an integer, a carry that does not change, and results."""

    def step(c: Any, x: Any) -> Any:
        s = tnp.sin(c["s"] * w + x["x"] + c["same"])
        return {"s": s, "k": c["k"] + 1, "same": c["same"]}, (s * c["k"], x["x"])

    init = {"s": 0.1 * w, "k": 0, "same": w[:1]}
    last, ys = lax.scan(step, init, {"x": xs}, **how)
    return tnp.sum(last["s"] * ys[0] + ys[1] ** 2)


def without_elements(w: Any, xs: Any, **how: Any) -> Any:
    return tnp.sum(lax.scan(lambda c, _: (tnp.sin(c * w), c), w, None, len(xs), **how)[1])


def counted(w: Any, xs: Any, **how: Any) -> Any:
    return tnp.sum(lax.fori_loop(1, len(xs) + 1, lambda k, c: tnp.sin(c * w) / k, w, **how))


def mapped(w: Any, xs: Any, **how: Any) -> Any:
    return tnp.sum(lax.map(lambda x: tnp.sin(x * w), xs, **how))


def in_batches(w: Any, xs: Any, **how: Any) -> Any:
    return mapped(w, xs, batch_size=2, **how)


def nested(w: Any, xs: Any, **how: Any) -> Any:
    """A loop in a loop, in a checkpoint and a jitted function, both with checkpoints of their own."""

    def step(c: Any, x: Any) -> Any:
        inner = tl.jit(lambda c: lax.fori_loop(0, 5, lambda _, c: tnp.sin(c * w), c, **how))
        return tnp.exp(-inner(c) * x), None

    return tl.checkpoint(lambda w: tnp.sum(lax.scan(step, w, xs, **how)[0]))(w)


def random(w: Any, xs: Any, **how: Any) -> Any:
    """Dropout, by keys that are carried and keys that are elements."""

    def step(c: Any, key: Any) -> Any:
        own, x = c
        own, drop = tl.random.split(own)
        kept = tl.random.bernoulli(drop, 0.7, (4,)) & tl.random.bernoulli(key, 0.9, (4,))
        return (own, tnp.where(kept, tnp.sin(x * w), x)), None

    return tnp.sum(lax.scan(step, (tl.random.key(1), w), tl.random.split(tl.random.key(0), len(xs)), **how)[0][1])


LOOPS = [loop, without_elements, counted, mapped, in_batches, nested, random]


def assert_equal(found: Any, right: Any) -> None:
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(right), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("f", LOOPS)
@pytest.mark.parametrize("checkpoint", ALL, ids=str)
def test_values_and_gradients_bit_for_bit(f: Any, checkpoint: Any):
    of = lambda how: stepped(tl.value_and_grad(lambda w, xs: f(w, xs, **how), (0, 1)), W, inputs(13))  # noqa: E731
    assert_equal(of({"checkpoint": checkpoint}), of({}))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoint", ["sqrt", "log", 3])
def test_short_loops(n: int, reverse: bool, checkpoint: Any):
    of = lambda **how: stepped(  # noqa: E731
        tl.value_and_grad(lambda w, xs: loop(w, xs, reverse=reverse, **how), (0, 1)), W, inputs(n)
    )
    assert_equal(of(checkpoint=checkpoint), of())


@settings(max_examples=15, deadline=None)  # each is traced and computed step by step
@given(st.integers(2, 40), st.integers(1, 20), st.booleans(), st.sampled_from([1, 2, True]))
def test_any_number_of_steps_and_states(n: int, states: int, reverse: bool, unroll: Any):
    of = lambda **how: stepped(  # noqa: E731
        tl.grad(lambda w, xs: loop(w, xs, reverse=reverse, unroll=unroll, **how), (0, 1)), W, inputs(n)
    )
    assert_equal(of(checkpoint=states), of())


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64"])
def test_dtypes_of_carries(dtype: str):
    def f(w: Any, **how: Any) -> Any:
        return tnp.sum(tnp.abs(lax.scan(lambda c, _: (tnp.sin(c * w), None), w, None, 11, **how)[0]).astype("float32"))

    w = tnp.asarray(0.5 + inputs(2), dtype)
    assert_equal(stepped(tl.grad(lambda w: f(w, checkpoint="log")), w), stepped(tl.grad(f), w))


TRANSFORMS = {
    "jvp": lambda f: lambda w, xs: tl.jvp(f, (w, xs), (xs[0], 2.0 * xs)),
    "vmap of grad": lambda f: lambda w, xs: tl.vmap(tl.grad(f), (0, None))(tnp.stack([w, 0.5 * w]), xs),
    "grad of vmap": lambda f: tl.grad(lambda w, xs: tnp.sum(tl.vmap(f, (0, None))(tnp.stack([w, 0.5 * w]), xs))),
    "hessian": tl.hessian,
    "grad of grad": lambda f: tl.grad(lambda w, xs: tnp.sum(tnp.sin(tl.grad(f)(w, xs)))),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("checkpoint", ["sqrt", "log"])
def test_transforms(transform: str, checkpoint: Any):
    apply = TRANSFORMS[transform]
    found, right = (
        stepped(apply(lambda w, xs, how=how: loop(w, xs, **how)), W, inputs(9))
        for how in ({"checkpoint": checkpoint}, {})
    )
    for x, y in zip(tl.tree.leaves(found), tl.tree.leaves(right), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)  # float64, cotangents added in another order


# ---- memory --------------------------------------------------------------------------------------------------


def states(n: int, checkpoint: Any) -> float:
    """The temporaries of the compiled gradient, in states of 4096 elements."""

    def f(w: Any, c: Any) -> Any:
        return tnp.sum(lax.scan(lambda c, _: (tnp.sin(c * w), None), c, None, n, checkpoint=checkpoint)[0])

    shape = tl.ShapeDtypeStruct((4096,), np.float32)
    compiled = tl.jit(tl.grad(f, (0, 1))).lower(tl.ShapeDtypeStruct((), np.float32), shape).compile()
    return compiled.memory_analysis().temp_size_in_bytes / (4096 * 4)


@pytest.mark.parametrize(
    ("n", "checkpoint", "most"), [(64, "log", 6), (4096, "log", 12), (4096, 1, 1), (4096, 48, 48), (4095, 128, 128)]
)
def test_states_of_compiled_programs(n: int, checkpoint: Any, most: int):
    """With the carry at hand and its cotangent; the rest are scalars, and the positions of the states."""
    assert states(n, checkpoint) <= most + 2.2


@pytest.mark.parametrize(("n", "checkpoint", "most"), [(128, "log", 7), (127, "log", 7), (1024, 32, 32)])
@pytest.mark.parametrize("reverse", [False, True])
def test_elements_are_read_from_the_arrays_that_hold_them(n: int, checkpoint: Any, most: int, reverse: bool):
    """No chunk of them is copied, nor of their cotangents: what is live is states, and a few values of a step."""

    def f(w: Any, xs: Any) -> Any:
        step = lambda c, x: (tnp.tanh(c * w + x), None)  # noqa: E731
        return tnp.sum(lax.scan(step, xs[0], xs, reverse=reverse, checkpoint=checkpoint)[0])

    given = tl.ShapeDtypeStruct((), np.float32), tl.ShapeDtypeStruct((n, 4096), np.float32)
    found = tl.jit(tl.grad(f, (0, 1))).lower(*given).compile().memory_analysis().temp_size_in_bytes
    # the carry at hand, its cotangent, values of a step; copies would be 128
    assert found <= (most + 6) * 4096 * 4


def test_sqrt_grows_as_the_root():
    """The residuals of a step are two states here: c w and its cosine."""
    assert states(4096, "sqrt") <= 3 * 64 + 4
    assert states(4096, "sqrt") <= 8.5 * states(64, "sqrt")


def test_residuals():
    f = lambda w, xs: without_elements(w, xs, checkpoint="log")  # noqa: E731
    found = tl.residual_bytes(tl.unzip(f, W, inputs(256)))
    # 8 carries, the last one but one, and w; a number of steps with each of the carries, and again as a carry
    assert found == 10 * W.nbytes + 17 * 4


# ---- effects -------------------------------------------------------------------------------------------------


def test_effects_happen_once(capfd: Any):
    """What is computed again does not print again, and reads the results of callbacks that were made."""
    calls = []

    def called(c: Any) -> Any:
        calls.append(float(c))
        return np.float32(c)

    def f(w: Any, **how: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            tl.debug.print("c is {}", c)
            y = tl.experimental.io_callback(called, tl.ShapeDtypeStruct((), np.float32), lax.stop_gradient(c))
            return tnp.sin(c * w) * y, None

        return lax.scan(step, w, None, 9, **how)[0]

    found = []
    for how in ({}, {"checkpoint": "log"}, {"checkpoint": "sqrt"}, {"checkpoint": 6}):
        calls.clear()
        found.append((float(tl.grad(lambda w, how=how: f(w, **how))(1.5)), [*calls], capfd.readouterr().out))
    assert [x[1:] for x in found] == [found[0][1:]] * 4
    assert len(found[0][1]) == 9
    np.testing.assert_allclose([x[0] for x in found], found[0][0], rtol=1e-6)  # float32


def test_without_jit():
    with tl.disable_jit():
        assert_equal(counted(W, inputs(3), checkpoint="sqrt"), counted(W, inputs(3)))


# ---- errors --------------------------------------------------------------------------------------------------

WANTED = (
    "checkpoint must be 'sqrt', 'log', a number of states, or a budget, which is a text such as '2GB', a part from 0.0 "
    "to 1.0, or tl.checkpoint_policies.budget(limit); not "
)


@pytest.mark.parametrize(
    ("kind", "checkpoint", "found"),
    [
        (ValueError, "root", "'root'"),
        (ValueError, -1, "-1, and a loop saves one state at least"),
        (ValueError, 0, "0, and a loop saves one state at least"),
        (ValueError, 1.5, "1.5"),
        (ValueError, np.float32(-0.5), "-0.5"),
        (TypeError, True, "True of type bool"),
        (TypeError, [3], "[3] of type list"),
        (TypeError, np.arange(2), "array([0, 1]) of type ndarray"),
    ],
)
def test_no_checkpoints(kind: Any, checkpoint: Any, found: str):
    for f, who in ((loop, "scan"), (counted, "fori_loop"), (mapped, "map")):
        with raises(kind, f"{who}: {WANTED}{found}."):
            f(W, inputs(3), checkpoint=checkpoint)


def test_numbers_of_states_are_known():
    with raises(TypeError, f"scan: {WANTED}int32[], traced, for schedules are planned before they run."):
        tl.jit(lambda k: loop(W, inputs(3), checkpoint=k))(np.int32(3))


def test_policies_of_operations_are_none():
    with pytest.raises(TypeError, match=r"not <function dots_saveable .* of type function\."):
        loop(W, inputs(3), checkpoint=tl.checkpoint_policies.dots_saveable)


def test_budgets_that_cannot_be_kept():
    with pytest.raises(ValueError, match="scan, checkpoint=9: 9 bytes are too few"):
        tl.grad(lambda w: loop(w, inputs(20), checkpoint="9B"))(W)


def test_traced_bounds():
    advice = "\n  Give bounds that are Python integers, such as static arguments of jit, or checkpoints=k, "
    advice += "a number of states."
    why = "fori_loop: checkpoint='sqrt' is planned for a known number of steps, but "

    def f(lower: Any, upper: Any) -> Any:
        return lax.fori_loop(lower, upper, lambda _, c: tnp.sin(c), 1.0, checkpoint="sqrt")

    with raises(ValueError, f"{why}lower is 0, and upper is int32[], traced.{advice}"):
        tl.jit(f, static_argnums=0)(0, np.int32(3))
    with raises(ValueError, f"{why}lower is float32[], traced, and upper is 3.0.{advice}"):
        tl.jit(f, static_argnums=1)(np.float32(0), 3.0)


@pytest.mark.parametrize("how", [{"checkpoint": "log"}, {"checkpoint": 2}, {"checkpoint": "sqrt"}])
def test_examples_go_back_together(how: dict[str, Any]):
    """The numbers of steps are the same for all examples, so no slot is read or written for each of them."""

    def f(x: Any, w: Any) -> Any:
        return tnp.sum(lax.fori_loop(0, 6, lambda i, c: tnp.sin(c) * (i * w), x, **how))

    program = str(tl.make_jaxpr(tl.vmap(tl.grad(f), (0, None)))(np.ones((2, 2)), 0.3))
    assert "gather" not in program and "scatter" not in program and "reduce_or" not in program
