"""Equinox's transformations, loops, stateful layers and files; and what runs by primitives of its own."""

import io
import json
import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

X = jnp.linspace(-1, 1, 8).reshape(2, 4)
KEY = jax.random.key(0)


@eqx.filter_custom_vjp
def doubled(a: Any, b: float) -> Any:
    return a * b


@doubled.def_fwd
def _forward(perturbed: Any, a: Any, b: float) -> Any:
    return a * b, (a, b)


@doubled.def_bwd
def _backward(residuals: Any, ct: Any, perturbed: Any, a: Any, b: float) -> Any:
    return 2 * ct * residuals[1]


def looped(x: Any, **how: Any) -> Any:
    start = (jnp.asarray(0), x)
    return eqx.internal.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1])), start, max_steps=8, **how)[
        1
    ]


def normalized() -> Any:
    layer, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, "batch", mode="ema")
    out, _ = jax.vmap(layer, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(X, state)
    return out


def from_file() -> Any:
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, eqx.nn.Linear(4, 3, key=KEY))
    file.seek(0)
    return eqx.tree_deserialise_leaves(file, eqx.nn.Linear(4, 3, key=jax.random.key(1))).weight


def raised() -> Any:
    try:
        eqx.filter_jit(lambda a: eqx.error_if(a, a.sum() > -100, "too large"))(X)
    except Exception as error:  # JAX and Tapeless have their own classes for what a callback raises
        return np.asarray("too large" in str(error))
    return np.asarray(False)


CALLS: dict[str, Any] = {
    "jvp": lambda: eqx.filter_jvp(lambda a: jnp.sin(a) ** 2, (X,), (X,)),
    "vjp": lambda: eqx.filter_vjp(lambda a: jnp.sin(a) ** 2, X)[1](X),
    "hessian": lambda: eqx.filter_hessian(lambda a: (a**3).sum())(X[0]),
    "custom_vjp": lambda: eqx.filter_grad(lambda a: doubled(a, 3.0).sum())(X),
    "closure": lambda: eqx.filter_closure_convert(lambda a: a @ X.T, X)(X),
    "bounded": lambda: eqx.filter_jit(eqx.filter_grad(lambda a: looped(a, kind="bounded").sum()))(X),
    "checkpointed": lambda: eqx.filter_grad(lambda a: looped(a, kind="checkpointed", checkpoints=2).sum())(X),
    "unvmap": lambda: jax.vmap(lambda a: eqx.internal.unvmap_any(a > 0.9))(X),
    "rotary": lambda: eqx.nn.RotaryPositionalEmbedding(4)(X),
    "normalized": normalized,
    "from a file": from_file,
    "raised": raised,
}
found = {name: [np.asarray(x).tolist() for x in jax.tree.leaves(f())] for name, f in CALLS.items()}
sys.stdout.write(json.dumps(found))
