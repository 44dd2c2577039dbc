"""Roots, least squares, minima and fixed points by optimistix, and their derivatives."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix as optx

X = jnp.linspace(0.0, 2.0, 10)
Y = jnp.exp(-1.3 * X) * 2.0 + 0.1
START = (jnp.array(1.0), jnp.array([0.5, 0.0]))


def residuals(params: Any, data: Any) -> Any:
    rate, (scale, shift) = params
    return scale * jnp.exp(-rate * X) + shift - data


def rosenbrock(y: Any, args: Any) -> Any:
    return (1 - y[0]) ** 2 + args * (y[1] - y[0] ** 2) ** 2


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(x).tolist() for x in jax.tree.leaves(tree)]


found: dict[str, Any] = {}
root = lambda y, args: jnp.stack([y[0] ** 2 + args - y[1], jnp.cos(y[0]) - y[1] * args])  # noqa: E731
for name, solver in {
    "newton": optx.Newton(1e-6, 1e-6),
    "chord": optx.Chord(1e-6, 1e-6),
    "dogleg": optx.Dogleg(1e-6, 1e-6),
}.items():

    def solution(args: Any, solver: Any = solver) -> Any:
        return optx.root_find(root, solver, jnp.array([0.5, 0.5]), args).value

    args = jnp.array(0.4)
    found[name] = leaves([solution(args), jax.jacrev(solution)(args), jax.jacfwd(solution)(args)])
found["bisection"] = float(
    optx.root_find(
        lambda y, args: y**3 - 2, optx.Bisection(1e-6, 1e-6), 1.0, options={"lower": 0.0, "upper": 2.0}
    ).value
)
for name, solver in {
    "gauss-newton": optx.GaussNewton(1e-6, 1e-6),
    "levenberg-marquardt": optx.LevenbergMarquardt(1e-6, 1e-6),
    "least squares, dogleg": optx.Dogleg(1e-6, 1e-6),
}.items():

    def fitted(data: Any, solver: Any = solver) -> Any:
        return optx.least_squares(residuals, solver, START, data, max_steps=64).value

    found[name] = leaves([jax.jit(fitted)(Y), jax.grad(lambda data: fitted(data)[0])(Y)])
for name, solver in {
    "bfgs": optx.BFGS(1e-5, 1e-5),
    "nonlinear cg": optx.NonlinearCG(1e-5, 1e-5),
    "gradient descent": optx.GradientDescent(0.02, 1e-3, 1e-3),
    "nelder-mead": optx.NelderMead(1e-4, 1e-4),
    "optax": optx.OptaxMinimiser(optax.adam(0.05), 1e-3, 1e-3),
}.items():
    result = optx.minimise(rosenbrock, solver, jnp.array([-0.5, 0.4]), jnp.array(2.0), max_steps=2000)
    found[name] = leaves(result.value)


def minimum(scale: Any) -> Any:
    return optx.minimise(rosenbrock, optx.BFGS(1e-6, 1e-6), jnp.array([0.8, 0.4]), scale).value.sum()


def cosine(scale: Any) -> Any:
    iteration = optx.FixedPointIteration(1e-6, 1e-6)
    return optx.fixed_point(lambda y, args: jnp.cos(args * y), iteration, jnp.array(0.5), scale).value


found["minimum's gradient"] = float(jax.grad(minimum)(jnp.array(2.0)))
found["fixed point"] = leaves([cosine(jnp.array(0.9)), jax.grad(cosine)(jnp.array(0.9))])
failed = optx.root_find(lambda y, args: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(1.0), max_steps=5, throw=False)
found["failed"] = bool(failed.result == optx.RESULTS.successful)
sys.stdout.write(json.dumps(found))
