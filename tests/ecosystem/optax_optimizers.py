"""A classifier trained for a few steps by some of optax's optimizers: losses, and weights in the end."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(64, 5)).astype(np.float32))
LABELS = jnp.asarray(RNG.integers(0, 3, 64).astype(np.int32))

SCHEDULE = optax.warmup_cosine_decay_schedule(0.0, 0.1, 3, 10, 0.01)
OPTIMIZERS: dict[str, Any] = {
    "nesterov": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.05),
    "adamw, scheduled": optax.adamw(SCHEDULE, weight_decay=0.01),
    "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.scale_by_adam(), optax.scale(-0.05)),
    "lion": optax.lion(0.01),
    "adafactor": optax.adafactor(0.05),
    "noisy": optax.noisy_sgd(0.1, key=jax.random.key(1)),
    "every second step": optax.MultiSteps(optax.adam(0.05), 2),
    "injected": optax.inject_hyperparams(optax.adam)(learning_rate=SCHEDULE),
    "lbfgs": optax.lbfgs(),
    "muon": optax.contrib.muon(0.05),
}
GIVEN_VALUES = {"lbfgs"}  # take value, grad and value_fn


def parameters() -> Any:
    w, _ = jax.random.split(jax.random.key(0))
    return {"w": 0.3 * jax.random.normal(w, (5, 3)), "b": jnp.zeros(3)}


def loss(params: Any) -> Any:
    logits = X @ params["w"] + params["b"]
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean()


def trained(name: str, steps: int = 4) -> list[float]:
    """Losses of the steps, and the first weights after them."""
    optimizer = OPTIMIZERS[name]

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params)
        more = {"value": value, "grad": grads, "value_fn": loss} if name in GIVEN_VALUES else {}
        updates, state = optimizer.update(grads, state, params, **more)
        return optax.apply_updates(params, updates), state, value

    params, losses = parameters(), []
    state = optimizer.init(params)
    for _ in range(steps):
        params, state, value = step(params, state)
        losses.append(float(value))
    return [*losses, *np.asarray(params["w"][0]).tolist()]


sys.stdout.write(json.dumps({name: trained(name) for name in OPTIMIZERS}))
