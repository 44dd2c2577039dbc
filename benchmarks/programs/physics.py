"""Equations of motion, of flow and of electrons: loops over time steps, implicit steps, and an eigenproblem."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.programs.networks import scaled
from benchmarks.programs.program import Problem, Program


def molecular_dynamics(lib: ModuleType, edge: int, steps: int) -> Problem:
    """Compute the potential energy after velocity Verlet steps of Lennard-Jones atoms in a periodic box."""
    tnp, rng, side = lib.numpy, np.random.default_rng(20), 1.3 * edge
    grid = np.stack(np.meshgrid(*[np.arange(edge) * 1.3] * 3), axis=-1).reshape(-1, 3)
    start = grid + rng.normal(size=grid.shape) / 20

    def energy(x: Any, p: Any) -> Any:
        apart = x[:, None] - x
        apart = apart - side * tnp.round(apart / side)
        square = tnp.sum(apart**2, axis=-1) + tnp.eye(len(x), dtype=x.dtype)
        sixth = (p["sigma"] ** 2 / square) ** 3
        pairs = 4 * p["epsilon"] * (sixth**2 - sixth) * (1 - tnp.eye(len(x), dtype=x.dtype))
        return tnp.sum(pairs) / 2

    def last_energy(p: Any, start: Any) -> Any:
        force = lib.grad(lambda x: -energy(x, p))

        def step(state: Any, _: Any) -> Any:
            x, v = state
            v = v + 0.001 * force(x)
            x = x + 0.002 * v
            return (x, v + 0.001 * force(x)), None

        (x, _), _ = lib.lax.scan(step, (start, tnp.zeros_like(start)), None, length=steps)
        return energy(x, p)

    return last_energy, ({"sigma": np.float64(1), "epsilon": np.float64(1)}, start)


def hartree_fock(lib: ModuleType, pairs: int, cycles: int) -> Problem:
    """Compute the energy of a chain of hydrogen atoms by self-consistent cycles, a Gaussian function at each atom."""
    tnp, rng = lib.numpy, np.random.default_rng(21)
    positions = np.cumsum(rng.uniform(1.2, 1.9, 2 * pairs))[:, None] * np.array([1.0, 0.1, 0.0])

    def boys(t: Any) -> Any:
        """Compute the integral of exp(-t s^2) for s from 0 to 1."""
        small = t < 1e-3
        root = tnp.sqrt(tnp.where(small, 1, t))
        return tnp.where(small, 1 - t / 3, np.pi**0.5 / 2 * lib.lax.erf(root) / root)

    def squared(x: Any) -> Any:
        return tnp.sum(x**2, axis=-1)

    def energy(x: Any, exponents: Any) -> Any:
        a = exponents[:, None] + exponents
        b = exponents[:, None] * exponents / a
        apart = squared(x[:, None] - x)
        norms = (2 * exponents / np.pi) ** 0.75
        overlap = norms[:, None] * norms * (np.pi / a) ** 1.5 * tnp.exp(-b * apart)
        kinetic = overlap * b * (3 - 2 * b * apart)
        centre = (exponents[:, None, None] * x[:, None] + exponents[None, :, None] * x) / a[..., None]
        nuclear = squared(centre[:, :, None] - x) * a[..., None]
        attraction = -2 * overlap * tnp.sqrt(a / np.pi) * tnp.sum(boys(nuclear), axis=-1)
        both = a[:, :, None, None] + a
        reduced = a[:, :, None, None] * a / both
        far = squared(centre[:, :, None, None] - centre)
        repulsion = overlap[:, :, None, None] * overlap * 2 * tnp.sqrt(reduced / np.pi) * boys(reduced * far)
        core = kinetic + attraction
        values, vectors = tnp.linalg.eigh(overlap)
        orthogonal = vectors / tnp.sqrt(values) @ vectors.T

        def cycle(density: Any, _: Any) -> Any:
            coulomb = tnp.einsum("pqrs,rs->pq", repulsion, density)
            exchange = tnp.einsum("prqs,rs->pq", repulsion, density)
            fock = core + coulomb - exchange / 2
            orbitals = orthogonal @ tnp.linalg.eigh(orthogonal.T @ fock @ orthogonal)[1][:, :pairs]
            return 2 * orbitals @ orbitals.T, tnp.sum(density * (core + fock)) / 2

        _, energies = lib.lax.scan(cycle, tnp.zeros_like(overlap), None, length=cycles)
        distances = tnp.sqrt(apart + tnp.eye(len(x), dtype=x.dtype))
        return energies[-1] + tnp.sum((1 - tnp.eye(len(x), dtype=x.dtype)) / distances) / 2

    return energy, (positions, rng.uniform(0.3, 0.5, 2 * pairs))


def implicit_diffusion(lib: ModuleType, width: int, steps: int) -> Problem:
    """Compute how far a diffusing concentration is from a target, by implicit steps, each a sparse linear system."""
    tnp, rng = lib.numpy, np.random.default_rng(22)

    def diffused(u: Any, conductivity: Any) -> Any:
        right = conductivity * (tnp.roll(u, -1, axis=0) - u)
        up = conductivity * (tnp.roll(u, -1, axis=1) - u)
        return right - tnp.roll(right, 1, axis=0) + up - tnp.roll(up, 1, axis=1)

    def loss(logarithm: Any, start: Any, target: Any) -> Any:
        conductivity = tnp.exp(logarithm)

        def step(u: Any, _: Any) -> Any:
            u, _ = lib.scipy.sparse.linalg.cg(lambda v: v - 0.1 * diffused(v, conductivity), u, tol=1e-6, maxiter=50)
            return u + 0.1 * u * (1 - u), None

        return tnp.mean((lib.lax.scan(step, start, None, length=steps)[0] - target) ** 2)

    return loss, (rng.normal(size=(width, width)) / 4, *rng.uniform(size=(2, width, width)))


def classical_runge_kutta(lib: ModuleType, slope: Any, start: Any, length: float, steps: int) -> Any:
    """Integrate an autonomous ODE by the fourth-order method of Runge and Kutta."""

    def step(y: Any, _: Any) -> Any:
        a = slope(y)
        b = slope(y + length / 2 * a)
        c = slope(y + length / 2 * b)
        d = slope(y + length * c)
        return y + length / 6 * (a + 2 * b + 2 * c + d), None

    return lib.lax.scan(step, start, None, length=steps)[0]


def runge_kutta(lib: ModuleType, variables: int, steps: int) -> Problem:
    """Compute the size of the state of Lorenz's model of the atmosphere (1996) after some time."""
    tnp, rng = lib.numpy, np.random.default_rng(23)

    def loss(forcing: Any, start: Any) -> Any:
        def slope(y: Any) -> Any:
            return (tnp.roll(y, -1) - tnp.roll(y, 2)) * tnp.roll(y, 1) - y + forcing

        return tnp.mean(classical_runge_kutta(lib, slope, start, 0.01, steps) ** 2)

    return loss, (8 + rng.normal(size=variables), rng.normal(size=variables))


def neural_ode(lib: ModuleType, batch: int, width: int, steps: int) -> Problem:
    """Compute the squared error of a flow whose velocity is a network of one hidden layer."""
    tnp, rng = lib.numpy, np.random.default_rng(24)
    parameters = {"in": scaled(rng, 4, width), "bias": np.zeros(width), "out": scaled(rng, width, 4)}

    def loss(p: Any, start: Any, target: Any) -> Any:
        def velocity(y: Any) -> Any:
            return tnp.tanh(y @ p["in"] + p["bias"]) @ p["out"]

        return tnp.mean((classical_runge_kutta(lib, velocity, start, 0.1, steps) - target) ** 2)

    return loss, (parameters, *rng.normal(size=(2, batch, 4)))


def burgers(lib: ModuleType, points: int, width: int) -> Problem:
    """Compute the residual of Burgers' equation for a network of time and place, by derivatives of its output."""
    tnp, rng = lib.numpy, np.random.default_rng(25)
    parameters = [scaled(rng, 2, width), scaled(rng, width, width), scaled(rng, width, 1)]

    def loss(p: Any, times: Any, places: Any) -> Any:
        def u(t: Any, x: Any) -> Any:
            return (tnp.tanh(tnp.tanh(tnp.stack([t, x]) @ p[0]) @ p[1]) @ p[2])[0]

        def residual(t: Any, x: Any) -> Any:
            slope = lib.grad(u, argnums=1)
            return lib.grad(u)(t, x) + u(t, x) * slope(t, x) - 0.01 * lib.grad(slope, argnums=1)(t, x)

        return tnp.mean(lib.vmap(residual)(times, places) ** 2)

    return loss, (parameters, *rng.uniform(-1, 1, size=(2, points)))


def cart_pole(lib: ModuleType, steps: int, carts: int) -> Problem:
    """Compute the cost of forces on carts that shall balance a pole, by semi-implicit steps of scalar equations."""
    tnp, rng = lib.numpy, np.random.default_rng(26)

    def cost(forces: Any, start: Any) -> Any:
        def step(state: Any, force: Any) -> Any:
            place, speed, angle, turn = state
            sin, cos = tnp.sin(angle), tnp.cos(angle)
            pull = (force + 0.05 * turn**2 * sin) / 1.1
            twist = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
            speed = speed + 0.02 * (pull - 0.05 * twist * cos / 1.1)
            turn = turn + 0.02 * twist
            after = (place + 0.02 * speed, speed, angle + 0.02 * turn, turn)
            return after, place**2 + 10 * (1 - cos) + 0.01 * force**2

        return tnp.sum(lib.lax.scan(step, tuple(start), forces)[1])

    def total(forces: Any, starts: Any) -> Any:
        return tnp.sum(lib.vmap(cost)(forces, starts))

    return total, (rng.normal(size=(carts, steps)), rng.normal(size=(carts, 4)) / 10)


PROGRAMS = {
    "molecular dynamics": Program(molecular_dynamics, {"edge": 2, "steps": 5}, {"edge": 4, "steps": 50}),
    # Eigenvectors of a float32 matrix are exact to its rounding times the inverse distance of eigenvalues.
    "Hartree-Fock": Program(hartree_fock, {"pairs": 2, "cycles": 5}, {"pairs": 6, "cycles": 15}, tolerance=2e-2),
    "diffusion, implicit": Program(implicit_diffusion, {"width": 8, "steps": 3}, {"width": 64, "steps": 20}),
    "Runge-Kutta": Program(runge_kutta, {"variables": 1000, "steps": 20}, {"variables": 10_000, "steps": 100}),
    "neural ODE": Program(neural_ode, {"batch": 4, "width": 16, "steps": 10}, {"batch": 64, "width": 128, "steps": 50}),
    "Burgers' equation": Program(burgers, {"points": 20, "width": 8}, {"points": 1000, "width": 32}),
    "cart and pole": Program(cart_pole, {"steps": 20, "carts": 1}, {"steps": 200, "carts": 32}),
}
