"""Second derivatives of programs along a direction, by differences of their values: nothing is differentiated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import evaluate

_STEP = 1e-2  # of differences of fourth order: truncation and rounding are about 1e-9
_ROUNDING = np.finfo(np.float64).eps


def curvature(jaxpr: Any, xs: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Second derivatives along the tangents, of each result of floating point: (values, estimates of their errors).

    The error is large where there is none: where slopes, or second derivatives of both sides, are not the same.
    """

    def at(k: int) -> list[Any]:
        return evaluate(jaxpr, [np.asarray(x) + k * _STEP / 2 * t for x, t in zip(xs, ts)], exact=True)

    points = {k: at(k) for k in range(-4, 5)}
    found = [_extrapolated({k: np.asarray(ys[n], float) for k, ys in points.items()}) for n in range(len(points[0]))]
    return [value for value, _ in found], [error for _, error in found]


def _extrapolated(at: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    def difference(k: int, step: int) -> np.ndarray:
        """The second difference around the point of number k."""
        return (at[k + step] - 2 * at[k] + at[k - step]) / (step * _STEP / 2) ** 2

    with np.errstate(all="ignore"):
        wide, narrow = difference(0, 2), difference(0, 1)
        # Differences of both sides: of what is smooth, odd in the step.
        sides = [difference(step, step) - difference(-step, step) for step in (2, 1)]
        error = np.abs(narrow - wide) + np.abs(2 * sides[1] - sides[0]) + 64 * _ROUNDING * np.abs(at[0]) / _STEP**2
        return narrow + (narrow - wide) / 3, np.where(np.isfinite(error), error, np.inf)
