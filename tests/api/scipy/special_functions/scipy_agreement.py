"""Agreement of a special function with SciPy: distances in units in the last place, and derivatives by differences."""

from typing import Any

import numpy as np
import scipy.special

import tapeless as tl
from tapeless.scipy import special

EDGES = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5, 3, 20, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30])


def uniform(low: float, high: float, seed: int = 0) -> np.ndarray[Any, Any]:
    """A thousand numbers."""
    return np.random.default_rng(seed).uniform(low, high, 1000)


def pairs(values: Any = EDGES) -> tuple[Any, Any]:
    """All pairs of values."""
    first, second = np.meshgrid(values, values)
    return first.ravel(), second.ravel()


def check(name: str, args: Any, dtype: str, ulps: float, exact: Any = None, **more: Any) -> None:
    """Compare with SciPy in float64 of the same numbers. What is too small for normal numbers may be zero."""
    args = [np.asarray(x).astype(dtype) for x in args]
    with np.errstate(all="ignore"):
        wanted = (exact or getattr(scipy.special, name))(*[x.astype(float) for x in args], **more)
        rounded = np.asarray(wanted).astype(dtype)
        spacing = np.spacing(np.maximum(np.abs(rounded), np.finfo(dtype).tiny)).astype(float)
    found = np.asarray(getattr(special, name)(*args, **more))
    assert found.dtype == dtype
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(found[~finite], rounded[~finite])
    distance = np.abs(found[finite].astype(float) - wanted[finite]) / spacing[finite]
    worst = np.argmax(np.where(np.isnan(distance), np.inf, distance))
    assert distance[worst] <= ulps, (distance[worst], [x[finite][worst] if x.shape else x for x in args])


def check_derivatives(f: Any, args: Any, rtol: float = 1e-7, step: float = 1e-4) -> None:
    """First derivatives in both modes, and second ones, against central differences of fourth order in float64."""
    args = [np.asarray(x, float) for x in args]
    for k in range(len(args)):
        slope = tl.jit(tl.vmap(tl.grad(f, k)))
        np.testing.assert_allclose(slope(*args), _difference(f, args, k, step), rtol=rtol, atol=rtol)
        tangents = [np.ones_like(x) * (i == k) for i, x in enumerate(args)]
        np.testing.assert_allclose(
            tl.jvp(tl.jit(f), tuple(args), tuple(tangents))[1], slope(*args), rtol=1e-9, atol=1e-12
        )
        for j in range(len(args)):
            second = tl.jit(tl.vmap(tl.grad(tl.grad(f, k), j)))(*args)
            np.testing.assert_allclose(second, _difference(slope, args, j, step), rtol=rtol, atol=rtol)


def _difference(f: Any, args: Any, k: int, step: float) -> Any:
    def at(h: float) -> Any:
        return np.asarray(f(*[x + h * (i == k) for i, x in enumerate(args)]))

    return (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
