"""Models of flax's linen, trained for a few steps: convolution, normalization, attention, dropout, a scanned LSTM."""

import json
import sys
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training import train_state

RNG = np.random.default_rng(0)
IMAGES = jnp.asarray(RNG.normal(size=(8, 6, 6, 2)).astype(np.float32))
SENTENCES = jnp.asarray(RNG.integers(0, 7, (8, 5)).astype(np.int32))
LABELS = jnp.asarray(RNG.integers(0, 3, 8).astype(np.int32))


class Classifier(nn.Module):
    """Features of windows, normalized over the batch."""

    @nn.compact
    def __call__(self, x: Any, train: bool) -> Any:
        x = nn.Conv(4, (3, 3), strides=2)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.max_pool(x, (2, 2)).reshape(len(x), -1)
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(3)(x)


class Block(nn.Module):
    """A layer of a transformer, in the form of the body of a loop."""

    @nn.compact
    def __call__(self, x: Any, _: Any) -> Any:
        y = nn.SelfAttention(2)(nn.LayerNorm()(x))
        x = x + y
        return x + nn.Dense(4)(nn.gelu(nn.Dense(8)(nn.RMSNorm()(x)))), None


class Reader(nn.Module):
    """Layers in a loop, read in order by a recurrent network."""

    @nn.compact
    def __call__(self, words: Any, train: bool) -> Any:
        x = nn.Embed(7, 4)(words)
        layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=2)
        x, _ = layers(name="layers")(x, None)
        x = nn.RNN(nn.LSTMCell(4), return_carry=True)(x)[0][1]
        return nn.Dense(3)(nn.WeightNorm(nn.Dense(4))(x))


def trained(model: Any, inputs: Any, steps: int = 4) -> dict[str, Any]:
    """Losses of the steps, results after them, and the sizes of the weights."""
    variables = model.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, inputs, train=True)
    rest = {name: x for name, x in variables.items() if name != "params"}
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=variables["params"], tx=optax.sgd(0.1, momentum=0.9)
    )

    @jax.jit
    def step(state: Any, rest: Any, key: Any) -> Any:
        def loss(params: Any) -> Any:
            given = {"params": params, **rest}
            logits, new = state.apply_fn(given, inputs, train=True, rngs={"dropout": key}, mutable=list(rest))
            return optax.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), new, value

    losses: list[float] = []
    for i in range(steps):
        state, rest, value = step(state, rest, jax.random.fold_in(jax.random.key(2), i))
        losses.append(float(value))
    out = model.apply({"params": state.params, **rest}, inputs, train=False)
    leaves = jax.tree_util.tree_leaves_with_path({"params": state.params, **rest})
    norms = {jax.tree_util.keystr(path): float(jnp.linalg.norm(x)) for path, x in leaves}
    return {"losses": losses, "out": np.asarray(out).tolist(), "norms": norms}


found = {"classifier": trained(Classifier(), IMAGES), "reader": trained(Reader(), SENTENCES)}
model = nn.Sequential([nn.Dense(3), nn.tanh, nn.Dense(1)])
shapes: Any = jax.eval_shape(model.init, jax.random.key(0), IMAGES[0])
found["shapes"] = {jax.tree_util.keystr(path): x.shape for path, x in jax.tree_util.tree_leaves_with_path(shapes)}
lazy: Any = model.lazy_init(jax.random.key(0), jax.ShapeDtypeStruct((2, 5), jnp.float32))
found["lazy"] = np.asarray(lazy["params"]["layers_0"]["kernel"]).tolist()
sys.stdout.write(json.dumps(found))
