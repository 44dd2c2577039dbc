"""Programs on which systems for automatic differentiation have long been compared, written from their definitions."""

from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.programs.program import Problem, Program


def gaussian_mixture(lib: ModuleType, points: int, dimensions: int, components: int) -> Problem:
    """Compute the log-posterior of a mixture of Gaussians, given by triangular factors, with a Wishart prior."""
    tnp, rng = lib.numpy, np.random.default_rng(1)
    below = np.tril_indices(dimensions, -1)
    parameters = {
        "weights": rng.normal(size=components),
        "means": rng.normal(size=(components, dimensions)),
        "log_diagonal": rng.normal(size=(components, dimensions)) / 4,
        "below": rng.normal(size=(components, len(below[0]))) / 4,
    }

    def log_posterior(p: Any, data: Any) -> Any:
        diagonal = tnp.exp(p["log_diagonal"])
        factors = lib.vmap(lambda d, lower: tnp.diag(d).at[below].set(lower))(diagonal, p["below"])
        white = tnp.einsum("kij,nkj->nki", factors, data[:, None] - p["means"])
        terms = p["weights"] + p["log_diagonal"].sum(axis=1) - tnp.sum(white**2, axis=2) / 2
        top = terms.max(axis=1, keepdims=True)
        likelihood = tnp.sum(top[:, 0] + tnp.log(tnp.sum(tnp.exp(terms - top), axis=1)))
        normaliser = len(data) * tnp.log(tnp.sum(tnp.exp(p["weights"])))
        prior = (tnp.sum(diagonal**2) + tnp.sum(p["below"] ** 2)) / 2 - tnp.sum(p["log_diagonal"])
        return likelihood - normaliser - prior

    return log_posterior, (parameters, rng.normal(size=(points, dimensions)))


def bundle_adjustment(lib: ModuleType, cameras: int, points: int, observations: int) -> Problem:
    """Compute the squared, weighted errors of points projected by cameras with radial distortion."""
    tnp, rng = lib.numpy, np.random.default_rng(2)
    parameters = {
        "cameras": rng.normal(size=(cameras, 11)) / 5 + np.r_[np.zeros(5), 4.0, 2.0, np.zeros(4)],
        "points": rng.normal(size=(points, 3)) / 2,
        "weights": rng.uniform(0.5, 1, size=observations),
    }
    which = [rng.integers(0, n, observations) for n in (cameras, points)]

    def rotated(axis: Any, x: Any) -> Any:
        """Turn a point about an axis by its length (Rodrigues)."""
        angle = tnp.sqrt(tnp.sum(axis**2))
        unit, cos = axis / angle, tnp.cos(angle)
        return x * cos + tnp.cross(unit, x) * tnp.sin(angle) + unit * tnp.dot(unit, x) * (1 - cos)

    def error(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        rotation, centre, focal = camera[:3], camera[3:6], camera[6]
        x = rotated(rotation, point) + centre
        flat = x[:2] / x[2]
        square = tnp.sum(flat**2)
        distorted = flat * (1 + camera[9] * square + camera[10] * square**2)
        return weight * (distorted * focal + camera[7:9] - feature)

    def objective(p: Any, features: Any, camera: Any, point: Any) -> Any:
        errors = lib.vmap(error)(p["cameras"][camera], p["points"][point], p["weights"], features)
        return tnp.sum(errors**2) + tnp.sum((1 - p["weights"] ** 2) ** 2)

    return objective, (parameters, rng.normal(size=(observations, 2)), *which)


def hand_tracking(lib: ModuleType, fingers: int, vertices: int, correspondences: int) -> Problem:
    """Compute the distances of a hand's surface, bent by its bones (linear blend skinning), from measured points."""
    tnp, rng = lib.numpy, np.random.default_rng(3)
    bones = 1 + 4 * fingers
    offsets = rng.normal(size=(bones, 3)) / 3
    parameters = {
        "angles": rng.normal(size=(bones, 3)) / 3,
        "translation": rng.normal(size=3),
        "barycentric": rng.uniform(0, 0.4, size=(correspondences, 2)),
    }
    surface = np.concatenate([rng.normal(size=(vertices, 3)), np.ones((vertices, 1))], axis=1)
    triangles = rng.integers(0, vertices, (correspondences, 3))

    def rotation(angles: Any) -> Any:
        (cx, cy, cz), (sx, sy, sz) = tnp.cos(angles), tnp.sin(angles)
        return tnp.array(
            [
                [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
                [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
                [-sy, sx * cy, cx * cy],
            ]
        )

    def pose(angles: Any, offset: Any) -> Any:
        top = tnp.concatenate([rotation(angles), offset[:, None]], axis=1)
        return tnp.concatenate([top, tnp.array([[0.0, 0.0, 0.0, 1.0]], top.dtype)])

    def objective(p: Any, surface: Any, offsets: Any, weights: Any, measured: Any, triangles: Any) -> Any:
        absolute = [pose(p["angles"][0], offsets[0])]
        for bone in range(1, bones):
            parent = absolute[0] if bone % 4 == 1 else absolute[-1]
            absolute.append(parent @ pose(p["angles"][bone], offsets[bone]))
        bent = tnp.einsum("bij,vj->bvi", tnp.stack(absolute)[:, :3], surface)
        skin = tnp.einsum("vb,bvi->vi", weights, bent) + p["translation"]
        u, v = p["barycentric"].T
        corners = skin[triangles]
        found = tnp.einsum("ck,cki->ci", tnp.stack([u, v, 1 - u - v], axis=1), corners)
        return tnp.sum((measured - found) ** 2)

    weights = rng.dirichlet(np.ones(bones), size=vertices)
    return objective, (parameters, surface, offsets, weights, rng.normal(size=(correspondences, 3)), triangles)


def particle(lib: ModuleType, particles: int, steps: int) -> Problem:
    """Compute where charged particles cross a line, by Euler's steps along a force that is itself a gradient."""
    tnp, rng = lib.numpy, np.random.default_rng(4)

    def potential(x: Any, charges: Any) -> Any:
        return tnp.sum(1 / tnp.sqrt(tnp.sum((x - charges) ** 2, axis=1)))

    def crossing(charges: Any, start: Any) -> Any:
        force = lib.jacfwd(potential)

        def step(state: Any, _: Any) -> Any:
            x, v = state
            return (x + 0.1 * v, v - 0.1 * force(x, charges)), x

        return lib.lax.scan(step, (start, tnp.array([0.75, 0.0], start.dtype)), None, length=steps)[0][0][0]

    def objective(charges: Any, starts: Any) -> Any:
        return tnp.sum(lib.vmap(crossing, in_axes=(None, 0))(charges, starts) ** 2)

    charges = np.array([[10.0, 9.25], [10.0, 0.0]])
    return objective, (charges, np.array([0.0, 8.0]) + rng.uniform(size=(particles, 2)))


def determinant(lib: ModuleType, rows: int, matrices: int) -> Problem:
    """Compute determinants by minors of the first row, recursively."""

    def by_minors(x: Any) -> Any:
        if len(x) == 1:
            return x[0, 0]
        rest = x[1:]
        minors = [lib.numpy.concatenate([rest[:, :j], rest[:, j + 1 :]], axis=1) for j in range(len(x))]
        return sum((-1) ** j * x[0, j] * by_minors(minor) for j, minor in enumerate(minors))

    normal = np.random.default_rng(5).normal(size=(matrices, rows, rows))
    return lambda x: lib.numpy.sum(lib.vmap(by_minors)(x)), (normal,)


def k_means(lib: ModuleType, points: int, dimensions: int, clusters: int) -> Problem:
    """Compute the sum of squared distances of points to the nearest of several centres."""
    tnp, rng = lib.numpy, np.random.default_rng(6)

    def cost(centres: Any, points: Any) -> Any:
        squares = tnp.sum(points**2, axis=1)[:, None] + tnp.sum(centres**2, axis=1) - 2 * points @ centres.T
        return tnp.sum(tnp.min(squares, axis=1))

    return cost, (rng.normal(size=(clusters, dimensions)), rng.normal(size=(points, dimensions)))


def deep_network(lib: ModuleType, layers: int, width: int) -> Problem:
    """Compute a tanh network, its layers written out, and its squared error."""
    rng, sizes = np.random.default_rng(0), [width] * (layers + 1)
    parameters = [{"w": rng.normal(size=s) / width**0.5, "b": np.zeros(s[1])} for s in pairwise(sizes)]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        for layer in parameters:
            x = lib.numpy.tanh(x @ layer["w"] + layer["b"])
        return lib.numpy.mean((x - y) ** 2)

    return loss, (parameters, *rng.normal(size=(2, 16, width)))


PROGRAMS = {
    "Gaussian mixture": Program(
        gaussian_mixture,
        {"points": 100, "dimensions": 4, "components": 3},
        {"points": 2000, "dimensions": 16, "components": 20},
    ),
    "bundle adjustment": Program(
        bundle_adjustment,
        {"cameras": 5, "points": 50, "observations": 200},
        {"cameras": 50, "points": 2000, "observations": 10_000},
    ),
    "hand tracking": Program(
        hand_tracking,
        {"fingers": 2, "vertices": 50, "correspondences": 30},
        {"fingers": 5, "vertices": 544, "correspondences": 200},
    ),
    "particle": Program(particle, {"particles": 1, "steps": 20}, {"particles": 100, "steps": 100}),
    "determinant by minors": Program(determinant, {"rows": 4, "matrices": 1}, {"rows": 5, "matrices": 100}),
    "k-means": Program(
        k_means,
        {"points": 200, "dimensions": 3, "clusters": 5},
        {"points": 10_000, "dimensions": 16, "clusters": 50},
    ),
    "deep network": Program(deep_network, {"layers": 10, "width": 16}, {"layers": 100, "width": 32}),
}
