"""Derivatives of programs by complex steps, or by differences where a step is not to be had."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, Straight, opened, taken
from tests.fuzzing.oracle.values import Values, kind_of, widened

_COMPLEX_STEP = 1e-100  # what it multiplies never cancels: small enough for its square to vanish
_FIRST_STEP = 1e-3  # of differences of fourth order in float64: truncation and rounding are then about 1e-12
_ROUNDING = np.finfo(np.float64).eps


def directional(jaxpr: Any, args: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The derivative of a program along tangents, by each result: (values, estimates of their errors).

    By a complex step where every operation that a tangent reaches is one of complex numbers, else by central
    differences of fourth order with Richardson's estimate. An error is infinite where the program is not
    differentiable in this direction, as far as can be seen: ties, kinks, jumps, nan. Tangents of integers are ignored;
    those of complex inputs may be any complex numbers: the derivative is that along the real line through them.
    Results that are integers or booleans have None for both. Custom derivatives have no say: those of the functions
    are computed. What `stop_gradient` gives is constant.
    """
    jaxpr, args = opened(jaxpr, args)
    avals = [v.aval for v in jaxpr.invars]
    given = [None] * (len(args) - len(tangents)) + list(tangents)  # constants have none
    xs = taken(args, avals)
    ts = [_tangent(t, aval) for t, aval in zip(given, avals, strict=True)]
    with np.errstate(all="ignore"):
        try:
            found = _by_complex_step(jaxpr, xs, ts)
        except NotHolomorphicError:
            found = _by_differences(jaxpr, xs, ts)
    inexact = [kind_of(v.aval.dtype) in "fc" for v in jaxpr.outvars]
    values = [v if yes else None for (v, _), yes in zip(found, inexact)]
    return values, [e if yes else None for (_, e), yes in zip(found, inexact)]


def _tangent(t: Any, aval: Any) -> Values | None:
    """A tangent, wide; None where there is none, or all are 0."""
    if t is None or kind_of(aval.dtype) not in "fc":
        return None
    wide = widened(t)
    return np.broadcast_to(wide, aval.shape) if np.any(wide) else None


def _moved(x: Values, t: Values | None, step: complex) -> Values:
    return x if t is None else np.asarray(x + step * t)


# ---- complex steps ---------------------------------------------------------------------------------------------


def _by_complex_step(jaxpr: Any, xs: list[Values], ts: list[Values | None]) -> list[tuple[Any, Any]]:
    if any(np.iscomplexobj(x) and t is not None for x, t in zip(xs, ts)):
        raise NotHolomorphicError("a complex input")
    run = Run(exact=True, differentiating=True)
    outs = run.program(jaxpr, [_moved(x, t, 1j * _COMPLEX_STEP) for x, t in zip(xs, ts)])
    return [_stepped(y, v.aval, run.kinks) for y, v in zip(outs, jaxpr.outvars)]


def _stepped(y: Values, aval: Any, kinks: list[str]) -> tuple[Any, Any]:
    if kind_of(aval.dtype) != "f" or not np.iscomplexobj(y):  # what is declared complex, no tangent reaches
        return np.zeros(aval.shape), np.where(np.isfinite(y), 0.0, np.inf)
    value = y.imag / _COMPLEX_STEP
    bad = bool(kinks) | ~np.isfinite(value) | ~np.isfinite(y.real) | (np.abs(value) > 1e40)
    return value, np.where(bad, np.inf, 64 * _ROUNDING * np.abs(value))


# ---- differences -----------------------------------------------------------------------------------------------


class _Recorded(Straight):
    """Records at the point what has a derivative that is not that of its values, and is replayed beside it."""

    def __init__(self) -> None:
        self._recorded, self._next = list[tuple[Values, Values]](), -1

    def replayed(self) -> "_Recorded":
        """The same, from its beginning."""
        self._next = 0
        return self

    def value(self, x: Values, y: Values, slope: int) -> Values:
        if self._next < 0:
            self._recorded.append((x, y))
            return y
        if self._next == len(self._recorded) or self._recorded[self._next][0].shape != x.shape:
            return np.full_like(y, np.nan)  # beside the point, the program goes another way
        before, out = self._recorded[self._next]
        self._next += 1
        return out + (x - before) if slope else out


def _by_differences(jaxpr: Any, xs: list[Values], ts: list[Values | None]) -> list[tuple[Any, Any]]:
    """Extrapolated from two steps; the error is what they differ by, what rounding makes of it, and a kink's jump."""
    recorded = _Recorded()
    center = Run(True, recorded, differentiating=True).program(jaxpr, xs)
    scale = max([1.0, *[float(np.max(np.abs(t), initial=0)) for t in ts if t is not None]])
    h = _FIRST_STEP / scale

    def along(step: float) -> list[Values]:
        moved = [_moved(x, t, step) for x, t in zip(xs, ts)]
        return Run(True, recorded.replayed(), differentiating=True).program(jaxpr, moved)

    wide, narrow = ([along(k * step) for k in (1, -1, 2, -2)] for step in (h, h / 2))
    return [_extrapolated(y, a, b, h) for y, a, b in zip(center, zip(*wide), zip(*narrow))]


def _fourth_order(each: Sequence[Values], h: float) -> Values:
    """(8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h."""
    a, b, c, d = map(_inexact, each)
    return (8 * (a - b) - (c - d)) / (12 * h)


def _jump(y: Values, each: Sequence[Values], h: float) -> Values:
    """By how much the slopes on both sides differ."""
    a, b = map(_inexact, each[:2])
    return (a - 2 * _inexact(y) + b) / h


def _inexact(x: Values) -> Values:
    return x if x.dtype.kind == "c" else x.astype(float)


def _extrapolated(y: Values, wide: Sequence[Values], narrow: Sequence[Values], h: float) -> tuple[Values, Values]:
    first, second = _fourth_order(wide, h), _fourth_order(narrow, h / 2)
    value = second + (second - first) / 15
    kink = np.abs(2 * _jump(y, narrow, h / 2) - _jump(y, wide, h))  # of what is smooth this is of third order in h
    error = np.abs(second - first) + kink + 16 * _ROUNDING * np.abs(y) / h
    return value, np.where(np.isfinite(value) & np.isfinite(y), error, np.inf)
