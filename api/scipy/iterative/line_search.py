"""Line search: bracket steps that satisfy the strong Wolfe conditions, then narrow the bracket (zoom).

One loop takes the steps of both phases, each with one evaluation, so that a batch of searches takes them together.
Source: Nocedal & Wright 2006, "Numerical optimization", algorithms 3.5 and 3.6; the choices between interpolations are
those of SciPy. Close to a minimum values differ by rounding errors only, and slopes decide: Hager & Zhang 2006,
"Algorithm 851: CG_DESCENT", the approximate decrease.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.scipy.iterative.vectors import select
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import ArrayLike


class LinePoint(NamedTuple):
    """A step along the line, and value and slope at its end."""

    step: Any
    value: Any
    slope: Any


class LineTrial(NamedTuple):
    """A point with the gradient there, and what it lacks of the two conditions."""

    point: LinePoint
    gradient: Any
    decrease_error: Any
    curvature_error: Any

    @property
    def error(self) -> Any:
        """The greater of what it lacks."""
        return tnp.maximum(self.decrease_error, self.curvature_error)


class LineSearch(NamedTuple):
    """A search: its last trial, the bracket from the better end to the other, and the end before for the cubic.

    Until there is a bracket, both ends are the last point. `safe` is the best point of sufficient decrease so far,
    the start if there is none. `count` trials were made, and `left` may be made.
    """

    count: Any
    left: Any
    trial: LineTrial
    low: LinePoint
    high: LinePoint
    reference: LinePoint
    safe: LinePoint
    safe_gradient: Any
    bracketed: Any
    done: Any
    failed: Any


class SearchLimits(NamedTuple):
    """Conditions on a step, and limits of a search.

    Args:
      max_steps: trials at most; until there is a bracket, if `max_narrowings` is given, which then are left.
      longest: the longest step.
      tol: what both conditions may lack.
      increase_factor: the factor from one step to the next until a bracket is found.
      slope_rtol, curv_rtol: the factors of the two conditions, 0 < slope_rtol < curv_rtol < 1.
      approx_dec_rtol: how little the value may increase, relative to it, where the approximate decrease holds; None
        asks for the decrease itself.
      shortest: the length of a bracket that is not narrowed further, if a point in it decreases the value.
    """

    max_steps: ArrayLike
    max_narrowings: int | None = None
    longest: ArrayLike | None = None
    tol: ArrayLike = 0.0
    increase_factor: ArrayLike = 2.0
    slope_rtol: Any = 1e-4
    curv_rtol: ArrayLike = 0.9
    approx_dec_rtol: ArrayLike | None = None
    shortest: ArrayLike = 0.0


def line_search(
    evaluate: Callable[[Any], tuple[Any, Any, Any]], start: LinePoint, gradient: Any, first: Any, limits: SearchLimits
) -> LineSearch:
    """Search along a line until a point satisfies the conditions.

    Args:
      evaluate: gives value, gradient and slope after a step, in the dtypes of `start` and `gradient`.
      start: the point at 0.
      gradient: the gradient there, a pytree of arrays.
      first: the step to try first.
    """
    unknown, no = tnp.full_like(start.value, np.inf), tnp.array(False)
    trial = LineTrial(start, gradient, unknown, unknown)
    search = LineSearch(
        tnp.zeros((), np.int32), tnp.array(limits.max_steps), trial, start, start, start, start, gradient, no, no, no
    )

    def step(search: LineSearch) -> LineSearch:
        longer = tnp.where(search.count == 0, first, limits.increase_factor * search.trial.point.step)
        at_end: Any = no
        if limits.longest is not None:
            at_end, longer = longer >= limits.longest, tnp.minimum(longer, limits.longest)
        place = tnp.where(search.bracketed, _inside(search.low, search.high, search.reference), longer)
        trial = _tried(limits, evaluate, start, place.astype(start.step.dtype))
        return pytree.tree_map(lambda x, y: x.astype(y.dtype), _after(limits, search, trial, at_end), search)

    return while_loop(lambda s: ~(s.done | s.failed), step, search)


def _tried(limits: SearchLimits, evaluate: Any, start: LinePoint, step: Any) -> LineTrial:
    """Evaluate a step, and what it lacks; nan lacks everything."""
    value, gradient, slope = evaluate(step)
    decrease = value - start.value - limits.slope_rtol * step * start.slope
    if limits.approx_dec_rtol is not None:
        flatter = slope - (2 * limits.slope_rtol - 1.0) * start.slope
        increase = value - start.value - limits.approx_dec_rtol * tnp.abs(start.value)
        decrease = tnp.minimum(tnp.maximum(flatter, increase), decrease)
    curvature = tnp.abs(slope) - limits.curv_rtol * tnp.abs(start.slope)
    return LineTrial(LinePoint(step, value, slope), gradient, _positive_part(decrease), _positive_part(curvature))


def _positive_part(error: Any) -> Any:
    return tnp.where(tnp.isnan(error), np.inf, tnp.maximum(error, 0.0))


def _after(limits: SearchLimits, search: LineSearch, trial: LineTrial, at_end: Any) -> LineSearch:
    """Make a bracket of the new point and the one before (algorithm 3.5), or let it be an end of one (3.6)."""
    new, low, high = trial.point, search.low, search.high
    decreased, met = trial.decrease_error <= limits.tol, trial.error <= limits.tol
    better = decreased & (~search.bracketed | (new.value < search.safe.value))
    safe, safe_gradient = select(better, (new, trial.gradient), (search.safe, search.safe_gradient))

    too_high = (trial.decrease_error > 0) | ((new.value >= low.value) & (search.count > 0))
    ahead = tnp.where(search.bracketed, high.step - low.step, 1.0)
    turned = (new.slope * ahead >= 0) & ~too_high
    bracketed = search.bracketed | too_high | turned | met
    reference = select(too_high | turned, high, low)
    other = select(too_high | ~bracketed, new, select(turned, low, high))
    low = select(too_high, low, new)

    left = search.left - 1
    if limits.max_narrowings is not None:
        left = tnp.where(bracketed & ~search.bracketed, limits.max_narrowings, left)
    done = met | (at_end & ~bracketed)
    short = search.bracketed & (tnp.abs(high.step - search.low.step) <= limits.shortest) & (safe.step > 0)
    failed = ((left <= 0) | short | (bracketed & _no_room(low.step, other.step))) & ~done
    return LineSearch(
        search.count + 1, left, trial, low, other, reference, safe, safe_gradient, bracketed, done, failed
    )


def _no_room(a: Any, b: Any) -> Any:
    """Tell whether hardly a number lies between two."""
    return tnp.abs(b - a) <= 4 * float(dtypes.finfo(a.dtype).eps) * tnp.maximum(a, b)


def _inside(low: LinePoint, high: LinePoint, reference: LinePoint) -> Any:
    """Find the minimum of a cubic, else of a parabola, through what is known, if well inside; else the middle."""
    length = tnp.abs(high.step - low.step)
    left, right = tnp.minimum(low.step, high.step), tnp.maximum(low.step, high.step)
    cubic, parabola = _minimum_of_cubic(low, high, reference), _minimum_of_parabola(low, high)
    middle = (low.step + high.step) / 2.0
    middle = tnp.where((parabola > left + 0.1 * length) & (parabola < right - 0.1 * length), parabola, middle)
    return tnp.where((cubic > left + 0.2 * length) & (cubic < right - 0.2 * length), cubic, middle)


def _minimum_of_cubic(p: LinePoint, q: LinePoint, r: LinePoint) -> Any:
    """Find where a cubic is least that has value and slope of p, and the values of q and r; nan if nowhere."""
    x, y = q.step - p.step, r.step - p.step
    fx, fy = q.value - p.value - p.slope * x, r.value - p.value - p.slope * y
    divisor = (x * y) ** 2 * (x - y)
    a, b = (y**2 * fx - x**2 * fy) / divisor, (x**3 * fy - y**3 * fx) / divisor
    return p.step + (-b + tnp.sqrt(b * b - 3.0 * a * p.slope)) / (3.0 * a)


def _minimum_of_parabola(p: LinePoint, q: LinePoint) -> Any:
    """Find where a parabola is least that has value and slope of p, and the value of q."""
    x = q.step - p.step
    return p.step - p.slope / (2.0 * ((q.value - p.value - p.slope * x) / x**2))
