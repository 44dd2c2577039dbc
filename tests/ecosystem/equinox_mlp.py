"""Equinox's core: a module of arrays, filtered transformations, a network trained for a few steps."""

import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(64, 4)).astype(np.float32))
Y = jnp.sin(X.sum(1, keepdims=True))


class Net(eqx.Module):
    """A scaled perceptron, with a field that is no part of the pytree."""

    mlp: eqx.nn.MLP
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        return self.scale * self.mlp(x)


@eqx.filter_value_and_grad
def loss(net: Any) -> Any:
    return jnp.mean((jax.vmap(net)(X) - Y) ** 2)


@eqx.filter_jit
def step(net: Any) -> Any:
    value, grads = loss(net)
    return eqx.apply_updates(net, jax.tree.map(lambda g: -0.1 * g, grads)), value


def first(net: Any) -> Any:
    return net(X[0])[0]


net: Any = Net(eqx.nn.MLP(4, 1, 16, 2, activation=jax.nn.softplus, key=jax.random.key(0)), jnp.asarray(1.0), "net")
found: dict[str, Any] = {"losses": []}
for _ in range(4):
    net, value = step(net)
    found["losses"].append(float(value))
arrays, rest = eqx.partition(net, eqx.is_array)
found["leaves"] = len(jax.tree.leaves(arrays))
found["combined"] = float(first(eqx.combine(arrays, rest)))
found["gradient"] = float(eqx.filter_grad(first)(net).scale)
found["checkpointed"] = float(eqx.filter_grad(eqx.filter_checkpoint(first))(net).scale)
found["mapped"] = np.asarray(eqx.filter_vmap(net)(X[:3])).ravel().tolist()
found["replaced"] = float(first(eqx.tree_at(lambda n: n.scale, net, jnp.asarray(2.0))))
found["shape"] = list(eqx.filter_eval_shape(net, X[0]).shape)
found["dropout"] = np.asarray(eqx.nn.Dropout(0.5)(X[0], key=jax.random.key(1))).tolist()
found["recurrent"] = np.asarray(eqx.nn.GRUCell(4, 3, key=jax.random.key(3))(X[0], jnp.zeros(3))).tolist()
sys.stdout.write(json.dumps(found))
