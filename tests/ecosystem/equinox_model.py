"""A model of equinox's layers, trained for a few steps: convolution, attention, normalization, recurrence, dropout."""

import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)
IMAGES = jnp.asarray(RNG.normal(size=(16, 2, 10)).astype(np.float32))
LABELS = jnp.asarray(RNG.integers(0, 3, 16).astype(np.int32))


class Model(eqx.Module):
    """Features of windows, which attend to one another and are read in order."""

    conv: eqx.nn.Conv1d
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    cell: eqx.nn.GRUCell
    head: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    hidden: int = eqx.field(static=True)

    def __init__(self, hidden: int, key: Any) -> None:
        keys = jax.random.split(key, 4)
        self.conv = eqx.nn.Conv1d(2, hidden, 3, stride=2, key=keys[0])
        self.norm = eqx.nn.LayerNorm(hidden)
        self.attention = eqx.nn.MultiheadAttention(2, hidden, key=keys[1])
        self.cell = eqx.nn.GRUCell(hidden, hidden, key=keys[2])
        self.head = eqx.nn.Linear(hidden, 3, key=keys[3])
        self.dropout = eqx.nn.Dropout(0.2)
        self.hidden = hidden

    def __call__(self, image: Any, key: Any) -> Any:
        x = jax.vmap(self.norm)(jax.nn.gelu(self.conv(image)).T)
        x = x + self.attention(x, x, x)
        state, _ = jax.lax.scan(lambda h, row: (self.cell(row, h), None), jnp.zeros(self.hidden), x)
        return self.head(self.dropout(state, key=key))


@eqx.filter_value_and_grad
def loss(model: Any, keys: Any) -> Any:
    logits = jax.vmap(model)(IMAGES, keys)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), LABELS[:, None], 1))


@eqx.filter_jit
def step(model: Any, key: Any) -> Any:
    value, grads = loss(model, jax.random.split(key, len(IMAGES)))
    return eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads)), value


model: Any = Model(4, jax.random.key(0))
found: dict[str, Any] = {"losses": []}
for key in jax.random.split(jax.random.key(1), 4):
    model, value = step(model, key)
    found["losses"].append(float(value))
leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, eqx.is_inexact_array))
found["weights"] = {jax.tree_util.keystr(path): float(jnp.linalg.norm(x)) for path, x in leaves}
still = eqx.nn.inference_mode(model)
found["inference"] = np.asarray(eqx.filter_jit(still)(IMAGES[0], None)).tolist()
found["checked"] = float(eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative"))(jnp.asarray(2.0)))


def power(x: Any) -> Any:
    return eqx.internal.while_loop(lambda y: y < 9.0, lambda y: y * x, x, kind="bounded", max_steps=8)


found["bounded"] = float(eqx.filter_grad(power)(jnp.asarray(2.0)))
sys.stdout.write(json.dumps(found))
