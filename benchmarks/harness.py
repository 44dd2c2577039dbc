"""Interleaved timing of the same program under two libraries of one API, and a table of the ratios.

Both sides run in turn in the same process, so that a slow minute of the machine slows both; medians are compared.
What this cannot show: differences below the noise (see `--control`), and anything about machines other than the one
named.
"""

import argparse
import gc
import importlib
import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import geometric_mean, median
from time import perf_counter
from types import ModuleType

import numpy as np

Thunk = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One question: median seconds of ours and of the baseline, and the ratio that we promised not to exceed."""

    name: str
    ours: float
    baseline: float
    target: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.baseline


@dataclass(frozen=True)
class Pair:
    """The two modules under test; programs are written against either, `lib.grad`, `lib.numpy`, `lib.random`."""

    ours: ModuleType
    baseline: ModuleType

    def compare(
        self,
        name: str,
        prepare: Callable[[ModuleType], Thunk],
        *,
        repeats: int,
        per: int = 1,
        target: float | None = None,
    ) -> Row:
        """Time the thunks that `prepare` returns for either library, in turn; each repeats the work `per` times."""
        ours, baseline = prepare(self.ours), prepare(self.baseline)
        ours(), baseline()  # compiles, fills caches
        mine, theirs = in_turn(ours, baseline, repeats)
        return Row(name, median(mine) / per, median(theirs) / per, target)

    def agree(self, prepare: Callable[[ModuleType], Thunk], tolerance: float = 2e-3) -> None:
        """Compare the leaves of both results, relative to the greatest entry: float32, sums in another order."""
        results = [self.baseline.tree.leaves(prepare(self.ours)()), self.baseline.tree.leaves(prepare(self.baseline)())]
        floor = 1e-3 * max(np.abs(leaf).max(initial=0) for leaf in results[1])  # of leaves that are zero but rounded
        for mine, theirs in zip(*results, strict=True):
            scale = max(np.abs(theirs).max(initial=0), floor)
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale)


def in_turn(
    ours: Thunk, baseline: Thunk, repeats: int, budget: float = math.inf
) -> tuple[Sequence[float], Sequence[float]]:
    """Sample two thunks in turn; fewer times, but at least three, if that exceeds the budget of seconds."""
    began, samples = perf_counter(), [(sample(ours), sample(baseline))]
    while len(samples) < repeats and (len(samples) < 3 or perf_counter() - began < budget):
        samples.append((sample(ours), sample(baseline)))
    mine, theirs = zip(*samples, strict=True)
    return mine, theirs


def sample(thunk: Thunk) -> float:
    """Return the seconds of a call. Garbage of earlier samples is collected before, garbage of this one counts."""
    gc.collect()
    began = perf_counter()
    thunk()
    return perf_counter() - began


def repeated(lib: ModuleType, call: Thunk, number: int) -> Thunk:
    """Run `number` calls back to back; the clock stops when the result of the last one is there."""

    def run() -> object:
        for _ in range(number - 1):
            call()
        return lib.block_until_ready(call())

    return run


def arguments(question: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--control", action="store_true", help="the baseline on both sides: shows the noise")
    parser.add_argument("--repeats", type=int, default=15, help="samples per side")
    parser.add_argument("--only", default="", help="run rows whose name contains this")
    return parser.parse_args()


def libraries(control: bool) -> Pair:
    """List the libraries, Tapeless first: the first must not have the other's start-up to pay for."""
    ours = importlib.import_module("jax" if control else "tapeless")
    return Pair(ours, importlib.import_module("jax"))


def seconds(value: float) -> str:
    scale, unit = next(((s, u) for s, u in ((1, "s"), (1e-3, "ms"), (1e-6, "us")) if value >= s), (1e-9, "ns"))
    return f"{value / scale:.3g} {unit}"


def machine() -> str:
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, jaxlib {version('jaxlib')}"
    )


def report(question: str, rows: Sequence[Row], *, names: tuple[str, str], cannot_show: str) -> None:
    """Print the table: name, both medians, ratio, target; a ratio above its target has an arrow."""
    width = max(len(row.name) for row in rows)
    print(f"\n{question}\n{machine()}\n")
    print(f"{'':{width}}  {names[0]:>10}  {names[1]:>10}  {'ratio':>6}  target")
    for row in rows:
        target = (
            ""
            if row.target is None
            else f"{row.target:.2f}" + ("  <- missed" if row.ratio > row.target and names[0] != names[1] else "")
        )
        print(f"{row.name:{width}}  {seconds(row.ours):>10}  {seconds(row.baseline):>10}  {row.ratio:6.2f}  {target}")
    worst = max(rows, key=lambda row: row.ratio)
    mean = geometric_mean([row.ratio for row in rows])
    print(f"\nGeometric mean of the ratios: {mean:.2f}; the worst: {worst.ratio:.2f}, {worst.name}.")
    print(f"\nCannot show: {cannot_show}")


def names(control: bool) -> tuple[str, str]:
    return ("jax" if control else "tapeless", "jax")
