"""Differential equations solved by diffrax: explicit and implicit solvers, adjoints, noise, a neural equation."""

import json
import sys
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

TIMES = jnp.linspace(0.0, 2.0, 6)
Y0 = jnp.array([1.0, 0.5])


def field(t: Any, y: Any, args: Any) -> Any:
    """Two populations."""
    a, b = args
    return jnp.stack([a * y[0] - y[0] * y[1], y[0] * y[1] - b * y[1]])


def solved(solver: Any, args: Any, controller: Any, **options: Any) -> Any:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        0.0,
        2.0,
        0.1,
        Y0,
        args,
        saveat=diffrax.SaveAt(ts=TIMES),
        stepsize_controller=controller,
        **options,
    )


adaptive = diffrax.PIDController(rtol=1e-5, atol=1e-6)
found: dict[str, Any] = {}
SOLVERS: dict[str, Any] = {
    "euler": (diffrax.Euler(), diffrax.ConstantStepSize()),
    "heun": (diffrax.Heun(), diffrax.ConstantStepSize()),
    "tsit5": (diffrax.Tsit5(), adaptive),
    "dopri8": (diffrax.Dopri8(), adaptive),
    "implicit": (diffrax.ImplicitEuler(), diffrax.PIDController(rtol=1e-2, atol=1e-2)),
    "kvaerno5": (diffrax.Kvaerno5(), diffrax.PIDController(rtol=1e-3, atol=1e-4)),
}
for name, (solver, controller) in SOLVERS.items():
    solution = solved(solver, (1.5, 1.0), controller)
    found[name] = {"ys": np.asarray(solution.ys).tolist(), "steps": int(solution.stats["num_steps"])}
ADJOINTS: dict[str, Any] = {
    "checkpointed": diffrax.RecursiveCheckpointAdjoint(),
    "direct": diffrax.DirectAdjoint(),
    "backsolve": diffrax.BacksolveAdjoint(),
    "forward": diffrax.ForwardMode(),
}
for name, adjoint in ADJOINTS.items():

    def end(args: Any, adjoint: Any = adjoint) -> Any:
        return (solved(diffrax.Tsit5(), args, diffrax.ConstantStepSize(), adjoint=adjoint).ys[-1] ** 2).sum()

    derivative = jax.jacfwd if name == "forward" else jax.grad
    found[f"{name} adjoint"] = np.asarray(
        jax.tree.leaves(jax.jit(derivative(end))((jnp.array(1.5), jnp.array(1.0))))
    ).tolist()

path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=jax.random.key(0))
drift, noise = diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.3 * jnp.eye(2), path)
found["noise"] = np.asarray(
    diffrax.diffeqsolve(diffrax.MultiTerm(drift, noise), diffrax.EulerHeun(), 0.0, 1.0, 0.05, Y0).ys
).tolist()
event = diffrax.Event(lambda t, y, args, **kwargs: y[0] - 2.0)
stopped = diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 2.0, 0.05, Y0, (1.5, 1.0), event=event)
found["event"] = float(stopped.ts[0])
dense = diffrax.diffeqsolve(
    diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 2.0, 0.1, Y0, (1.5, 1.0), saveat=diffrax.SaveAt(dense=True)
)
found["dense"] = np.asarray(jax.vmap(dense.evaluate)(jnp.linspace(0.1, 1.9, 4))).tolist()
batch = jax.vmap(
    lambda y0: diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, None, y0, (1.5, 1.0), stepsize_controller=adaptive
    ).ys[0]
)
found["batch"] = np.asarray(batch(jnp.stack([Y0, 2 * Y0, Y0[::-1]]))).tolist()


class Neural(eqx.Module):
    """An equation whose right side is a network."""

    mlp: eqx.nn.MLP

    def __call__(self, ts: Any, y0: Any) -> Any:
        term = diffrax.ODETerm(lambda t, y, args: self.mlp(y))
        return diffrax.diffeqsolve(
            term,
            diffrax.Tsit5(),
            ts[0],
            ts[-1],
            ts[1] - ts[0],
            y0,
            saveat=diffrax.SaveAt(ts=ts),
            stepsize_controller=adaptive,
        ).ys


target = solved(diffrax.Tsit5(), (1.5, 1.0), adaptive).ys
model: Any = Neural(eqx.nn.MLP(2, 2, 8, 1, jnp.tanh, key=jax.random.key(1)))
optimizer = optax.sgd(0.05)


@eqx.filter_jit
def step(model: Any) -> Any:
    value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((m(TIMES, Y0) - target) ** 2))(model)
    updates, _ = optimizer.update(grads, optimizer.init(eqx.filter(model, eqx.is_array)))
    return eqx.apply_updates(model, updates), value


found["losses"] = []
for _ in range(3):
    model, value = step(model)
    found["losses"].append(float(value))
sys.stdout.write(json.dumps(found))
