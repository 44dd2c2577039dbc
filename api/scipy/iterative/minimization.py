"""Minima of functions of vectors, by quasi-Newton methods. Names of `scipy.optimize`.

Where no good step is found along a line, what is known of the Hessian is forgotten, once, and the next line is that of
steepest descent. Source: Nocedal & Wright 2006, "Numerical optimization", algorithm 6.1.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.differentiate.autodiff import value_and_grad
from tapeless.scipy.iterative.limited_memory import (
    empty_memory,
    identity_scale,
    inverse_hessian_product,
    remember,
)
from tapeless.scipy.iterative.line_search import LinePoint, SearchLimits, line_search
from tapeless.scipy.iterative.vectors import select
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy.norms import norm as vector_norm
from tapeless.tracer.numpy.promotion import array_operand, inexact
from tapeless.tracer.primitives.contraction import Precision


class OptimizeResults(NamedTuple):
    """A minimum: x [n]; whether the gradient is small there; a status, 0 if it is; the value and the gradient there.

    Then the inverse of the Hessian as far as it is known, None by "l-bfgs"; evaluations of the function and of its
    gradient; steps. The status is 1 after `maxiter` steps; by "BFGS" 3 or 5 where no good step along a line was found;
    by "l-bfgs" 2 and 3 after too many evaluations, 4 where values do not get less, and 5 where no good step was found.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Find a minimum of a function of a vector, which may be compiled and mapped, but not differentiated.

    Nothing is raised where none is found, as nothing is in compiled programs: look at `.success` of the result.

    Args:
      fun: `fun(x, *args)` gives a real number; it is differentiated in reverse mode.
      x0: [n], real, where to begin.
      method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", the name that JAX has for l-bfgs; in any case.
      tol: the option `gtol`, unless that is given.
      options: both methods have `maxiter` (200 n steps), `norm` of the gradient (inf, as for `numpy.linalg.norm`) and
        `gtol` (1e-5), below which it is small. BFGS has `line_search_maxiter` (100), by how many steps a line is
        followed, each twice as long as the one before; l-bfgs has `maxcor` (10), how many
        steps are kept, `ftol` (2.2e-9), by which values must get less, `maxfun` and `maxgrad` (no limit), evaluations
        at most, and `maxls` (20), tries along a line.
    Raises: TypeError if args is no tuple, x0 is no real vector, or there is no such option; ValueError for another
      method.
    """
    if not isinstance(args, tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"minimize: args must be a tuple, not {args!r}.")
    x = array_operand("minimize", inexact("minimize", x0))
    if x.ndim != 1 or dtypes.is_complex(x.dtype):
        raise TypeError(f"minimize: x0 must be a vector of real numbers, not {x.aval}.")
    find = {"bfgs": _bfgs, "l-bfgs-experimental-do-not-rely-on-this": _lbfgs}.get(method.lower())
    if find is None:
        raise ValueError(
            f"minimize: method must be 'BFGS' or 'l-bfgs-experimental-do-not-rely-on-this', not {method!r}."
        )
    chosen: dict[str, Any] = {**({} if tol is None else {"gtol": tol}), **(options or {})}
    return find(_Evaluation(value_and_grad(lambda v: fun(v, *args)), x), x, **chosen)


_NARROWINGS = 30  # of a bracket
_ROUNDING_ERRORS = 100  # by which values may rise that are equal but for rounding


class _Evaluation:
    """Values and gradients along lines, in the dtype of x0."""

    def __init__(self, both: Callable[[Any], Any], x0: Array) -> None:
        self.both, self.dtype = both, x0.dtype
        self.rounding = _ROUNDING_ERRORS * float(dtypes.finfo(x0.dtype).eps)

    def at(self, x: Any) -> tuple[Any, Any]:
        value, gradient = self.both(x)
        return value.astype(self.dtype), gradient.astype(self.dtype)

    def search(self, s: "_Descent", direction: Any, first: Any, maxiter: Any) -> "_Moved":
        """Search along a line; where no step is good, or the line does not go down, no step is made."""

        def after(step: Any) -> tuple[Any, Any, Any]:
            value, gradient = self.at(s.x + step * direction)
            return value, gradient, _dot(gradient, direction)

        start = LinePoint(tnp.zeros_like(s.value), s.value, _dot(s.gradient, direction))
        limits = SearchLimits(maxiter, _NARROWINGS, approx_dec_rtol=self.rounding)
        search = line_search(after, start, s.gradient, first, limits)
        failed = search.failed | (start.slope > 0)
        point, gradient = select(failed, (start, s.gradient), (search.trial.point, search.trial.gradient))
        status = tnp.where(search.bracketed, 1, 3)
        return _Moved(point.step * direction, point.value, gradient, failed, status, search.count)


class _Moved(NamedTuple):
    """A step along a line: the difference of x, value and gradient at its end; whether no good one was found, why: 1 (a
    bracket is as short as it gets) or 3 (too far); and evaluations.
    """

    difference: Any
    value: Any
    gradient: Any
    failed: Any
    status: Any
    evaluations: Any


class _Descent(NamedTuple):
    """The state of the iteration: the vector, value, gradient, the value before, counts and how it ends.

    `fresh` where nothing is known of the Hessian, so that the direction is that of steepest descent.
    """

    x: Any
    value: Any
    gradient: Any
    before: Any
    converged: Any
    status: Any
    evaluations: Any
    k: Any
    fresh: Any


def _begin(f: _Evaluation, x: Any, gtol: float, norm: Any) -> _Descent:
    value, gradient = f.at(x)
    converged = vector_norm(gradient, norm) < gtol
    counts = np.int32(0), np.int32(1), np.int32(0)
    return _Descent(x, value, gradient, _before(value, gradient), converged, *counts, np.bool_(True))


def _before(value: Any, gradient: Any) -> Any:
    """Guess a value before the first step, from which this step would be about as long as the gradient is steep."""
    return value + vector_norm(gradient) / 2


def _stepped(s: _Descent, p: _Moved, converged: Any, status: Any) -> _Descent:
    """Make the state after a search; steepest descent follows if the search failed and was not of that."""
    again = p.failed & ~s.fresh
    before, status = tnp.where(again, _before(p.value, p.gradient), s.value), tnp.where(again, 0, status)
    counts = status.astype(np.int32), s.evaluations + p.evaluations, s.k + 1
    return _Descent(s.x + p.difference, p.value, p.gradient, before, converged, *counts, again)


# ---- BFGS ----------------------------------------------------------------------------------------------------


def _bfgs(
    f: _Evaluation,
    x0: Any,
    maxiter: int | None = None,
    norm: Any = np.inf,
    gtol: float = 1e-5,
    line_search_maxiter: int = 100,
) -> OptimizeResults:
    steps = 200 * x0.size if maxiter is None else maxiter
    identity = tnp.eye(x0.size, dtype=x0.dtype)

    def going(state: Any) -> Any:
        s, _ = state
        return ~s.converged & (s.status == 0) & (s.k < steps)

    def step(state: Any) -> Any:
        s, inverse = state
        direction = -_times(inverse, s.gradient)
        first = tnp.minimum(1, 1.01 * 2 * (s.value - s.before) / _dot(s.gradient, direction))
        p = f.search(s, direction, tnp.where(first == first, first, 1), line_search_maxiter)
        converged = vector_norm(p.gradient, norm) < gtol
        after = _stepped(s, p, converged, tnp.where(p.failed, 2 + p.status, 0))
        return after, tnp.where(after.fresh, identity, _updated(inverse, p.difference, p.gradient - s.gradient))

    s, inverse = while_loop(going, step, (_begin(f, x0, gtol, norm), identity))
    status = tnp.where(s.converged, 0, tnp.where(s.status != 0, s.status, 1))
    success = s.converged & (s.status == 0)
    return OptimizeResults(s.x, success, status, s.value, s.gradient, inverse, s.evaluations, s.evaluations, s.k)


def _updated(inverse: Any, moved: Any, change: Any) -> Any:
    """Update the inverse Hessian by a step and the change of the gradient; keep it where the step tells nothing."""
    curvature = _dot(change, moved)
    rho = 1 / tnp.where(curvature == 0, 1, curvature)
    w = tnp.eye(moved.size, dtype=moved.dtype) - rho * moved[:, None] * change
    found = _times(_times(w, inverse), w.T) + rho * moved[:, None] * moved
    return tnp.where((curvature != 0) & tnp.isfinite(rho), found, inverse)


# ---- l-bfgs --------------------------------------------------------------------------------------------------


def _lbfgs(
    f: _Evaluation,
    x0: Any,
    maxiter: float | None = None,
    norm: Any = np.inf,
    maxcor: int = 10,
    ftol: float = 2.220446049250313e-09,
    gtol: float = 1e-5,
    maxfun: float | None = None,
    maxgrad: float | None = None,
    maxls: int = 20,
) -> OptimizeResults:
    unbounded = maxiter is None and maxfun is None and maxgrad is None
    limits = [np.inf if n is None else n for n in (200 * x0.size if unbounded else maxiter, maxfun, maxgrad)]

    def going(state: Any) -> Any:
        s, _ = state
        return ~s.converged & (s.status == 0)

    def step(state: Any) -> Any:
        s, (memory, scale) = state
        place = s.k % maxcor
        p = f.search(s, -inverse_hessian_product(memory, s.gradient, scale, place), tnp.ones_like(s.value), maxls)
        change = p.gradient - s.gradient
        converged = vector_norm(p.gradient, norm) < gtol
        status = tnp.where(s.value - p.value < ftol, 4, 0)
        for code, count, limit in ((3, s.evaluations, limits[2]), (2, s.evaluations, limits[1]), (1, s.k, limits[0])):
            status = tnp.where(count >= limit, code, status)
        after = _stepped(s, p, converged, tnp.where(converged, 0, tnp.where(p.failed, 5, status)))
        known = remember(memory, place, p.difference, change), identity_scale(p.difference, change, scale)
        return after, select(after.fresh, nothing, known)

    nothing = empty_memory(maxcor, x0), tnp.ones((), x0.dtype)
    s, _ = while_loop(going, step, (_begin(f, x0, gtol, norm), nothing))
    return OptimizeResults(s.x, s.converged, s.status, s.value, s.gradient, None, s.evaluations, s.evaluations, s.k)


def _dot(x: Any, y: Any) -> Any:
    return tnp.dot(x, y, precision=Precision.HIGHEST)


def _times(x: Any, y: Any) -> Any:
    return tnp.matmul(x, y, precision=Precision.HIGHEST)
