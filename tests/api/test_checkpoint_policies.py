"""Policies that see the whole program: tl.checkpoint_policies.budget."""

import re
import warnings
from functools import cache

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tests.close import fused_single_precision as close
from tests.messages import raises
from tests.stepping import by_steps

P = tl.checkpoint_policies
W, X = (
    np.linspace(-0.3, 0.4, 64, dtype=np.float32).reshape(8, 8),
    np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8),
)

ROWS = np.linspace(-1, 1, 512, dtype=np.float32).reshape(64, 8)  # of which there are more than in a weight


def layers(w, x):
    for _ in range(8):
        x = tnp.tanh(x @ w) + 0.1 * x
    return tnp.sum(x)


def jitted_layers(w, x):
    layer = tl.jit(lambda w, x: tnp.tanh(x @ w) + 0.1 * x)
    for _ in range(8):
        x = layer(w, x)
    return tnp.sum(x)


def scanned_layers(w, x):
    return tnp.sum(lax.scan(lambda x, _: (tnp.tanh(x @ w) + 0.1 * x, None), x, length=4)[0])


def chosen_layers(w, x, count=4):
    for _ in range(count):
        x = lax.cond(x[0, 0] > 0, lambda x: tnp.tanh(x @ w), lambda x: tnp.sin(x * tnp.cos(x)), x)
    return tnp.sum(x)


FUNCTIONS = [layers, jitted_layers, scanned_layers, chosen_layers]


@pytest.mark.parametrize("limit", [0, 0.9, "1GB"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_the_same(f, limit):
    wrapped = tl.checkpoint(f, policy=P.budget(limit))
    close(tl.grad(wrapped, (0, 1))(W, ROWS), with_everything_saved(f))


@cache
def with_everything_saved(f):
    return tl.grad(tl.checkpoint(f, policy=P.save_all), (0, 1))(W, ROWS)


@pytest.mark.parametrize(
    "transform",
    [
        tl.grad,
        lambda f: tl.vmap(tl.grad(f), (None, 0)),
        lambda f: tl.grad(lambda w, x: tnp.sum(tl.vmap(f, (None, 0))(w, x))),
        lambda f: tl.jacfwd(tl.grad(f)),
        lambda f: lambda w, x: tl.linearize(f, w, x)[1](w, x),
    ],
)
@pytest.mark.parametrize("n", [0, 10**9])
def test_transforms(transform, n):
    found = tl.jit(transform(tl.checkpoint(both_layers, policy=P.budget(n))))(W, X)
    # float32, sums in another order
    np.testing.assert_allclose(found, without_checkpoint(transform), rtol=2e-5, atol=2e-6)


def both_layers(w, x):
    return scanned_layers(w, x.reshape(-1, 8)) + chosen_layers(w, x.reshape(-1, 8), 2)


@cache
def without_checkpoint(transform):
    return np.asarray(tl.jit(transform(both_layers))(W, X))


DEEP = [0.1 * tnp.ones((32, 32))] * 32, tnp.ones((256, 32))


@pytest.mark.parametrize("limit", [0, 0.9])
def test_unzip_with_a_budget(limit):
    halves = tl.unzip(layers, W, ROWS, policy=P.budget(limit))
    value, *residuals = by_steps(halves.primal.jaxpr, [*halves.primal.consts, W, ROWS])
    close((value, *by_steps(halves.linear, [*residuals, W, ROWS])), tl.jvp(layers, (W, ROWS), (W, ROWS)))


def test_a_budget_is_asked_for_by_bytes_by_text_and_by_part():
    assert P.budget("2GB") == P.budget(2 * 10**9) == P.budget(np.int64(2 * 10**9))
    assert P.budget("1.5 MiB") == P.budget(3 * 2**19)
    assert P.budget(" 7B ") == P.budget(7) == P.budget(np.array(7))
    assert P.budget(np.float32(0.25)) == P.budget(0.25)
    assert P.budget(0.0) == P.budget("0GB") == P.budget(0)
    assert [repr(P.budget(x)) for x in (300, 0.25, "1kB")] == ["budget(300)", "budget(0.25)", "budget(1000)"]


def test_named_values_and_results_of_callbacks_are_not_computed_again():
    calls = []

    def noted(x):
        calls.append(x)
        return np.sin(x)

    def f(ws, x):
        for k, w in enumerate(ws):
            x = tnp.tanh(x @ w)
            if k == 8:
                x = checkpoint_name(x, "middle")
            if k == 12:
                x = tl.pure_callback(noted, x, tl.lax.stop_gradient(x)) * x
        return tnp.sum(x)

    g = tl.checkpoint(f, policy=P.budget(0))
    kept = tl.saved_residuals(g, *DEEP)
    assert [r.name for r in kept if r.name] == ["middle"]


@pytest.mark.parametrize(
    ("kind", "attempt", "text"),
    [
        (
            ValueError,
            lambda: P.budget("1 megabyte"),
            "budget: expected a number of bytes such as '2GB' or '512 MiB', not '1 megabyte'.",
        ),
        *[
            (
                ValueError,
                lambda text=text: P.budget(text),
                f"budget: expected a number of bytes such as '2GB' or '512 MiB', not {text!r}.",
            )
            for text in ("", "2", "-1GB", "2 GIB", "1e3 B", "50%")
        ],
        *[
            (
                ValueError,
                lambda part=part: P.budget(part),
                f"budget: expected a part from 0.0 to 1.0, not {part!r}. Give a number of bytes as an integer.",
            )
            for part in (1e6, -0.5, float("nan"), float("inf"))
        ],
        *[
            (
                TypeError,
                lambda other=other: P.budget(other),
                "budget: expected a number of bytes, a text such as '2GB', or a part from 0.0 to 1.0, not "
                f"{other!r} of type {type(other).__name__}.",
            )
            for other in (True, None, 2j, [3])
        ],
        (ValueError, lambda: P.budget(-1), "budget: expected a number of bytes, not -1, which is negative."),
        (
            TypeError,
            lambda: P.save_from_both_policies(P.save_dots, P.budget(3)),
            "save_from_both_policies: expected a function that is called for every operation, not budget(3), which "
            "sees whole programs.",
        ),
        (
            TypeError,
            lambda: P.save_if(7),
            "save_if: expected a function that is called for every operation, not 7.",
        ),
    ],
)
def test_errors(kind, attempt, text):
    with raises(kind, text):
        attempt()


def named(x):
    return tnp.sum(tnp.sin(checkpoint_name(tl.jit(lambda x: checkpoint_name(tnp.sin(x), "attention"))(x), "hidden")))


@pytest.mark.parametrize(
    "policy",
    [
        P.save_only_these_names("atention", "hidden"),
        P.save_any_names_but_these("atention"),
        P.save_anything_except_these_names("atention"),
        P.save_from_both_policies(P.save_only_these_names("atention"), P.dots_saveable),
    ],
)
def test_misspelt_names_are_warned_of(policy):
    message = "has the name 'atention' that its policy asks for. Do you mean 'attention'?"
    with pytest.warns(UserWarning, match=re.escape(message)):
        tl.grad(tl.checkpoint(named, policy=policy))(X)


def test_names_of_other_layers_are_not_warned_of():
    policy = P.save_only_these_names("attention", "mlp", "hiddenn", "hidden")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tl.grad(tl.checkpoint(named, policy=policy))(X)
