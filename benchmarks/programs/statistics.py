"""Densities and their fits: processes, filters, flows, chains, sparse data, learning to learn."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.programs.compositions import chain
from benchmarks.programs.networks import KEY, scaled
from benchmarks.programs.program import Problem, Program


def gaussian_process(lib: ModuleType, points: int) -> Problem:
    """Compute the log-density of the scales of a Gaussian process, given values at some points."""
    tnp, rng = lib.numpy, np.random.default_rng(30)

    def log_density(logarithms: Any, x: Any, y: Any, key: Any) -> Any:
        length, height, noise = tnp.exp(logarithms)
        covariance = height**2 * tnp.exp(-(((x[:, None] - x) / length) ** 2) / 2)
        factor = tnp.linalg.cholesky(covariance + (noise**2 + 1e-3) * tnp.eye(points, dtype=x.dtype))
        white = lib.scipy.linalg.solve_triangular(factor, y, lower=True)
        prior = tnp.sum(logarithms**2) / 2
        return -(white @ white) / 2 - tnp.sum(tnp.log(tnp.diagonal(factor))) - prior

    x = np.sort(rng.uniform(0, 10, points))
    return log_density, (np.array([0.0, 0.0, -1.0]), x, np.sin(x) + rng.normal(size=points) / 5, KEY)


def kalman_filter(lib: ModuleType, states: int, observed: int, steps: int) -> Problem:
    """Compute the log-likelihood of observations of a linear system, by prediction and correction at each step."""
    tnp, rng = lib.numpy, np.random.default_rng(31)
    parameters = {
        "motion": 0.9 * np.eye(states) + rng.normal(size=(states, states)) / (10 * states),
        "observation": scaled(rng, states, observed).T,
        "process": np.zeros(states),
        "noise": np.zeros(observed),
    }

    def log_likelihood(p: Any, observations: Any) -> Any:
        a, c = p["motion"], p["observation"]
        q, r = tnp.diag(tnp.exp(p["process"])), tnp.diag(tnp.exp(p["noise"]))

        def step(belief: Any, y: Any) -> Any:
            mean, covariance = belief
            mean, covariance = a @ mean, a @ covariance @ a.T + q
            innovation, spread = y - c @ mean, c @ covariance @ c.T + r
            gain = tnp.linalg.solve(spread, c @ covariance).T
            log_density = -(innovation @ tnp.linalg.solve(spread, innovation) + tnp.linalg.slogdet(spread)[1]) / 2
            return (mean + gain @ innovation, covariance - gain @ c @ covariance), log_density

        start = (tnp.zeros(states, a.dtype), tnp.eye(states, dtype=a.dtype))
        return tnp.sum(lib.lax.scan(step, start, observations)[1])

    return log_likelihood, (parameters, rng.normal(size=(steps, observed)))


def hidden_markov_model(lib: ModuleType, states: int, symbols: int, steps: int) -> Problem:
    """Compute the log-likelihood of a sequence under a hidden Markov model, by the forward algorithm in logarithms."""
    rng = np.random.default_rng(32)
    parameters = {"transition": rng.normal(size=(states, states)), "emission": rng.normal(size=(states, symbols))}

    def log_likelihood(p: Any, sequence: Any) -> Any:
        transition, emission = lib.nn.log_softmax(p["transition"]), lib.nn.log_softmax(p["emission"])

        def step(forward: Any, symbol: Any) -> Any:
            ahead = lib.scipy.special.logsumexp(forward[:, None] + transition, axis=0)
            return ahead + emission[:, symbol], None

        start = emission[:, sequence[0]] - np.log(states)
        return lib.scipy.special.logsumexp(lib.lax.scan(step, start, sequence[1:])[0])

    return log_likelihood, (parameters, rng.integers(0, symbols, steps))


def normalizing_flow(lib: ModuleType, layers: int, width: int, batch: int) -> Problem:
    """Compute the negative log-likelihood of data under affine coupling layers, whose scales are networks."""
    tnp, rng, half = lib.numpy, np.random.default_rng(33), 4
    parameters = [
        {"in": scaled(rng, half, width), "bias": np.zeros(width), "out": scaled(rng, width, 2 * half) / 4}
        for _ in range(layers)
    ]

    def loss(p: Any, data: Any) -> Any:
        left, right = tnp.split(data, 2, axis=1)
        log_volume = 0.0
        for layer in p:
            log_scale, shift = tnp.split(tnp.tanh(left @ layer["in"] + layer["bias"]) @ layer["out"], 2, axis=1)
            left, right = right * tnp.exp(log_scale) + shift, left
            log_volume = log_volume + tnp.sum(log_scale, axis=1)
        return tnp.mean(tnp.sum(left**2, axis=1) / 2 + tnp.sum(right**2, axis=1) / 2 - log_volume)

    return loss, (parameters, rng.normal(size=(batch, 2 * half)))


def sparse_logistic_regression(lib: ModuleType, examples: int, features: int, entries: int) -> Problem:
    """Compute the penalised log-loss of a linear classifier of examples that have few features each."""
    tnp, rng = lib.numpy, np.random.default_rng(34)

    def loss(weights: Any, values: Any, rows: Any, columns: Any, labels: Any) -> Any:
        logits = lib.ops.segment_sum(values * weights[columns], rows, examples)
        penalty = tnp.sum(tnp.sqrt(weights**2 + 1e-4))
        return tnp.mean(lib.nn.softplus(-labels * logits)) + 1e-3 * penalty

    count = examples * entries
    rows, columns = np.repeat(np.arange(examples), entries), rng.integers(0, features, count)
    labels = rng.choice([-1.0, 1.0], examples)
    return loss, (rng.normal(size=features), rng.normal(size=count), rows, columns, labels)


def maml(lib: ModuleType, tasks: int, shots: int, width: int) -> Problem:
    """Compute the loss of a network on tasks after it has adapted to each by three steps of gradient descent."""
    tnp, rng = lib.numpy, np.random.default_rng(35)
    parameters = [
        {"w": scaled(rng, *shape), "b": np.zeros(shape[1])} for shape in ((1, width), (width, width), (width, 1))
    ]

    def error(p: Any, x: Any, y: Any) -> Any:
        for layer in p[:-1]:
            x = tnp.tanh(x @ layer["w"] + layer["b"])
        return tnp.mean((x @ p[-1]["w"] + p[-1]["b"] - y) ** 2)

    def adapted(p: Any, x: Any, y: Any) -> Any:
        for _ in range(3):
            p = lib.tree.map(lambda w, g: w - 0.01 * g, p, lib.grad(error)(p, x, y))
        return p

    def loss(p: Any, x: Any, y: Any) -> Any:
        def of_a_task(x: Any, y: Any) -> Any:
            return error(adapted(p, x[::2], y[::2]), x[1::2], y[1::2])

        return tnp.mean(lib.vmap(of_a_task)(x, y))

    x = rng.uniform(-3, 3, size=(tasks, 2 * shots, 1))
    return loss, (parameters, x, np.sin(x + rng.uniform(size=(tasks, 1, 1))))


def heston(lib: ModuleType, paths: int, steps: int) -> Problem:
    """Compute the price of an option on an asset of stochastic volatility, from paths by Euler's steps."""
    tnp, rng = lib.numpy, np.random.default_rng(36)
    parameters = {
        name: np.float64(value)
        for name, value in {"pull": 2.0, "level": 0.04, "wobble": 0.3, "correlation": -0.5, "start": 0.04}.items()
    }

    def price(p: Any, noise: Any) -> Any:
        length = 1 / steps

        def step(state: Any, noise: Any) -> Any:
            log_price, variance = state
            variance = tnp.maximum(variance, 1e-4)
            spread = tnp.sqrt(variance * length)
            other = p["correlation"] * noise[0] + tnp.sqrt(1 - p["correlation"] ** 2) * noise[1]
            after = variance + p["pull"] * (p["level"] - variance) * length + p["wobble"] * spread * other
            return (log_price - variance * length / 2 + spread * noise[0], after), None

        start = (tnp.zeros_like(noise[0, 0]), tnp.full_like(noise[0, 0], 1) * p["start"])
        (log_price, _), _ = lib.lax.scan(step, start, noise)
        return tnp.mean(tnp.maximum(tnp.exp(log_price) - 1, 0))

    return price, (parameters, rng.normal(size=(steps, 2, paths)))


def sinkhorn(lib: ModuleType, points: int, cycles: int) -> Problem:
    """Compute the cost of moving one cloud of points to another, by alternate scaling in logarithms."""
    tnp, rng = lib.numpy, np.random.default_rng(37)

    def cost(x: Any, y: Any) -> Any:
        costs = tnp.sum((x[:, None] - y) ** 2, axis=-1)
        logsumexp = lib.scipy.special.logsumexp

        def cycle(potentials: Any, _: Any) -> Any:
            f, g = potentials
            f = -0.1 * logsumexp((g - costs) / 0.1, axis=1)
            return (f, -0.1 * logsumexp((f[:, None] - costs) / 0.1, axis=0)), None

        zero = tnp.zeros(len(x), x.dtype)
        (f, g), _ = lib.lax.scan(cycle, (zero, zero), None, length=cycles)
        return tnp.sum(tnp.exp((f[:, None] + g - costs) / 0.1) * costs)

    return cost, tuple(rng.uniform(size=(2, points, 2)))


PROGRAMS = {
    "Gaussian process": Program(gaussian_process, {"points": 30}, {"points": 300}),
    "Hamiltonian Monte Carlo": Program(gaussian_process, {"points": 20}, {"points": 100}, derivative=chain),
    "Kalman filter": Program(
        kalman_filter, {"states": 4, "observed": 2, "steps": 20}, {"states": 16, "observed": 8, "steps": 200}
    ),
    "hidden Markov model": Program(
        hidden_markov_model,
        {"states": 4, "symbols": 5, "steps": 20},
        {"states": 64, "symbols": 50, "steps": 500},
    ),
    "normalizing flow": Program(
        normalizing_flow, {"layers": 2, "width": 8, "batch": 16}, {"layers": 12, "width": 64, "batch": 512}
    ),
    "sparse logistic regression": Program(
        sparse_logistic_regression,
        {"examples": 50, "features": 30, "entries": 5},
        {"examples": 5000, "features": 2000, "entries": 40},
    ),
    "MAML": Program(maml, {"tasks": 2, "shots": 5, "width": 8}, {"tasks": 25, "shots": 10, "width": 40}),
    "Heston's model": Program(heston, {"paths": 50, "steps": 10}, {"paths": 10_000, "steps": 100}),
    "Sinkhorn's distance": Program(sinkhorn, {"points": 20, "cycles": 10}, {"points": 300, "cycles": 50}),
}
