"""Initial value problems, with derivatives by the adjoint method. The function of `jax.experimental.ode`."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import check_arrays, check_callable
from tapeless.arguments.flat_vectors import ravel_pytree
from tapeless.batch.vmap import vmap
from tapeless.compile.jit import jit
from tapeless.control_flow.branches_and_loops import while_loop
from tapeless.control_flow.scan import scan
from tapeless.custom.closures import closure_convert
from tapeless.custom.vjp import custom_vjp
from tapeless.differentiate.autodiff import vjp
from tapeless.experimental.integrators import dormand_prince as method
from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Tracer, describe_function
from tapeless.tracer.numpy.promotion import mixing_inside
from tapeless.tracer.settings.scoped_settings import default_matmul_precision
from tapeless.tracer.types import aval_of


@mixing_inside
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: ArrayLike,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = 10_000,
    hmax: float = np.inf,
) -> Any:
    """Integrate dy/dt = func(y, t, *args) from y0 at t[0], and return y at all times t.

    Steps are those of Dormand and Prince, of lengths that keep the estimated error within the tolerances; between them,
    values are interpolated. Reverse mode solves the adjoint equation backwards, with the state, in the memory of the
    values returned, whatever the number of steps. Forward mode is not provided.

    Args:
      func: `func(y, t, *args)` gives a pytree like y0. It may close over traced arrays, by which it is differentiated.
      y0: pytree of arrays of floating point, real or complex.
      t: times [n], floating point, n at least 1, increasing.
      args: pytrees of arrays.
      rtol, atol: of each step, the error that is tolerated, relative to the state and absolute.
      mxstep: the greatest number of steps between two times. Where they do not reach the next time, y is nan from
        there on, and no more steps are made. A fit whose parameters diverge makes equations stiff: without a bound it
        runs for ever, and a compiled loop cannot be interrupted. If values are nan, loosen `rtol` and `atol`, keep
        parameters in bounds, or raise `mxstep`.
      hmax: the greatest length of a step.
    Returns: a pytree like y0, of arrays with a leading axis [n].
    Raises: TypeError if an argument is no array, `t` is no vector of real numbers, or `func` gives something unlike y0;
      ValueError if times that are known do not increase.
    Source: Chen et al. 2018, "Neural ordinary differential equations", appendix C, for the adjoint equation.

    >>> import tapeless.numpy as tnp
    >>> odeint(lambda y, t: -y, 1.0, tnp.array([0.0, 1.0])).round(6)
    Array([1.      , 0.367879], dtype=float32)
    """
    check_callable("odeint", func, "func")
    check_arrays("odeint: y0{}", y0)
    check_arrays("odeint: args{}", args)
    times = _checked_times(t)
    start = pytree.tree_map(tnp.asarray, y0)
    wrong = [str(aval_of(y)) for y in pytree.leaves(start) if not dtypes.is_inexact(aval_of(y).dtype)]
    if wrong:
        raise TypeError(f"odeint: y0 must be of floating point, not {', '.join(wrong)}.")
    leaves, tree = pytree.flatten(pytree.tree_map(tnp.asarray, args))
    flat, unravel = ravel_pytree(start)

    def derivative(y: Any, t: Any, *leaves: Any) -> Any:
        state = unravel(y)
        found = func(state, t, *pytree.unflatten(tree, leaves))
        _check_like(func, found, state)
        return ravel_pytree(pytree.tree_map(lambda f, y: tnp.asarray(f).astype(y.dtype), found, state))[0].astype(
            y.dtype
        )

    converted, hoisted = closure_convert(derivative, flat, times[0], *leaves)
    limits = _StepLimits(float(rtol), float(atol), float(mxstep), float(hmax))
    return vmap(unravel)(_solved(converted, limits, flat, times, [*leaves, *hoisted]))


class _StepLimits(NamedTuple):
    rtol: float
    atol: float
    mxstep: float
    hmax: float


def _checked_times(t: Any) -> Array:
    check_arrays("odeint: t{}", t)
    times = tnp.asarray(t)
    if times.ndim != 1 or not times.size or not dtypes.is_float(times.dtype):
        raise TypeError(f"odeint: t must be a vector of real numbers of floating point, not {aval_of(times)}.")
    if isinstance(times, Tracer):
        return times
    known = np.asarray(times)
    if not np.all(known[1:] > known[:-1]):
        raise ValueError(f"odeint: the times must increase, but t is {known}.")
    return times


def _check_like(func: Any, found: Any, state: Any) -> None:
    who, wanted, tree = f"odeint: {describe_function(func)}", pytree.structure(state), pytree.structure(found)
    if tree != wanted:
        told = pytree.compare(wanted, tree, ("y0", "the result"))
        raise TypeError(f"{who} must return a pytree like y0.{told}")
    have = [getattr(aval_of(x), "shape", None) for x in pytree.leaves(found)]
    want = [aval_of(x).shape for x in pytree.leaves(state)]
    if have != want:
        raise TypeError(f"{who} must return a pytree like y0, of shapes {want}, but returned shapes {have}.")


@partial(jit, static_argnums=1)
def _solved(func: Any, limits: _StepLimits, y0: Any, times: Any, args: Any) -> Any:
    with default_matmul_precision("highest"):  # errors are estimated by differences
        return _solution(func, limits, y0, times, args)


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(func: Any, limits: _StepLimits, y0: Any, times: Any, args: Any) -> Any:
    """Compute the states [times, n]."""

    def f(y: Any, t: Any) -> Any:
        return func(y, t, *args)

    f0 = f(y0, times[0])
    dt = _bounded(method.first_length(f, y0, f0, times[0], limits.rtol, limits.atol), limits)
    begun = _Progress(y0, f0, times[0], dt, times[0], tnp.stack([tnp.zeros_like(y0)] * 4 + [y0]))
    _, ys = scan(partial(_until, f, limits), begun, times[1:])
    return tnp.concatenate([y0[None], ys])


class _Progress(NamedTuple):
    """State, derivative and time that are reached, and the length to try next; the time before, and the polynomial
    from there."""

    y: Any
    f: Any
    t: Any
    dt: Any
    before: Any
    polynomial: Any


def _until(f: Any, limits: _StepLimits, progress: _Progress, target: Any) -> tuple[_Progress, Any]:
    """Make steps until a time is reached, and interpolate: the progress, and the state at that time."""

    def go_on(carry: Any) -> Any:
        count, p = carry
        return (p.t < target) & (count < limits.mxstep) & (p.dt > 0)

    def advance(carry: Any) -> Any:
        count, p = carry
        made = method.step(f, p.y, p.f, p.t, p.dt)
        ratio = method.error_ratio(made.error, limits.rtol, limits.atol, p.y, made.y)
        dt = _bounded(method.next_length(p.dt, ratio), limits)
        taken = _Progress(made.y, made.f, p.t + p.dt, dt, p.t, made.polynomial)
        refused = p._replace(dt=dt)
        return count + 1, pytree.tree_map(lambda x, y: tnp.where(ratio <= 1.0, x, y), taken, refused)

    _, p = while_loop(go_on, advance, (tnp.zeros((), np.int32), progress))
    share = ((target - p.before) / tnp.where(p.t > p.before, p.t - p.before, 1)).astype(p.y.dtype)
    y = reduce(lambda value, coefficient: value * share + coefficient, [p.polynomial[k] for k in range(5)])
    p = p._replace(dt=tnp.where(p.t >= target, p.dt, 0))  # of what is not reached, nothing later is tried
    return p, tnp.where(p.t >= target, y, np.nan)


def _bounded(dt: Any, limits: _StepLimits) -> Any:
    return tnp.clip(dt, 0.0, limits.hmax).astype(dt.dtype)


def _forward(func: Any, limits: _StepLimits, y0: Any, times: Any, args: Any) -> tuple[Any, Any]:
    ys = _solution(func, limits, y0, times, args)
    return ys, (ys, times, args)


def _backward(func: Any, limits: _StepLimits, residuals: Any, cts: Any) -> tuple[Any, Any, Any]:
    """Integrate the adjoint equation from each time to the one before, where the cotangent there is added.

    The state is integrated backwards with it, and so are the integrals that are the cotangents of times and arguments.
    """
    ys, times, args = residuals
    moving = [dtypes.is_inexact(aval_of(x).dtype) for x in args]

    def augmented(state: Any, t: Any) -> Any:
        y, ct, _, _ = state
        f, pull_back = vjp(lambda y, t, xs: func(y, t, *_merged(moving, xs, args)), y, -t, _chosen(moving, args))
        return -f, *pull_back(ct)

    def back(carry: Any, at: Any) -> tuple[Any, Any]:
        ct, of_start, of_args = carry
        y, y_ct, t, before, before_ct = at
        of_time = tnp.real(func(y, t, *args) @ y_ct).astype(t.dtype)
        state = y, ct, of_start - of_time, of_args
        found = odeint(augmented, state, tnp.stack([-t, -before]), **limits._asdict())
        _, ct, of_start, of_args = pytree.tree_map(lambda x: x[1], found)
        return (ct + before_ct, of_start, of_args), of_time

    begun = cts[-1], tnp.zeros((), times.dtype), pytree.tree_map(tnp.zeros_like, _chosen(moving, args))
    each = ys[1:], cts[1:], times[1:], times[:-1], cts[:-1]
    (ct, of_start, of_args), of_times = scan(back, begun, each, reverse=True)
    zeros = [np.zeros(aval_of(x).shape, dtypes.float0) for x in args]
    return ct, tnp.concatenate([of_start[None], of_times]), _merged(moving, of_args, zeros)


_solution.defvjp(_forward, _backward)
_solution.reverse_only = (
    "odeint: forward mode is not provided for experimental.ode.odeint: its backward rule chooses its steps by the "
    "cotangents.\n  Use reverse mode (tl.grad, tl.jacrev, twice for tl.hessian), or integrate in lax.scan with steps "
    "of your own, which has both modes."
)


def _chosen(flags: list[bool], xs: Any) -> list[Any]:
    return [x for x, yes in zip(xs, flags) if yes]


def _merged(flags: list[bool], chosen: Any, others: Any) -> list[Any]:
    found = iter(chosen)
    return [next(found) if yes else x for x, yes in zip(others, flags)]
