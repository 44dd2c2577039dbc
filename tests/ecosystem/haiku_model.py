"""Models of haiku's modules, trained for a few steps: convolution, normalization, attention, recurrence, dropout."""

import json
import sys
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

RNG = np.random.default_rng(0)
IMAGES = jnp.asarray(RNG.normal(size=(8, 6, 6, 2)).astype(np.float32))
LABELS = jnp.asarray(RNG.integers(0, 3, 8).astype(np.int32))


def classifier(images: Any, train: bool) -> Any:
    """Features of windows, normalized over the batch, attending to one another, read in order."""
    x = hk.Conv2D(4, 3, stride=2)(images)
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, train))
    x = x.reshape(len(x), -1, 4)
    x = x + hk.MultiHeadAttention(2, 3, w_init=hk.initializers.VarianceScaling(), model_size=4)(x, x, x)
    x = hk.LayerNorm(-1, True, True)(x)
    core = hk.LSTM(5)
    x, _ = hk.dynamic_unroll(core, x, core.initial_state(len(x)), time_major=False)
    x = hk.dropout(hk.next_rng_key(), 0.2, x[:, -1]) if train else x[:, -1]
    return hk.nets.MLP([6, 3])(x)


def loss(params: Any, state: Any, key: Any) -> Any:
    logits, state = model.apply(params, state, key, IMAGES, True)
    return optax.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean(), state


@jax.jit
def step(params: Any, state: Any, opt_state: Any, key: Any) -> Any:
    (value, state), grads = jax.value_and_grad(loss, has_aux=True)(params, state, key)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), state, opt_state, value


model: Any = hk.transform_with_state(classifier)
optimizer = optax.sgd(0.1, momentum=0.9)
keys = hk.PRNGSequence(0)
params, state = model.init(next(keys), IMAGES, True)
opt_state = optimizer.init(params)
found: dict[str, Any] = {"losses": []}
for _ in range(4):
    params, state, opt_state, value = step(params, state, opt_state, next(keys))
    found["losses"].append(float(value))
leaves = jax.tree_util.tree_leaves_with_path({"params": params, "state": state})
found["norms"] = {jax.tree_util.keystr(path): float(jnp.linalg.norm(x)) for path, x in leaves}
found["out"] = np.asarray(model.apply(params, state, None, IMAGES, False)[0]).tolist()


def looped(x: Any) -> Any:
    x = hk.layer_stack(3)(hk.Linear(4))(x)
    x = hk.remat(hk.Linear(4))(x)
    x = hk.fori_loop(0, 2, lambda i, y: jnp.tanh(y), x)
    return hk.cond(True, jnp.sin, jnp.cos, x)


plain: Any = hk.without_apply_rng(hk.transform(looped))
weights = plain.init(jax.random.PRNGKey(3), IMAGES[0, 0, :, :].reshape(3, 4))
found["looped"] = np.asarray(plain.apply(weights, IMAGES[0, 0, :, :].reshape(3, 4))).tolist()
sys.stdout.write(json.dumps(found))
