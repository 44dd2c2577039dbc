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

P = tl.checkpoint_policies
W, X = (
    np.linspace(-0.3, 0.4, 64, dtype=np.float32).reshape(8, 8),
    np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8),
)
BUDGETS = [0, 100, 128, 300, 700, 1500, 3000, 10**9]


def layers(w, x):
    for _ in range(4):
        x = tnp.tanh(x @ w) + 0.1 * x
    return tnp.sum(x)


def jitted_layers(w, x):
    layer = tl.jit(lambda w, x: tnp.tanh(x @ w) + 0.1 * x)
    for _ in range(4):
        x = layer(w, x)
    return tnp.sum(x)


def scanned_layers(w, x):
    return tnp.sum(lax.scan(lambda x, _: (tnp.tanh(x @ w) + 0.1 * x, None), x, length=4)[0])


def chosen_layers(w, x, count=4):
    for _ in range(count):
        x = lax.cond(x[0, 0] > 0, lambda x: tnp.tanh(x @ w), lambda x: tnp.sin(x * tnp.cos(x)), x)
    return tnp.sum(x)


FUNCTIONS = [layers, jitted_layers, scanned_layers, chosen_layers]


@pytest.mark.parametrize("n", BUDGETS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_budget_holds_and_gradients_are_the_same(f, n):
    wrapped = tl.checkpoint(f, policy=P.budget(n))
    kept = tl.saved_residuals(wrapped, W, X)
    assert sum(x.nbytes for x in kept if x.argument is None) <= n
    close(tl.grad(wrapped, (0, 1))(W, X), with_everything_saved(f))


@cache
def with_everything_saved(f):
    return tl.grad(tl.checkpoint(f, policy=P.save_all), (0, 1))(W, X)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_more_bytes_mean_no_more_operations(f):
    again = [tl.saved_residuals(tl.checkpoint(f, policy=P.budget(n)), W, X).recomputed for n in (0, 10**9)]
    same = [tl.saved_residuals(tl.checkpoint(f, policy=p), W, X).recomputed for p in (P.save_none, P.save_all)]
    assert again == same
    assert again[0] > again[1]


def test_nothing_and_everything():
    for n, policy in ((0, P.save_none), (10**9, P.save_all)):
        kept = [tl.saved_residuals(tl.checkpoint(layers, policy=p), W, X) for p in (P.budget(n), policy)]
        assert [(x.aval, x.source) for x in kept[0]] == [(x.aval, x.source) for x in kept[1]]
        unzipped = [tl.unzip(layers, W, X, policy=p) for p in (P.budget(n), policy)]
        assert str(unzipped[0].linear) == str(unzipped[1].linear)


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
@pytest.mark.parametrize("n", [0, 200, 10**9])
def test_transforms(transform, n):
    found = tl.jit(transform(tl.checkpoint(both_layers, policy=P.budget(n))))(W, X)
    # float32, sums in another order
    np.testing.assert_allclose(found, without_checkpoint(transform), rtol=2e-5, atol=2e-6)


def both_layers(w, x):
    return scanned_layers(w, x.reshape(-1, 8)) + chosen_layers(w, x.reshape(-1, 8), 2)


@cache
def without_checkpoint(transform):
    return np.asarray(tl.jit(transform(both_layers))(W, X))


@pytest.mark.parametrize(
    ("every", "units", "expected"), [(4, (0, 2, 4, 8), (11, 15, 23, 32)), (2, (0, 1, 2, 4), (11, 18, 25, 32))]
)
def test_compiled_memory_follows_the_budget(every, units, expected):
    """16 layers in checkpoints; a unit is one activation. Without checkpoints it takes 32: of each layer two."""
    x, ws = tnp.ones((1024, 64)), [0.1 * tnp.eye(64)] * 16

    def net(ws, x):
        for w in ws:
            x = tnp.sin(x @ w)
        return x

    def temporary(n):
        def total(ws, x):
            for i in range(0, 16, every):
                x = tl.checkpoint(net, policy=P.budget(n * x.nbytes))(ws[i : i + every], x)
            return tnp.sum(x)

        memory = tl.jit(tl.grad(total)).lower(ws, x).compile().memory_analysis()
        return memory.temp_size_in_bytes / x.nbytes

    found = [temporary(n) for n in units]
    assert found == sorted(found)
    assert all(x < y + 1.5 for x, y in zip(found, expected))  # one and a half: what else a compiler may keep


def test_budget_says_why():
    kept = tl.saved_residuals(tl.checkpoint(layers, policy=P.budget(300)), W, X)
    (first, *_) = [x for x in kept if x.argument is None]
    assert str(first).startswith("float32[4,8] from tanh, saved by budget(300) at ")
    assert repr(P.budget(300)) == "budget(300)"
    assert P.budget(300) == P.budget(np.int64(300))


def test_unzip_with_a_budget():
    halves = tl.unzip(layers, W, X, policy=P.budget(300))
    assert sum(x.nbytes for x in halves.residuals if x.argument is None) <= 300


@pytest.mark.parametrize(
    ("kind", "attempt", "text"),
    [
        (TypeError, lambda: P.budget("1MB"), "budget: expected a number of bytes, not '1MB' of type str."),
        (TypeError, lambda: P.budget(1e6), "budget: expected a number of bytes, not 1000000.0 of type float."),
        (TypeError, lambda: P.budget(True), "budget: expected a number of bytes, not True of type bool."),
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
