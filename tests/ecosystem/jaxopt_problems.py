"""Minima, roots, fixed points and projections by jaxopt, and their derivatives."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(20, 3)).astype(np.float32))
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.1
LABELS = jnp.asarray(RNG.integers(0, 3, 20).astype(np.int32))
found: dict[str, Any] = {}


def ridge(w: Any, l2: Any) -> Any:
    return 0.5 * jnp.mean((X @ w - Y) ** 2) + 0.5 * l2 * jnp.sum(w**2)


for name, solver in {
    "gradient descent": jaxopt.GradientDescent(ridge, maxiter=100, tol=1e-4),
    "lbfgs": jaxopt.LBFGS(ridge, maxiter=30, tol=1e-4),
    "bfgs": jaxopt.BFGS(ridge, maxiter=30, tol=1e-4),
    "nonlinear cg": jaxopt.NonlinearCG(ridge, maxiter=50, tol=1e-4),
}.items():

    def weights(l2: Any, solver: Any = solver) -> Any:
        return solver.run(jnp.zeros(3), l2=l2).params

    found[name] = [np.asarray(f(0.1)).tolist() for f in (weights, jax.jacrev(weights))]


def lasso(w: Any, data: Any) -> Any:
    x, y = data
    return jnp.mean((x @ w - y) ** 2)


proximal = jaxopt.ProximalGradient(lasso, jaxopt.prox.prox_lasso, maxiter=100, tol=1e-4)
found["lasso"] = np.asarray(proximal.run(jnp.zeros(3), hyperparams_prox=0.3, data=(X, Y)).params).tolist()
projected = jaxopt.ProjectedGradient(lasso, jaxopt.projection.projection_simplex, maxiter=50)
found["simplex"] = np.asarray(projected.run(jnp.ones(3) / 3, hyperparams_proj=1.0, data=(X, Y)).params).tolist()
fit = jaxopt.LevenbergMarquardt(lambda w: jnp.tanh(X @ w) - jnp.tanh(Y), maxiter=30)
found["levenberg-marquardt"] = np.asarray(fit.run(jnp.zeros(3)).params).tolist()
fit = jaxopt.GaussNewton(lambda w: X @ w - Y, maxiter=5)
found["gauss-newton"] = np.asarray(fit.run(jnp.zeros(3)).params).tolist()
root = jaxopt.Bisection(lambda x, a: x**3 - a, 0.0, 3.0, maxiter=40, check_bracket=False)
cube_root = lambda a: root.run(a=a).params  # noqa: E731
found["bisection"] = [float(cube_root(2.0)), float(jax.grad(cube_root)(2.0))]
iteration = jaxopt.FixedPointIteration(lambda x, a: jnp.cos(a * x), maxiter=100, tol=1e-6, implicit_diff=True)
found["fixed point"] = [
    float(f(0.9)) for f in (lambda a: iteration.run(0.5, a).params, jax.grad(lambda a: iteration.run(0.5, a).params))
]
anderson = jaxopt.AndersonAcceleration(lambda x, a: jnp.cos(a * x), maxiter=50, tol=1e-6)
found["anderson"] = np.asarray(anderson.run(jnp.array([0.5, 0.1]), 0.9).params).tolist()
softmax = jaxopt.LBFGS(jaxopt.objective.l2_multiclass_logreg, maxiter=30)
found["logistic"] = np.asarray(softmax.run(jnp.zeros((3, 3)), l2reg=0.1, data=(X, LABELS)).params).tolist()
program = jaxopt.OSQP()
quadratic = program.run(
    params_obj=(jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, -1.0])),
    params_eq=(jnp.array([[1.0, 1.0]]), jnp.array([1.0])),
    params_ineq=(jnp.array([[-1.0, 0.0]]), jnp.array([0.0])),
).params
found["osqp"] = np.asarray(quadratic.primal).tolist()
sphere = jaxopt.projection.projection_l2_ball(jnp.array([3.0, 4.0]), 1.0)
found["ball"] = np.asarray(sphere).tolist()
found["losses"] = np.asarray(jax.vmap(jaxopt.loss.multiclass_logistic_loss)(LABELS, X)).tolist()
sys.stdout.write(json.dumps(found))
