"""Gradients within a memory budget, asked for by an argument of grad and value_and_grad."""

import functools
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import place, raises

WS, X = [np.full((8, 8), 0.1, np.float32)] * 16, np.ones((64, 8), np.float32)


def layers(ws: Any, x: Any, name: str = "tanh", *, scale: Any = 1.0) -> Any:
    for w in ws:
        x = getattr(tnp, name)(x @ w)
    return tnp.sum(x) * scale


def test_the_program_is_that_of_a_checkpoint():
    def by_hand(ws: Any, x: Any) -> Any:
        rest = functools.wraps(layers)(lambda ws: layers(ws, x))
        return tl.grad(tl.checkpoint(rest, policy=tl.checkpoint_policies.budget("16 kB")))(ws)

    found = tl.make_jaxpr(tl.grad(layers, memory_budget="16 kB"))(WS, X)
    assert str(found) == str(tl.make_jaxpr(by_hand)(WS, X)).replace("by_hand", found.jaxpr.name)
    assert str(found) != str(tl.make_jaxpr(tl.grad(layers, memory_budget=None))(WS, X))


def called(f: Any) -> Any:
    """Gradients with arguments of all kinds: other positions, text, keywords, and none."""
    return [
        f(layers, (0, 1), memory_budget=0)(WS, X, "sin", scale=2.0),
        f(layers, 1, memory_budget=0.5)(WS, X, name="cos"),
        f(lambda o, w: tnp.sum(w * o["s"]), 1, memory_budget=0)({"s": 2.0, "mode": "fast"}, X),
        f(lambda *xs: tnp.sum(xs[1] ** 2 * xs[0]), 1, memory_budget=0)(X, X),
        f(lambda x: (tnp.sum(x**2), {"twice": 2 * x}), has_aux=True, memory_budget="1kB")(X),
        f(lambda x: (tnp.sum(x**2), {"mode": "fast", "n": 3, "f": np.sin}), has_aux=True, memory_budget=0)(X),
    ]


@pytest.mark.parametrize("f", [tl.grad, tl.value_and_grad])
def test_values(f: Any):
    right = called(lambda *args, memory_budget, **kwargs: f(*args, **kwargs))
    for x, y in zip(tl.tree.leaves(called(f)), tl.tree.leaves(right), strict=True):
        if isinstance(y, str) or callable(y):
            assert x == y
        else:  # float32, compiled as one program and one by one
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_under_other_transformations():
    def f(x: Any) -> Any:
        return layers(WS[:3], x[None])

    g = tl.grad(f, memory_budget=0)
    np.testing.assert_allclose(tl.jit(tl.vmap(g))(X), tl.vmap(tl.grad(f))(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tl.jacfwd(g)(X[0]), tl.hessian(f)(X[0]), rtol=1e-5, atol=1e-6)


def test_jit_limits_the_gradients_in_a_function_and_its_own():
    gradient = tl.grad(layers, (0, 1))
    plain, bounded = tl.jit(gradient).lower(WS, X), tl.jit(tl.grad(layers, (0, 1), memory_budget=0)).lower(WS, X)
    temporaries = bounded.compile().memory_analysis().temp_size_in_bytes
    assert temporaries < plain.compile().memory_analysis().temp_size_in_bytes
    own = tl.jit(tl.grad(layers, (0, 1), memory_budget="1MB"))
    for f, limited in (
        (tl.jit(gradient, memory_budget=0), True),
        (tl.jit(tl.jit(gradient), memory_budget=0), True),
        (tl.jit(tl.grad(tl.jit(layers, memory_budget=0), (0, 1))), True),
        (tl.jit(gradient), False),
        (tl.jit(own, memory_budget=0), False),
    ):
        found = f.lower(WS, X).compile().memory_analysis().temp_size_in_bytes
        assert (found <= 1.05 * temporaries) is limited  # a call keeps other copies of arguments than a checkpoint
    with tl.config.scope(disable_jit=True):
        known = tl.jit(gradient, memory_budget=0)(WS, X)[1]
    np.testing.assert_allclose(known, gradient(WS, X)[1], rtol=1e-5, atol=1e-6)


def test_a_setting_limits_gradients_without_a_limit_of_their_own():
    with tl.config.scope(memory_budget="16 kB"):
        found = str(tl.make_jaxpr(tl.grad(layers))(WS, X))
    assert found == str(tl.make_jaxpr(tl.grad(layers, memory_budget="16 kB"))(WS, X))
    assert found != str(tl.make_jaxpr(tl.grad(layers))(WS, X))
    with raises(ValueError, "config, memory_budget: expected a number of bytes, not -1, which is negative."):
        tl.config.update("memory_budget", -1)
    with raises(ValueError, "jit, memory_budget: expected a number of bytes, not -1, which is negative."):
        tl.jit(layers, memory_budget=-1)
    with (
        tl.config.scope(memory_budget=1),
        pytest.raises(ValueError, match="config, memory_budget=1: 1 bytes are"),
    ):
        tl.grad(layers)(WS, X)
    with tl.config.scope(memory_budget=1.0):  # the whole, not a byte
        tl.grad(layers)(WS, X)


def test_a_part_that_is_set_for_all_gradients_is_kept_as_nearly_as_they_can():
    def small(x: Any) -> Any:
        return tnp.sum(tnp.tanh(tnp.tanh(tnp.tanh(x))))

    with pytest.raises(ValueError, match=r"grad, memory_budget=0\.1: 153 bytes are too few"):
        tl.grad(small, memory_budget=0.1)(X[:16])
    with pytest.raises(ValueError, match=r"jit, memory_budget=0\.1: 153 bytes are too few"):
        tl.jit(tl.grad(small), memory_budget=0.1)(X[:16])
    with tl.config.scope(memory_budget=0.1):
        nearly = tl.make_jaxpr(tl.grad(small))(X[:16])
        with pytest.raises(ValueError, match=r"grad, memory_budget=0\.1"):
            tl.grad(small, memory_budget=0.1)(X[:16])
    assert str(nearly) == str(tl.make_jaxpr(tl.grad(small, memory_budget=0))(X[:16]))


def test_messages_count_the_arguments_of_the_user():
    def f(a: Any, x: Any, b: Any) -> Any:
        return tnp.sum(x * b) if tnp.sum(x) > 0 else x

    for argnums, which in ((1, "x, argument 1 of f"), ((2, 1), "x, argument 1 of f")):
        with pytest.raises(tl.errors.TracerBoolConversionError, match=f"It depends on {which}"):
            tl.grad(f, argnums, memory_budget=0)("text", X, X)


def test_what_a_function_reads_is_what_it_is_at_the_call():
    """No trace is kept, as none is without a budget."""

    class Model:
        scale = 2.0

        def loss(self, x: Any, n: Any = 64, doubled: Any = False, mask: Any = None) -> Any:
            rows = x[: int(n)] if mask is None else x[np.nonzero(mask)]
            return tnp.sum(rows * self.scale) * (2 if doubled else 1)

    model = Model()
    g = tl.grad(model.loss, memory_budget=0)
    assert float(g(X)[0, 0]) == 2
    model.scale = 5.0
    assert float(g(X)[0, 0]) == 5
    assert float(g(X, 3, True)[2, 0]) == 10 and float(g(X, 3.0, mask=X[:, 0] > 2)[0, 0]) == 0
    step = tl.jit(lambda x, doubled: tl.grad(model.loss)(x, 2, doubled), static_argnames="doubled", memory_budget=0)
    assert [float(step(X, doubled=doubled)[0, 0]) for doubled in (False, True)] == [5, 10]


@pytest.mark.parametrize(
    ("kind", "budget", "text"),
    [
        (ValueError, "2 gigs", "expected a number of bytes such as '2GB' or '512 MiB', not '2 gigs'."),
        (ValueError, -1, "expected a number of bytes, not -1, which is negative."),
        (ValueError, 1.5, "expected a part from 0.0 to 1.0, not 1.5. Give a number of bytes as an integer."),
        (
            TypeError,
            [3],
            "expected a number of bytes, a text such as '2GB', or a part from 0.0 to 1.0, not [3] of type list.",
        ),
    ],
)
def test_no_budgets(kind: Any, budget: Any, text: str):
    for f in (tl.grad, tl.value_and_grad):
        with raises(kind, f"{f.__name__}, memory_budget: {text}"):
            f(layers, memory_budget=budget)


def test_errors_name_the_function_and_its_arguments():
    def f(x: Any, w: Any) -> Any:
        return "a" if x is None else tnp.sum(tnp.tanh(tnp.tanh(tnp.tanh(w))))

    where = place(f, "def f").partition(" (")[0]
    with raises(TypeError, f"checkpoint: the result of f at {where} is 'a' of type str, which is not an array."):
        tl.grad(f, 1, memory_budget=0)(None, X)
    with pytest.raises(ValueError, match=r"grad, memory_budget=7: 7 bytes .* at least \d+\. The largest"):
        tl.grad(f, 1, memory_budget=7)(X, X)
