"""Bayesian logistic regression, with the prior learned from the data: `python examples/tumours.py`.

The data, which come with scikit-learn, are 30 measurements of each of 569 tumours: which are malignant? The weights
have a normal prior, and the quality of predictions depends on its width. MacKay (1992) takes the prior that makes the
data most likely, in Laplace's approximation around the best weights:

    evidence(prior) = log p(data | weights*) + log p(weights* | prior) - 1/2 log det H / (2 pi)

Here the best weights are the root of a gradient, found by Newton's method with conjugate gradients (`custom_root`,
`while_loop`), H is a `hessian`, and the evidence is differentiated with respect to the prior through both. `vmap`
plots it for many priors at once. Takes seconds. Writes tumours.png.
"""

import sys
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from tqdm import tqdm

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

STEPS, RATE = 40, 1.0  # of gradient ascent on the logarithm of the prior's precision


# ---- the model


def log_posterior(weights, log_precision, x, y):
    """Compute log p(y | weights, x) + log p(weights | precision), up to a constant of neither."""
    z = x @ weights
    likelihood = tnp.sum(y * z - tnp.logaddexp(0.0, z))
    prior = 0.5 * len(weights) * log_precision - 0.5 * tnp.exp(log_precision) * tnp.vdot(weights, weights)
    return likelihood + prior


def conjugate_gradients(matvec, b):
    """Solve matvec(x) = b for x, of a symmetric positive matrix (Hestenes & Stiefel 1952)."""

    def step(state):
        x, r, p, rr = state
        q = matvec(p)
        a = rr / tnp.vdot(p, q)
        r = r - a * q
        return x + a * p, r, r + tnp.vdot(r, r) / rr * p, tnp.vdot(r, r)

    start = tnp.zeros_like(b), b, b, tnp.vdot(b, b)
    return lax.while_loop(lambda state: state[3] > 1e-18 * start[3], step, start)[0]


def newton(f, guess):
    """Find the root of f, whose derivative is a symmetric negative matrix."""

    def step(state):
        x, y, _ = state
        move = conjugate_gradients(lambda v: -tl.jvp(f, (x,), (v,))[1], y)
        return x + move, f(x + move), tnp.vdot(move, move)

    return lax.while_loop(lambda state: state[2] > 1e-20, step, (guess, f(guess), tnp.ones((), guess.dtype)))[0]


def best_weights(log_precision, x, y):
    """Find the weights at the maximum of the posterior, where its gradient is zero."""
    gradient = tl.grad(log_posterior)
    return lax.custom_root(
        lambda w: gradient(w, log_precision, x, y),
        tnp.zeros(x.shape[1], x.dtype),
        newton,
        lambda matvec, b: -conjugate_gradients(lambda v: -matvec(v), b),
    )


def log_det(matrix):
    """Compute the log-determinant of a symmetric positive matrix, by elimination in place."""

    def eliminate(k, state):
        a, total = state
        return a - tnp.outer(a[:, k], a[k]) / a[k, k], total + tnp.log(a[k, k])

    return lax.fori_loop(0, len(matrix), eliminate, (matrix, tnp.zeros((), matrix.dtype)))[1]


def log_evidence(log_precision, x, y):
    weights = best_weights(log_precision, x, y)
    curvature = -tl.hessian(log_posterior)(weights, log_precision, x, y)
    return log_posterior(weights, log_precision, x, y) - 0.5 * log_det(curvature)


def probability(log_precision, x, y, new):
    """Compute how likely new cases are malignant, uncertainty about the weights included (MacKay 1992, eq. 10)."""
    weights = best_weights(log_precision, x, y)
    curvature = -tl.hessian(log_posterior)(weights, log_precision, x, y)
    spread = tl.vmap(lambda case: tnp.vdot(case, conjugate_gradients(lambda v: curvature @ v, case)))(new)
    return 1 / (1 + tnp.exp(-(new @ weights) / tnp.sqrt(1 + tnp.pi / 8 * spread)))


# ---- looking at it


def picture(path, grid, evidence, held_out, path_taken):
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(grid, evidence, color="C0")
    left.plot(*np.transpose(path_taken), "o-", color="C3", markersize=3, linewidth=0.8, label="gradient ascent")
    left.set(xlabel="log precision of the prior", ylabel="log evidence", title="What the data say of the prior")
    left.legend(frameon=False)
    right.plot(grid, held_out, color="C0")
    right.axvline(path_taken[-1][0], color="C3", linestyle="--", label="the prior that was learnt")
    right.set(xlabel="log precision of the prior", ylabel="nats for a case", title="Loss on held-out cases")
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main(path="tumours.png"):
    began = perf_counter()
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    measured = (data.data - data.data.mean(0)) / data.data.std(0)
    x, y = np.column_stack([np.ones(len(measured)), measured])[order], np.float64(data.target == 0)[order]
    known, new = slice(0, 200), slice(200, None)
    print(f"{len(y)} tumours: {len(y[known])} to learn from, {len(y[new])} held out, on {tl.devices()[0]}")

    slope = tl.jit(tl.value_and_grad(log_evidence))
    log_precision, path_taken = np.float64(4.0), []
    for _ in tqdm(range(STEPS), desc="choosing the prior", unit="step"):
        value, derivative = slope(log_precision, x[known], y[known])
        path_taken.append((float(log_precision), float(value)))
        log_precision = np.float64(log_precision + RATE * np.tanh(float(derivative) / 4))

    grid = np.linspace(-6, 5, 45)
    evidence = tl.jit(tl.vmap(log_evidence, (0, None, None)))(grid, x[known], y[known])
    predicted = tl.jit(tl.vmap(probability, (0, None, None, None)))(grid, x[known], y[known], x[new])
    right = np.where(y[new] == 1, predicted, 1 - np.asarray(predicted))
    held_out = -np.log(right).mean(1)
    picture(path, grid, evidence, held_out, path_taken)

    at_best = np.asarray(probability(log_precision, x[known], y[known], x[new]))
    accuracy = np.mean((at_best > 0.5) == (y[new] == 1))
    print(f"log precision {float(log_precision):.3f}, where the slope of the evidence is {float(derivative):.1e}")
    print(f"the best of {len(grid)} priors on the curve: {grid[np.argmax(evidence)]:.2f}")
    print(f"held-out accuracy {accuracy:.1%}, {-np.log(np.where(y[new] == 1, at_best, 1 - at_best)).mean():.3f} nats")
    print(f"wrote {path} after {perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
