"""quax's values: numbers with units, names, zeros, low rank, and a type of its own, in loops and derivatives."""

import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import quax
from jax import lax
from quax.examples import lora, named, unitful, zero

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (4, 3))
found: dict[str, Any] = {}

linear = lora.loraify(eqx.nn.MLP(3, 2, 8, 1, activation=jax.nn.silu, key=KEY), rank=2, key=KEY)
call: Any = quax.quaxify(lambda model, x: jax.nn.softplus(model(x)).sum())
found["lora"] = [float(call(linear, X[0])), float(eqx.filter_jit(call)(linear, X[0]))]
found["of rows"] = np.asarray(jax.vmap(lambda x: call(linear, x))(X)).tolist()
grads = eqx.filter_grad(call)(linear, X[0])
found["gradient"] = [float(jnp.linalg.norm(leaf)) for leaf in jax.tree.leaves(grads)]

length, time = unitful.Unitful(jnp.array([1.0, 2.0]), unitful.meters), unitful.Unitful(jnp.array(3.0), unitful.seconds)
area = quax.quaxify(lambda x: x * x + x**2)(length)
found["units"] = [np.asarray(area.array).tolist(), str(area.units)]
speed = quax.quaxify(jax.jit(lambda x, t: x * t))(length, time)
found["units of a product"] = [np.asarray(speed.array).tolist(), str(speed.units)]
try:
    quax.quaxify(jnp.add)(length, time)
except ValueError as error:
    found["refused"] = str(error)[:40]

nothing = zero.Zero((3,), jnp.float32)
total = quax.quaxify(lambda a, b: a + b)(nothing, X[0])
found["zero"] = np.asarray(total).tolist()
product = quax.quaxify(lambda a, b: a * b)(nothing, X[0])
found["stays zero"] = [type(product).__name__, list(product.shape)]

batch, width, other = named.Axis(4), named.Axis(3), named.Axis(2)
a = named.NamedArray(X, (batch, width))
b = named.NamedArray(X.T[:, :2], (width, other))
outer = quax.quaxify(jnp.matmul)(a, b)
found["named"] = [np.asarray(outer.array).tolist(), [axis.size for axis in outer.axes]]


class Logarithm(quax.ArrayValue):
    """A positive number by its logarithm."""

    log: jax.Array

    def aval(self) -> Any:
        return jax.core.ShapedArray(self.log.shape, self.log.dtype)

    def materialise(self) -> Any:
        return jnp.exp(self.log)


@quax.register(lax.mul_p)
def _(x: Logarithm, y: Logarithm, **params: Any) -> Logarithm:
    return Logarithm(x.log + y.log)


@quax.register(lax.reshape_p)
def _(x: Logarithm, *, new_sizes: Any, dimensions: Any, sharding: Any) -> Logarithm:
    return Logarithm(lax.reshape(x.log, new_sizes))


@quax.register(lax.convert_element_type_p)
def _(x: Logarithm, *, new_dtype: Any, weak_type: Any, sharding: Any) -> Logarithm:
    return Logarithm(x.log.astype(new_dtype))


@quax.register(lax.dot_general_p)
def _(x: Logarithm, y: Logarithm, *, dimension_numbers: Any, precision: Any, **params: Any) -> jax.Array:
    return lax.dot_general(jnp.exp(x.log), jnp.exp(y.log), dimension_numbers, precision=precision)


small = Logarithm(jnp.full(4, -60.0))
squared = quax.quaxify(lambda x: (x * x).reshape(2, 2))(small)
found["logarithms"] = np.asarray(squared.log).tolist()
found["product"] = np.asarray(quax.quaxify(lambda x: (x @ x) * 1e20)(Logarithm(X[0]))).tolist()
found["default"] = np.asarray(quax.quaxify(lambda x: jnp.sum(jnp.tanh(x)))(Logarithm(X[0]))).tolist()
found["pushed"] = np.asarray(
    jax.jvp(quax.quaxify(lambda x: (x * x).reshape(3, 1)), (Logarithm(X[0]),), (Logarithm(X[1]),))[1].log
).tolist()


def looped(x: Any, y: Any) -> Any:
    y, ys = lax.scan(lambda c, e: (c * e, c + e), y, x)
    y = lax.while_loop(lambda c: c.sum() < 10.0, lambda c: c + 1.0, y)
    return lax.cond(y[0] > 0, jnp.sin, jnp.cos, y), ys


found["loops"] = [
    np.asarray(leaf).tolist() for leaf in quax.quaxify(looped)(X, lora.LoraArray(X, rank=2, key=KEY).w[0])
]
low = lora.LoraArray(jnp.ones((3, 3)), rank=2, key=KEY)
found["loops over values"] = np.asarray(
    quax.quaxify(lambda m, x: lax.scan(lambda c, _: (m @ c / 3, c.sum()), x, None, 4)[1])(low, X[0])
).tolist()
sys.stdout.write(json.dumps(found))
