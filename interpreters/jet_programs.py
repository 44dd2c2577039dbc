"""Rules of Taylor mode for primitives that carry programs: calls, control flow, linear solves, callbacks.

Calls are inlined; other bodies (jet.py) carry coefficients next to values. A linear system A(t) x(t) = b(t) is
solved order by order, A0 xk = bk - (A1 x(k-1) + .. + Ak x0), by the solver for A0.
Source: Griewank & Walther 2008, chapter 13.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tapeless.interpreters import jvp
from tapeless.interpreters.jet import (
    ByRule,
    Coefficients,
    JetTrace,
    JointTerms,
    flags_of,
    jet,
    rules,
    value_of,
)
from tapeless.interpreters.zero import instantiate, zero_of, zeros_of
from tapeless.tracer import core
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call, callback, custom
from tapeless.tracer.primitives import linear_solve as s
from tapeless.tracer.primitives.elementwise import sub
from tapeless.tracer.types import aval_of

Values = Sequence[Any]
Series = Sequence[Coefficients | None]


def _written_out(trace: JetTrace, args: Values, *, jaxpr: Jaxpr) -> Sequence[Any]:
    return core.under(trace, eval_jaxpr, jaxpr, args)


def _whole(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """Register a rule `rule(primals, series, order, **params) -> results, their series`."""

    def apply(trace: JetTrace, args: tuple[Any, ...], /, **params: Any) -> Sequence[Any]:
        avals = primitive.type(tuple(map(aval_of, args)), params)
        return trace.series(avals, JointTerms(trace, partial(rule, **params), args))

    rules[primitive] = apply


def _custom(primitive: Primitive, trace: JetTrace, args: Values, /, **params: Any) -> Sequence[Any]:
    """Compute series by the user's jvp rule; a function without a program is traced for its result types."""
    types = tuple(map(aval_of, args))
    program = params["jaxpr"] or params["custom"].traced(types)[0]
    return trace.series(program.out_avals, ByRule(trace, primitive, tuple(args), params))


# ---- linear solves and callbacks -----------------------------------------------------------------------------


def _linear_solve(primals: Values, series: Series, order: int, *, system: Any, counts: Any) -> Any:
    groups, of_groups = split_list(primals, *counts), split_list(series, *counts)
    *consts, b = groups
    solver, n = s.System(*system), len(b)
    outs = s.linear_solve(solver, consts, b)
    x: list[list[Any]] = [[y] for y in outs[:n]]
    for k in range(1, order + 1):
        moved = _moved(solver.matvec, consts[0], of_groups[0], x, k)
        right = [
            _less(zero_of(y) if terms is None else terms[k - 1], m) for y, terms, m in zip(b, of_groups[-1], moved)
        ]
        for terms, found in zip(x, s.linear_solve(solver, consts, right)):
            terms.append(found)
    return outs, [*[terms[1:] for terms in x], *[None] * (len(outs) - n)]


def _moved(matvec: Jaxpr, consts: Values, of_consts: Series, x: Sequence[Sequence[Any]], k: int) -> Sequence[Any]:
    """Compute the coefficient of order k of A(t) x(t) without its term A0 xk, from x up to order k - 1."""
    starts = [terms[0] for terms in x]
    if not any(flags_of(of_consts)):
        return zeros_of(starts)
    known = [None if terms is None else terms[:k] for terms in of_consts]
    of_x = [[*terms[1:], zero_of(terms[0])] for terms in x]
    outs, terms = jet(lambda *xs: eval_jaxpr(matvec, xs), [*consts, *starts], [*known, *of_x], k, matvec)
    return [zero_of(y) if ts is None else ts[k - 1] for y, ts in zip(outs, terms)]


def _less(x: Any, y: Any) -> Any:
    return sub(instantiate(x), instantiate(y))


def _opaque(primitive: Primitive, trace: JetTrace, args: Values, /, **params: Any) -> Any:
    """Apply the jvp rule of a callback: it raises that the callback has no derivative."""
    values = [value_of(trace, x) for x in args]
    return jvp.rules[primitive](values, [instantiate(zero_of(x)) for x in values], **params)[0]


rules[call.jit_p] = _written_out
for _primitive in (custom.custom_jvp_p, custom.custom_vjp_p):
    rules[_primitive] = partial(_custom, _primitive)
_whole(s.linear_solve_p, _linear_solve)
for _primitive in (callback.pure_callback_p, callback.io_callback_p):
    rules[_primitive] = partial(_opaque, _primitive)
