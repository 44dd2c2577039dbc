"""Linear systems solved by lineax's solvers, their derivatives in both modes, batches, least squares."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

RNG = np.random.default_rng(0)
MATRIX = 0.3 * RNG.normal(size=(4, 4)).astype(np.float32) + 2 * np.eye(4, dtype=np.float32)
A = jnp.asarray(MATRIX)
SPD = jnp.asarray(MATRIX @ MATRIX.T)
TALL = jnp.asarray(RNG.normal(size=(6, 3)).astype(np.float32))
b, b6 = jnp.asarray(RNG.normal(size=4).astype(np.float32)), jnp.asarray(RNG.normal(size=6).astype(np.float32))

OPERATORS: dict[str, Any] = {
    "auto": (lambda a: lx.MatrixLinearOperator(a), lx.AutoLinearSolver(well_posed=True), A),
    "lu": (lambda a: lx.MatrixLinearOperator(a), lx.LU(), A),
    "qr": (lambda a: lx.MatrixLinearOperator(a), lx.QR(), A),
    "svd": (lambda a: lx.MatrixLinearOperator(a), lx.SVD(), A),
    "cholesky": (lambda a: lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag), lx.Cholesky(), SPD),
    "cg": (lambda a: lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag), lx.CG(rtol=1e-4, atol=1e-4), SPD),
    "gmres": (lambda a: lx.MatrixLinearOperator(a), lx.GMRES(rtol=1e-3, atol=1e-3, restart=3), A),
    "triangular": (lambda a: lx.MatrixLinearOperator(a, lx.lower_triangular_tag), lx.Triangular(), jnp.tril(A)),
    "diagonal": (lambda a: lx.DiagonalLinearOperator(jnp.diag(a)), lx.Diagonal(), A),
    "tridiagonal": (
        lambda a: lx.TridiagonalLinearOperator(jnp.diag(a), jnp.diag(a, -1), jnp.diag(a, 1)),
        lx.Tridiagonal(),
        A,
    ),
    "function": (
        lambda a: lx.FunctionLinearOperator(lambda x: a @ x, jax.ShapeDtypeStruct((4,), jnp.float32)),
        lx.LU(),
        A,
    ),
    "jacobian": (lambda a: lx.JacobianLinearOperator(lambda x, _: jnp.sin(a @ x) + 5 * x, b), lx.LU(), A),
    "sum": (lambda a: 2.0 * lx.MatrixLinearOperator(a) + lx.IdentityLinearOperator(b), lx.LU(), A),
}


def solved(name: str) -> dict[str, Any]:
    """The solution, derivatives in both modes, a batch, and the number of steps, if it is iterative."""
    operator, solver, matrix = OPERATORS[name]

    def solution(a: Any, vector: Any) -> Any:
        return lx.linear_solve(operator(a), vector, solver).value

    grads = jax.jit(jax.grad(lambda a, v: (solution(a, v) ** 2).sum(), argnums=(0, 1)))(matrix, b)
    steps = lx.linear_solve(operator(matrix), b, solver).stats.get("num_steps", 0)
    return {
        "value": np.asarray(jax.jit(solution)(matrix, b)).tolist(),
        "grad": [np.asarray(g).tolist() for g in grads],
        "jvp": np.asarray(jax.jvp(solution, (matrix, b), (jnp.ones_like(matrix), b))[1]).tolist(),
        "vmap": np.asarray(jax.vmap(solution, in_axes=(None, 0))(matrix, jnp.stack([b, -b, b * b]))).tolist(),
        "steps": int(steps),
    }


found: dict[str, Any] = {name: solved(name) for name in OPERATORS}


def least_squares(a: Any, solver: Any) -> Any:
    return lx.linear_solve(lx.MatrixLinearOperator(a), b6, solver).value


for name, solver in {"auto": lx.AutoLinearSolver(well_posed=None), "qr": lx.QR(), "svd": lx.SVD()}.items():
    value, grad = jax.value_and_grad(lambda a, s=solver: least_squares(a, s).sum())(TALL)
    found[f"least squares, {name}"] = {"value": float(value), "grad": np.asarray(grad).tolist()}
state = lx.LU().init(lx.MatrixLinearOperator(A), {})
reused = lx.linear_solve(lx.MatrixLinearOperator(A), b, lx.LU(), state=state)
found["state"] = np.asarray(reused.value).tolist()
transposed = lx.FunctionLinearOperator(
    lambda x: A @ jax.lax.stop_gradient(x), jax.ShapeDtypeStruct((4,), jnp.float32)
).T
found["transposed"] = np.asarray(transposed.mv(b)).tolist()
found["singular"] = str(
    lx.linear_solve(lx.MatrixLinearOperator(0 * A), b, lx.LU(), throw=False).result == lx.RESULTS.successful
)
sys.stdout.write(json.dumps(found))
