"""A model of flax's nnx, trained for a few steps: convolution, normalization, attention, dropout, recurrence, state."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

RNG = np.random.default_rng(0)
IMAGES = jnp.asarray(RNG.normal(size=(8, 6, 6, 2)).astype(np.float32))
LABELS = jnp.asarray(RNG.integers(0, 3, 8).astype(np.int32))


class Count(nnx.Variable):
    """A number of calls."""


class Model(nnx.Module):
    """Features of windows, attending to one another, read in order."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(2, 4, (3, 3), strides=2, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 4, decode=False, rngs=rngs)
        self.layer_norm = nnx.LayerNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.rnn = nnx.RNN(nnx.GRUCell(4, 5, rngs=rngs))
        self.head = nnx.Linear(5, 3, rngs=rngs)
        self.count = Count(jnp.array(0))

    def __call__(self, x: Any) -> Any:
        self.count[...] += 1
        x = nnx.relu(self.norm(self.conv(x))).reshape(len(x), -1, 4)
        x = x + self.attention(self.layer_norm(x))
        return self.head(self.dropout(self.rnn(x)[:, -1]))


@nnx.jit
def step(model: Any, optimizer: Any) -> Any:
    def loss(model: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(model(IMAGES), LABELS).mean()

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
found: dict[str, Any] = {"losses": [float(step(model, optimizer)) for _ in range(4)]}
model.eval()
found["out"] = np.asarray(model(IMAGES)).tolist()
found["count"] = int(model.count[...])
graphdef, params, rest = nnx.split(model, nnx.Param, ...)
found["norms"] = {"/".join(map(str, path)): float(jnp.linalg.norm(x[...])) for path, x in nnx.to_flat_state(params)}
merged: Any = nnx.merge(graphdef, params, rest)
found["merged"] = np.asarray(merged(IMAGES)).tolist()


@nnx.vmap(in_axes=0, out_axes=0)
def layers(key: Any) -> Any:
    return nnx.Linear(4, 4, rngs=nnx.Rngs(key))


@nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
def through(layer: Any, x: Any) -> Any:
    return jnp.tanh(layer(x))


found["scanned"] = np.asarray(through(layers(jax.random.split(jax.random.key(1), 3)), jnp.ones((2, 4)))).tolist()
sys.stdout.write(json.dumps(found))
