"""Layers of JAX's examples: shapes, parameters and outputs as those of JAX."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.like_jax.jax_src import example_layers as ours
from tests.messages import raises

IMAGE, ROW = (2, 6, 5, 3), (2, 4)
ROWS = [(2, 4), (2, 4)]
LAYERS = {  # layers of a library, and the shapes of inputs
    "perceptron": (lambda x: x.serial(x.Dense(5), x.Relu, x.Dense(3), x.LogSoftmax), ROW),
    "images": (
        lambda x: x.serial(
            x.Conv(4, (3, 2), (2, 1), "SAME"), x.BatchNorm(), x.AvgPool((2, 2), padding="SAME"), x.Flatten, x.Dense(2)
        ),
        IMAGE,
    ),
    "valid": (lambda x: x.serial(x.Conv(2, (3, 3)), x.MaxPool((2, 2), (2, 1)), x.SumPool((1, 2)), x.Softplus), IMAGE),
    "explicit": (
        lambda x: x.GeneralConv(("NCHW", "OIHW", "NHWC"), 2, (2, 3), (1, 2), [(1, 0), (2, 1)]),
        (2, 3, 6, 5),
    ),
    "transposed": (
        lambda x: x.serial(x.ConvTranspose(2, (3, 3), (2, 2)), x.ConvTranspose(1, (2, 2), padding="SAME")),
        IMAGE,
    ),
    "transposed rows": (lambda x: x.Conv1DTranspose(3, (4,), (2,)), (2, 5, 3)),
    "normalized": (lambda x: x.BatchNorm((0,), center=False), ROW),
    "unscaled": (lambda x: x.BatchNorm(0, scale=False), ROW),
    "pooled by axes": (lambda x: x.MaxPool((2, 3), spec="NCHW"), (2, 3, 6, 5)),
    "residual": (
        lambda x: x.serial(
            x.FanOut(2), x.parallel(x.serial(x.Dense(4), x.Tanh), x.Identity), x.FanInSum, x.shape_dependent(_square)
        ),
        ROW,
    ),
    "joined": (lambda x: x.serial(x.parallel(x.Dense(3), x.Dropout(0.5)), x.FanInConcat()), ROWS),
    "dropped": (lambda x: x.serial(x.Dropout(0.7), x.Dense(2), x.Dropout(0.7, mode="test")), ROW),
    **{
        name: (lambda x, name=name: getattr(x, name), ROW)
        for name in ("Tanh", "Exp", "Softmax", "Sigmoid", "Elu", "LeakyRelu", "Selu", "Gelu")
    },
}


def _square(shape):
    return ours.Dense(shape[-1], W_init=ours.ones, b_init=ours.zeros)


def _with_batches(shape, batch):
    return [_with_batches(s, batch) for s in shape] if isinstance(shape, list) else (batch, *shape[1:])


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape = LAYERS[name]
    random = np.random.default_rng(0)
    inputs = [random.normal(size=s).astype(np.float32) for s in (shape if isinstance(shape, list) else [shape])]
    x = inputs if isinstance(shape, list) else inputs[0]
    init, apply = make(ours)
    found, params = init(tl.random.key(1), _with_batches(shape, -1))
    out = tl.jit(lambda params, x: apply(params, x, rng=tl.random.key(2)))(params, x)
    assert found[0] == -1 and (2, *found[1:]) == out.shape == init(tl.random.key(1), shape)[0]
    jax = pytest.importorskip("jax")
    if name == "residual":
        return
    theirs = make(pytest.importorskip("jax.example_libraries.stax"))
    shape_of_theirs, expected = theirs[0](jax.random.key(1), _with_batches(shape, -1))
    assert found[1:] == tuple(shape_of_theirs)[1:]  # where windows are, JAX makes a batch of -1 one of 0
    for mine, other in zip(tl.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(out, theirs[1](expected, x, rng=jax.random.key(2)), rtol=1e-4, atol=1e-5)


def test_a_layer_that_depends_on_shapes_and_names():
    _, params = ours.shape_dependent(_square)[0](tl.random.key(0), ROW)
    assert [p.shape for p in params] == [(4, 4), (4,)] and tnp.all(params[0] == 1)
    assert ours.logsoftmax is ours.log_softmax and ours.randn is ours.normal and ours.glorot is ours.glorot_normal


def test_dropout_needs_a_key():
    with raises(ValueError, "Dropout: apply takes a key, apply(params, inputs, rng=key), and none was given."):
        ours.Dropout(0.5)[1]((), tnp.ones(3))
