"""The Runge-Kutta method of Dormand and Prince, of order 5 with an error estimate of order 4, and its step sizes.

Source: Dormand & Prince 1980, "A family of embedded Runge-Kutta formulae"; Shampine 1986, "Some practical Runge-Kutta
formulas", for values between steps; Hairer, Norsett & Wanner 1993, "Solving ordinary differential equations I", section
II.4, for step sizes. States are vectors [n], real or complex.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import fori_loop
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike

Derivative = Callable[[Any, Any], Any]  # (y, t) -> dy/dt

_TIMES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
    ]
)
_RESULT = _STAGES[-1]
_FOURTH = np.array([1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60])
_MIDDLE = 0.5 * np.array(
    [
        6025192743 / 30085553152,
        0,
        51252292925 / 65400821598,
        -2691868925 / 45128329728,
        187940372067 / 1594534317056,
        -1776094331 / 19743644256,
        11237099 / 235043384,
    ]
)


class Step(NamedTuple):
    """A step: the state at its end and the derivative there, the error estimated, and a polynomial for times between.

    The variable of the polynomial is the share of the step that is done; its coefficients begin with the highest.
    """

    y: Array
    f: Array
    error: Array
    polynomial: Array


def step(func: Derivative, y: Array, f: Array, t: Array, dt: Array) -> Step:
    """Make a step of length `dt` from the state `y`, whose derivative is `f`."""
    h, times, stages = dt.astype(y.dtype), tnp.asarray(_TIMES, dt.dtype), tnp.asarray(_STAGES, f.dtype)

    def stage(i: Any, k: Any) -> Any:
        return k.at[i + 1].set(func(y + h * (stages[i] @ k), t + dt * times[i]))

    k = fori_loop(0, len(_TIMES), stage, tnp.zeros((len(_TIMES) + 1, f.shape[0]), f.dtype).at[0].set(f))
    result, error, middle = [tnp.asarray(row, f.dtype) @ k for row in (_RESULT, _RESULT - _FOURTH, _MIDDLE)]
    end = y + h * result
    return Step(end, k[-1], h * error, _between(y, end, y + h * middle, h * f, h * k[-1]))


def _between(y0: Any, y1: Any, middle: Any, d0: Any, d1: Any) -> Array:
    """Fit the polynomial of degree 4 with these values at 0, 1 and 1/2, and these slopes at 0 and 1."""
    return tnp.stack(
        [
            2 * (d1 - d0) - 8 * (y0 + y1) + 16 * middle,
            5 * d0 - 3 * d1 + 18 * y0 + 14 * y1 - 32 * middle,
            d1 - 4 * d0 - 11 * y0 - 5 * y1 + 16 * middle,
            d0,
            y0,
        ]
    )


def error_ratio(error: Array, rtol: ArrayLike, atol: ArrayLike, y0: Array, y1: Array) -> Array:
    """Compute the root mean square of the errors, each over what is tolerated: at most 1 for a step that is taken."""
    tolerated = atol + rtol * tnp.maximum(abs(y0), abs(y1))
    ratio = abs(error) / tolerated.astype(abs(error).dtype)
    return tnp.sqrt(tnp.mean(ratio * ratio))


def next_length(dt: Array, ratio: Array) -> Array:
    """Compute the length of the next step: a little less than the one whose error would be just tolerated.

    It is at most ten times `dt`, and after a step that was taken no less than `dt`.
    """
    least = tnp.where(ratio < 1, 1.0, 0.2)
    factor = tnp.minimum(10.0, tnp.maximum(0.9 * tnp.where(ratio == 0, 1, ratio) ** -0.2, least))
    return (dt * tnp.where(ratio == 0, 10.0, factor)).astype(dt.dtype)


def first_length(func: Derivative, y: Array, f: Array, t: Array, rtol: ArrayLike, atol: ArrayLike) -> Array:
    """Estimate the length of the first step, of the second derivative as one careful step tells it."""
    scale = (atol + abs(y) * rtol).astype(abs(y).dtype)
    size, speed = _norm(y / scale), _norm(f / scale)
    careful = tnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / tnp.where(speed == 0, 1, speed))
    ahead = func(y + careful.astype(y.dtype) * f, t + careful.astype(t.dtype))
    bend = _norm((ahead - f) / scale) / careful
    most = tnp.maximum(speed, bend)
    flat = (speed <= 1e-15) & (bend <= 1e-15)
    good = (0.01 / tnp.where(flat, 1, most)) ** 0.2
    found = tnp.where(flat, tnp.maximum(1e-6, careful * 1e-3), good)
    return tnp.minimum(100.0 * careful, found).astype(t.dtype)


def _norm(x: Array) -> Array:
    return tnp.sqrt(tnp.sum(abs(x) ** 2))
