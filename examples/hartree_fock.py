"""The Hartree-Fock method, with derivatives as formulas: `python examples/hartree_fock.py`.

Each electron of a molecule moves in the mean field of the others. The energy of their orbitals C is a polynomial with
integrals of Gaussian functions as coefficients, written here in the index language. From types alone `index.grad`
derives the Fock matrix (the gradient with respect to the density) and the gradient with respect to the orbitals, and
`index.pullback` the product with the Hessian. The formulas are printed, and used: the Fock matrix for the
self-consistent field, the Hessian for Newton's method.

All integrals follow from those of spherical Gaussians: a p function is the derivative of an s function by its centre
(Boys 1950; McMurchie & Davidson 1978), here by `jvp`. `grad` through the integrals gives the forces on the nuclei,
which relax the molecule. Atomic units; the basis is STO-3G. Values to compare with: Szabo & Ostlund, Modern Quantum
Chemistry (1989), H2 at 1.4 bohr: -1.1167; T. D. Crawford's programming projects, water: -74.942079928192. Takes
less than a minute. Writes hartree_fock.png.
"""

import sys
from functools import partial
from itertools import combinations_with_replacement
from math import gamma
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless import lax

# STO-3G (Hehre, Stewart & Pople 1969): the exponents and the weights of the three Gaussians of a shell
WEIGHTS = {
    "1s": [0.15432897, 0.53532814, 0.44463454],
    "2s": [-0.09996723, 0.39951283, 0.70011547],
    "2p": [0.15591627, 0.60768372, 0.39195739],
}
SHELLS = {
    1: {"1s": [3.42525091, 0.62391373, 0.16885540]},
    8: {
        "1s": [130.7093200, 23.8088610, 6.4436083],
        "2s": [5.0331513, 1.1695961, 0.3803890],
        "2p": [5.0331513, 1.1695961, 0.3803890],
    },
}
ORDERS = 5  # of derivatives of the Boys function: one for each p function, and one for forces
FAR = 36.0  # where exp(-t) does not matter any more to the integral of exp(-t u^2)
WATER = [[0, 0, -0.143225816552], [0, 1.638036840407, 1.136548822547], [0, -1.638036840407, 1.136548822547]]


# ---- integrals of Gaussian functions


class Basis(NamedTuple):
    """Functions, each a sum of three Gaussians around an atom, times x, y or z if it has a direction."""

    atom: np.ndarray  # [n]
    direction: np.ndarray  # [n, 3]
    exponent: np.ndarray  # [n, 3]
    weight: np.ndarray  # [n, 3]


def basis_of(charges):
    rows = []
    for atom, charge in enumerate(charges):
        for shell, exponents in SHELLS[charge].items():
            a = np.array(exponents)
            norm = (2 * a / np.pi) ** 0.75 * (1 if shell[1] == "s" else 2 * np.sqrt(a))
            directions = np.eye(3) if shell[1] == "p" else np.zeros((1, 3))
            rows += [(atom, d, a, norm * WEIGHTS[shell]) for d in directions]
    return Basis(*map(np.array, zip(*rows)))


def boys(t):
    """Integrate exp(-t u^2) from 0 to 1. Integrals of u^2n exp(-t u^2) are its derivatives by t, up to signs."""
    small, last = tnp.minimum(t, FAR), tnp.ones_like(t) / (2 * ORDERS + 1)

    def add(k, state):
        term, total = state
        term = term * 2 * small / (2 * ORDERS + 2 * k + 3)
        return term, total + term

    orders = [tnp.exp(-small) * lax.fori_loop(0, 140, add, (last, last))[1]]
    for n in reversed(range(ORDERS)):  # downwards, which is stable
        orders.insert(0, (2 * small * orders[0] + tnp.exp(-small)) / (2 * n + 1))
    far = [gamma(n + 0.5) / (2 * tnp.maximum(t, FAR) ** (n + 0.5)) for n in range(ORDERS + 1)]
    return _boys(0, t, lax.stop_gradient(tnp.where(t < FAR, tnp.stack(orders), tnp.stack(far))))


@partial(tl.custom_jvp, nondiff_argnums=(0,))
def _boys(n, t, orders):
    return orders[n]


@_boys.defjvp
def _boys_jvp(n, primals, tangents):
    t, orders = primals
    return _boys(n, t, orders), -_boys(n + 1, t, orders) * tangents[0]


def square(x):
    return tnp.vdot(x, x)


def overlap(a, b, A, B):
    return (tnp.pi / (a + b)) ** 1.5 * tnp.exp(-a * b / (a + b) * square(A - B))


def kinetic(a, b, A, B):
    reduced = a * b / (a + b)
    return reduced * (3 - 2 * reduced * square(A - B)) * overlap(a, b, A, B)


def attraction(nuclei, charges, a, b, A, B):
    p, centre = a + b, (a * A + b * B) / (a + b)
    fields = tl.vmap(lambda nucleus: boys(p * square(centre - nucleus)))(nuclei)
    return -2 * tnp.sqrt(p / tnp.pi) * tnp.vdot(np.array(charges, float), fields) * overlap(a, b, A, B)


def repulsion(a, b, c, d, A, B, C, D):
    p, q, apart = a + b, c + d, (a * A + b * B) / (a + b) - (c * C + d * D) / (c + d)
    reduced = p * q / (p + q)
    return 2 * tnp.sqrt(reduced / tnp.pi) * boys(reduced * square(apart)) * overlap(a, b, A, B) * overlap(c, d, C, D)


def with_directions(integral):
    """Integrate Gaussians times x, y or z, from integrals of Gaussians: (x - A) g is the derivative of g by A / 2a."""

    def directed(exponents, centres, directions):
        f = partial(integral, *exponents)
        for k, (a, d) in enumerate(zip(exponents, directions)):
            f = _directed(f, k, a, d)
        return f(*centres)

    return directed


def _directed(f, k, a, d):
    def g(*centres):
        zeros = [tnp.zeros_like(x) for x in centres]
        value, slope = tl.jvp(f, centres, (*zeros[:k], d / (2 * a), *zeros[k + 1 :]))
        return (1 - square(d)) * value + slope

    return g


def over_functions(integral, basis, positions, functions):
    """Integrate functions of the basis, [m, 2 or 4] numbers of them: [m]."""
    rank = functions.shape[1]
    gaussians = np.stack(np.meshgrid(*[range(3)] * rank, indexing="ij"), -1).reshape(-1, rank)  # one of each function
    at = functions[:, None, :], gaussians[None]
    exponents, weights = basis.exponent[at], basis.weight[at].prod(-1)
    directions = np.broadcast_to(basis.direction[functions][:, None], (*exponents.shape, 3))
    centres = tnp.broadcast_to(positions[basis.atom[functions]][:, None], directions.shape)
    found = tl.vmap(with_directions(integral))(
        exponents.reshape(-1, rank), centres.reshape(-1, rank, 3), directions.reshape(-1, rank, 3)
    )
    return (weights * found.reshape(weights.shape)).sum(1)


def integrals(positions, charges):
    """Compute overlaps [n, n], energies of one electron [n, n], and repulsions [n, n, n, n], eight of each equal."""
    basis = basis_of(charges)
    n = len(basis.atom)
    pairs = np.array(list(combinations_with_replacement(range(n), 2)))
    number = np.zeros((n, n), int)
    number[pairs[:, 0], pairs[:, 1]] = number[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    both = np.array(list(combinations_with_replacement(range(len(pairs)), 2)))
    place = np.zeros((len(pairs), len(pairs)), int)
    place[both[:, 0], both[:, 1]] = place[both[:, 1], both[:, 0]] = np.arange(len(both))

    over = partial(over_functions, basis=basis, positions=positions)
    S = over(overlap, functions=pairs)[number]
    field = partial(attraction, positions, charges)
    h = (over(kinetic, functions=pairs) + over(field, functions=pairs))[number]
    J = over(repulsion, functions=pairs[both].reshape(-1, 4))[place][number][:, :, number]
    return S, h, J


def repulsion_of_nuclei(positions, charges):
    return sum(
        charges[i] * charges[j] / tnp.sqrt(square(positions[i] - positions[j]))
        for j in range(len(charges))
        for i in range(j)
    )


# ---- the energy, and what is derived of it


def energy_of_density(P, h, J):
    n = len(P)
    return ix.sum((n, n), lambda p, q: P[p, q] * h[p, q]) + ix.sum(
        (n,) * 4, lambda p, q, r, s: (0.5 * J[p, q, r, s] - 0.25 * J[p, s, r, q]) * P[p, q] * P[r, s]
    )


def energy(C, h, J):
    """Compute the energy of two electrons in each of the orbitals C[:, i]."""
    n, m = C.shape
    return 2 * ix.sum((m, n, n), lambda i, p, q: C[p, i] * C[q, i] * h[p, q]) + ix.sum(
        (m, m, n, n, n, n),
        lambda i, j, p, q, r, s: C[p, i] * C[q, i] * C[r, j] * C[s, j] * (2 * J[p, q, r, s] - J[p, s, r, q]),
    )


class Derivatives(NamedTuple):
    """Formulas, for n functions and m orbitals."""

    fock: Any
    gradient: Any
    hessian: Any


def derivatives(n, m):
    P, h = (ix.Space(name, (n, n), symmetries="symmetric") for name in "Ph")
    J = ix.Space("J", (n,) * 4, symmetries=[((1, 0, 2, 3), "id"), ((2, 3, 0, 1), "id")])
    C, k = ix.Space("C", (n, m)), ix.Space("k", (n, m))
    gradient = ix.grad(energy)(C, h, J).expand().simplify()
    hessian = ix.pullback(gradient)(C, h, J, k).simplify()
    return Derivatives(ix.grad(energy_of_density)(P, h, J).expand().simplify(), gradient, hessian)


# ---- orbitals


def lowest_orbitals(F, X, m):
    """Find the m orbitals of lowest energy, and the others; X is the inverse square root of the overlaps."""
    _, vectors = np.linalg.eigh(X @ F @ X)
    return X @ vectors[:, :m], X @ vectors[:, m:]


def inverse_square_root(S):
    values, vectors = np.linalg.eigh(S)
    return vectors / np.sqrt(values) @ vectors.T


def self_consistent(S, h, J, m, formulas, tolerance=1e-10, most=200):
    """Diagonalize the Fock matrix of the density until that does not change: orbitals, and energies on the way."""
    fock = formulas.fock.compile(h=h, J=J)
    X, F, energies = inverse_square_root(S), h, []
    value = tl.jit(energy)
    for _ in range(most):
        C, _ = lowest_orbitals(F, X, m)
        energies.append(float(value(C, h, J)))
        new = np.asarray(fock(2 * C @ C.T))
        if np.max(np.abs(new @ C @ C.T @ S - S @ C @ C.T @ new)) < tolerance:
            break
        F = new
    return C, energies


def newton(C, S, h, J, formulas, steps=4):
    """Run Newton's method on orthonormal orbitals, from orbitals nearly self-consistent: energies on the way."""
    gradient, hessian = (f.compile(h=h, J=J) for f in (formulas.gradient, formulas.hessian))
    value, X = tl.jit(energy), inverse_square_root(S)
    energies = [float(value(C, h, J))]
    for _ in range(steps):
        moved = C + newton_step(C, X, np.asarray(gradient(C)), partial(hessian, C))
        left, _, right = np.linalg.svd(np.linalg.solve(X, moved), full_matrices=False)
        C = X @ left @ right  # the nearest orthonormal ones
        energies.append(float(value(C, h, J)))
    return energies


def newton_step(C, X, gradient, hessian):
    """Solve for the step V x along the empty orbitals V; the Hessian is V'(H[V x]) - x C'G, G being the gradient."""
    left, _, _ = np.linalg.svd(np.linalg.solve(X, C))
    V, multiplier = X @ left[:, C.shape[1] :], C.T @ gradient
    shape = V.shape[1], C.shape[1]

    def curved(x):
        return V.T @ np.asarray(hessian(V @ x)) - x @ multiplier

    H = np.stack([curved(x.reshape(shape)).ravel() for x in np.eye(shape[0] * shape[1])], 1)
    return V @ np.linalg.solve(H, -(V.T @ gradient).ravel()).reshape(shape)


class Molecule:
    """A molecule with all orbitals occupied by two electrons, at any positions of its nuclei."""

    def __init__(self, charges):
        self.charges, self.m = charges, sum(charges) // 2
        self.formulas = derivatives(len(basis_of(charges).atom), self.m)
        self.integrals = tl.jit(partial(integrals, charges=charges))
        self._forces = tl.jit(tl.grad(self._lagrangian))

    def solved(self, positions):
        """Compute the total energy, the orbitals, and the integrals."""
        S, h, J = map(np.asarray, self.integrals(positions))
        C, energies = self_consistent(S, h, J, self.m, self.formulas)
        return energies[-1] + float(repulsion_of_nuclei(positions, self.charges)), C, (S, h, J)

    def energy_and_gradient(self, positions):
        """Compute the total energy, and its derivative by the positions of the nuclei.

        The energy is stationary in orbitals that stay orthonormal, so with a multiplier for that they can be held.
        """
        E, C, (_, h, J) = self.solved(positions)
        multiplier = C.T @ np.asarray(self.formulas.gradient(C, h, J)) / 2
        return E, np.asarray(self._forces(positions, C, multiplier))

    def _lagrangian(self, positions, C, multiplier):
        S, h, J = integrals(positions, self.charges)
        total = energy(C, h, J) + repulsion_of_nuclei(positions, self.charges)
        return total - tnp.vdot(multiplier, C.T @ S @ C)


# ---- looking at it


def picture(path, lengths, curve, scf, second):
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(lengths, curve, color="C0")
    left.plot(1.4, np.interp(1.4, lengths, curve), "o", color="C3", label="1.4 bohr: -1.1167")
    left.set(xlabel="distance / bohr", ylabel="energy / hartree", title="H2, STO-3G")
    left.legend(frameon=False)
    best = min(*scf, *second)
    for energies, start, label in ((scf, 0, "self-consistent field"), (second, NEARLY - 1, "Newton's method")):
        errors = np.maximum(np.array(energies) - best, 1e-14)
        right.semilogy(np.arange(len(errors)) + start, errors, "o-", markersize=3, label=label)
    right.set(xlabel="step", ylabel="energy above the converged one", title="Water, STO-3G")
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)


def hydrogen(length):
    return np.array([[0.0, 0, 0], [0, 0, length]])


NEARLY = 6  # steps of the self-consistent field before Newton's


def main(path="hartree_fock.png"):
    began = perf_counter()
    h2 = Molecule([1, 1])
    lengths = np.linspace(0.8, 4, 33)
    curve = [h2.solved(hydrogen(x))[0] for x in lengths]
    print(f"H2 at 1.4 bohr: {h2.solved(hydrogen(1.4))[0]:.4f} hartree")

    water = Molecule([8, 1, 1])
    for name, formulas in zip(Derivatives._fields, water.formulas):
        print(f"{name} = {formulas}")
    positions = np.array(WATER)
    total, _, (S, h, J) = water.solved(positions)
    print(f"water: {total:.8f} hartree")
    _, scf = self_consistent(S, h, J, water.m, water.formulas)
    C, _ = self_consistent(S, h, J, water.m, water.formulas, most=NEARLY)
    second = newton(C, S, h, J, water.formulas)
    print(f"Newton's method from step {NEARLY} of {len(scf)}: {' '.join(f'{x - second[-1]:.1e}' for x in second)}")

    def function(x):
        total, slope = water.energy_and_gradient(x.reshape(-1, 3))
        return total, slope.ravel()

    relaxed = minimize(function, positions.ravel(), jac=True, method="BFGS", options={"gtol": 1e-5})
    oxygen, first, second_h = relaxed.x.reshape(-1, 3)
    a, b = first - oxygen, second_h - oxygen
    length, angle = np.linalg.norm(a), np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    print(f"relaxed: {relaxed.fun:.4f} hartree, {length * 0.529177:.4f} angstrom, {angle:.2f} degrees")
    picture(path, lengths, curve, scf, second)
    print(f"wrote {path} after {perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    with tl.enable_x64():
        main(*sys.argv[1:])
