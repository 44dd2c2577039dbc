"""A step along a line that meets the strong Wolfe conditions.

Source: Nocedal & Wright 2006, "Numerical optimization", algorithms 3.5 and 3.6; the choices between interpolations are
those of SciPy. Close to a minimum values differ by rounding errors only, and slopes decide: Hager & Zhang 2005, "A new
conjugate gradient method with guaranteed descent and an efficient line search", the approximate Wolfe conditions.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
_ZOOM_STEPS = 30
_ROUNDING_ERRORS = 100  # by which values may rise that are equal but for rounding


class LinePoint(NamedTuple):
    """A place on the line: how far along it is, the value there, its slope, and the gradient."""

    along: Any
    value: Any
    slope: Any
    gradient: Any


class LineSearchResult(NamedTuple):
    """The point that was found, whether there is none, 0, 1 (no interval is left) or 3 (too far), and evaluations."""

    point: LinePoint
    failed: Any
    status: Any
    evaluations: Any


class _Bracket(NamedTuple):
    """An interval with a point that is good in it, `low` being the better end; and an end that was left."""

    low: LinePoint
    high: LinePoint
    left: tuple[Any, Any]


_GOING, _INSIDE, _GOOD, _BEHIND = 0, 1, 2, 3


def line_search(evaluate: Callable[[Any], LinePoint], start: LinePoint, first: Any, maxiter: int) -> LineSearchResult:
    """Search along a line for a point of less value and of less slope.

    Args:
      evaluate: computes the point at a place on the line.
      start: the point at 0, of negative slope.
      first: the place to try first; the next ones are twice as far each.
      maxiter: how many of them to try.
    """
    rounding = _ROUNDING_ERRORS * dtypes.finfo(start.value.dtype).eps * tnp.abs(start.value)

    def enough(p: LinePoint) -> Any:
        return p.value <= start.value + SUFFICIENT_DECREASE * p.along * start.slope

    def flat(p: LinePoint) -> Any:
        return tnp.abs(p.slope) <= -CURVATURE * start.slope

    def settled(p: LinePoint) -> Any:
        """Tell whether p meets the approximate conditions: as high as the start but for rounding, and less steep."""
        rises_little = p.slope <= (2 * SUFFICIENT_DECREASE - 1) * start.slope
        return (p.value <= start.value + rounding) & rises_little & flat(p)

    def going(state: Any) -> Any:
        verdict, i, _, _ = state
        return (verdict == _GOING) & (i <= maxiter)

    def step(state: Any) -> Any:
        _, i, _, before = state
        here = evaluate(tnp.where(i == 1, first, 2 * before.along))
        too_high = ~enough(here) | ((here.value >= before.value) & (i > 1))
        verdict = tnp.where(here.slope >= 0, _BEHIND, _GOING)
        verdict = tnp.where(too_high, _INSIDE, tnp.where(flat(here), _GOOD, verdict))
        verdict = tnp.where(settled(here), _GOOD, verdict)
        return verdict.astype(np.int32), i + 1, before, here

    verdict, i, before, here = while_loop(going, step, (np.int32(_GOING), np.int32(1), start, start))
    inside, behind = verdict == _INSIDE, verdict == _BEHIND
    bracket = _bracket(_choose(inside, before, here), _choose(inside, here, before))
    found, zoomed, tries = _zoom(evaluate, enough, flat, settled, bracket, inside | behind)
    good = verdict == _GOOD
    failed = ~(good | zoomed)
    status = tnp.where((inside | behind) & failed, 1, tnp.where(failed, 3, 0)).astype(np.int32)
    point = _choose(good, here, _choose(zoomed, found, start))
    return LineSearchResult(point, failed, status, i - 1 + tries)


def _zoom(
    evaluate: Any, enough: Any, flat: Any, settled: Any, bracket: _Bracket, needed: Any
) -> tuple[LinePoint, Any, Any]:
    """Make an interval smaller until a point in it is good; and whether it was found, and the number of evaluations."""
    least = 4 * dtypes.finfo(bracket.low.along.dtype).eps

    def going(state: Any) -> Any:
        _, done, k, bracket = state
        a, b = bracket.low.along, bracket.high.along
        wide = tnp.abs(b - a) > least * tnp.maximum(a, b)
        return needed & ~done & (k < _ZOOM_STEPS) & wide

    def step(state: Any) -> Any:
        _, _, k, bracket = state
        low, high = bracket.low, bracket.high
        here = evaluate(_inner_place(bracket, k))
        worse = ~enough(here) | (here.value >= low.value)
        turns = here.slope * (high.along - low.along) >= 0
        as_high = _Bracket(low, here, (high.along, high.value))
        as_low = _Bracket(
            here, _choose(turns, low, high), _choose(turns, (high.along, high.value), (low.along, low.value))
        )
        return here, ~worse & flat(here) | settled(here), k + 1, _choose(worse, as_high, as_low)

    found, done, k, _ = while_loop(going, step, (bracket.low, np.bool_(False), np.int32(0), bracket))
    return found, done, k


def _bracket(low: LinePoint, high: LinePoint) -> _Bracket:
    return _Bracket(low, high, (0.5 * (low.along + high.along), 0.5 * (low.value + high.value)))


def _inner_place(bracket: _Bracket, k: Any) -> Any:
    """Find the least point of a cubic, else of a parabola, through the ends; the middle if close to an end."""
    (a, fa, slope, _), (b, fb, _, _), (c, fc) = bracket
    low, high, width = tnp.minimum(a, b), tnp.maximum(a, b), tnp.abs(b - a)

    def within(x: Any, margin: float) -> Any:
        return (x > low + margin * width) & (x < high - margin * width)

    db, dc = b - a, c - a
    rest_b, rest_c = fb - fa - slope * db, fc - fa - slope * dc
    denominator = tnp.square(db * dc) * (db - dc)
    cubic = (dc * dc * rest_b - db * db * rest_c) / denominator
    square = (-(dc**3) * rest_b + db**3 * rest_c) / denominator
    by_cubic = a + (-square + tnp.sqrt(square * square - 3 * cubic * slope)) / (3 * cubic)
    by_square = a - slope * db * db / (2 * rest_b)
    middle = 0.5 * (a + b)
    return tnp.where((k > 0) & within(by_cubic, 0.2), by_cubic, tnp.where(within(by_square, 0.1), by_square, middle))


def _choose(condition: Any, x: Any, y: Any) -> Any:
    """Select the leaves of one of two trees of the same structure."""
    return pytree.tree_map(lambda u, v: tnp.where(condition, u, v), x, y)
