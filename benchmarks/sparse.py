"""Are sparse derivatives as fast as those that one would write by hand for the same pattern?

Baseline: formulas for the entries, written by hand for NumPy. Printed are the seconds of a compiled call, also over
those by hand (wanted: at most 3), of the first call, with tracing, pattern, coloring and compiling, the entries and the
products. Both sides are timed in turn, and the fastest samples compared: others on the machine slow a call that has two
threads more than one that has one. They cannot show what a solver does with the entries.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from benchmarks.harness import in_turn, machine, seconds

QUESTION = "Are sparse derivatives as fast as those that one would write by hand for the same pattern?"
TARGET = 3.0
CALLS, SAMPLES, BUDGET = 10, 40, 4.0  # calls one after another, as a solver makes them; samples; seconds for them
RNG = np.random.default_rng(0)


class Problem(NamedTuple):
    """A sparse derivative, its entries by hand in the same order, and the arguments."""

    derivative: Any
    by_hand: Callable[..., Any]
    args: tuple[Any, ...]


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape)


def _rosenbrock(x: Any) -> Any:
    return tnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _rosenbrock_by_hand(x: Any) -> Any:
    diagonal = np.zeros(len(x))
    diagonal[:-1] = 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal[1:] += 200
    beside = -400 * x[:-1]
    rows = np.empty(3 * len(x))
    rows[1::3], rows[3::3], rows[2:-1:3] = diagonal, beside, beside
    return rows[1:-1]


def _five_points(u: Any) -> Any:
    p = tnp.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u + tnp.exp(u)


def _five_points_by_hand(u: Any) -> Any:
    n, m = u.shape
    rows, inside = np.ones((n, m, 5)), np.ones((n, m, 5), bool)
    rows[:, :, 2] = np.exp(u) - 4
    inside[0, :, 0] = inside[-1, :, 4] = inside[:, 0, 1] = inside[:, -1, 3] = False
    return rows[inside]


class Observations(NamedTuple):
    """Which camera sees which point: ten of each camera, four of each point."""

    camera: Any
    point: Any

    def residuals(self, cameras: Any, points: Any) -> Any:
        c, p = cameras[self.camera], points[self.point]
        turned = p + tnp.cross(c[:, :3], p) + c[:, 3:]
        return turned[:, :2] / (2 + turned[:, 2:] ** 2)

    def by_hand(self, cameras: Any, points: Any) -> Any:
        return _reprojection_by_hand(cameras[self.camera], points[self.point])


def _reprojection_by_hand(c: Any, p: Any) -> Any:
    """d(t / w) = dt / w - t dw / w²; a rotation by r moves p by r x p."""
    n = len(p)
    r, zero, one = c[:, :3], np.zeros(n), np.ones(n)
    t = p + np.cross(r, p) + c[:, 3:]
    w = 2 + t[:, 2] ** 2
    by_r = np.stack([zero, p[:, 2], -p[:, 1], -p[:, 2], zero, p[:, 0], p[:, 1], -p[:, 0], zero], 1).reshape(-1, 3, 3)
    by_p = np.stack([one, -r[:, 2], r[:, 1], r[:, 2], one, -r[:, 0], -r[:, 1], r[:, 0], one], 1).reshape(-1, 3, 3)
    every = np.concatenate([by_r, np.broadcast_to(np.eye(3), (n, 3, 3)), by_p], 2)
    by_w = (t[:, :2] * (2 * t[:, 2:] / w[:, None] ** 2))[:, :, None]
    return every[:, :2] / w[:, None, None] - by_w * every[:, 2:]


def _collocation(y: Any) -> Any:
    middle, h = (y[1:] + y[:-1]) / 2, 0.1
    return y[1:] - y[:-1] - h * tnp.stack([middle[:, 1], -tnp.sin(middle[:, 0])], 1)


def _collocation_by_hand(y: Any) -> Any:
    rows = np.empty((len(y) - 1, 2, 3))
    rows[:, 0] = [-1, -0.05, 1]
    bent = 0.05 * np.cos((y[1:, 0] + y[:-1, 0]) / 2)
    second = np.stack([bent, np.full(len(bent), -1.0), bent, np.ones(len(bent))], 1)
    first = np.broadcast_to(np.array([-1, -0.05, 1, -0.05]), second.shape)
    return np.stack([first, second], 1).reshape(-1)


def rosenbrock(n: int) -> Problem:
    return Problem(tl.sparse.hessian(_rosenbrock), _rosenbrock_by_hand, (normal(n),))


def five_points(n: int) -> Problem:
    return Problem(tl.sparse.jacobian(_five_points), _five_points_by_hand, (normal(n, n),))


def bundle_adjustment(n: int) -> Problem:
    seen = Observations(np.sort(RNG.integers(0, n // 10, n)), RNG.permutation(n) % (n // 4))
    derivative = tl.sparse.jacobian(seen.residuals, (0, 1))
    return Problem(derivative, seen.by_hand, (normal(n // 10, 6), normal(n // 4, 3)))


def collocation(n: int) -> Problem:
    return Problem(tl.sparse.jacobian(_collocation), _collocation_by_hand, (normal(n, 2),))


FAMILIES: dict[str, tuple[Callable[[int], Problem], Sequence[int]]] = {
    "Hessian of Rosenbrock, n": (rosenbrock, (2_000, 8_000, 100_000)),
    "five points of a PDE, n x n": (five_points, (50, 300, 700)),
    "bundle adjustment, n observations": (bundle_adjustment, (2_000, 8_000, 50_000)),
    "collocation of an ODE, n steps": (collocation, (2_000, 8_000, 50_000)),
}


def _row(name: str, n: int, problem: Problem) -> str:
    args = list(map(tnp.asarray, problem.args))
    began = perf_counter()
    tl.block_until_ready(problem.derivative(*args))
    first = perf_counter() - began
    structure = problem.derivative.structure(*args)
    ours, by_hand = map(
        min,
        in_turn(
            lambda: [tl.block_until_ready(problem.derivative(*args)) for _ in range(CALLS)],
            lambda: [problem.by_hand(*problem.args) for _ in range(CALLS)],
            SAMPLES,
            BUDGET,
        ),
    )
    mark = " <--" if ours > TARGET * by_hand else ""
    products = structure.forward + structure.reverse
    figures = (
        f"{seconds(ours / CALLS):>8} {ours / by_hand:7.2f} {seconds(first):>8} {len(structure.rows):9,} {products}"
    )
    return f"{name:34} {n:7,} {figures}{mark}"


def main() -> None:
    print(
        f"{QUESTION}\n{machine()}\n\n{'':34} {'n':>7} {'call':>8} {'by hand':>7} {'first':>8} {'entries':>9} products"
    )
    with tl.enable_x64(True):
        for name, (make, sizes) in FAMILIES.items():
            for n in sizes:
                print(_row(name, n, make(n)), flush=True)


if __name__ == "__main__":
    main()
