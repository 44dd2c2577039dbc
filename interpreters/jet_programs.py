"""Rules of Taylor mode for primitives that carry programs: calls, control flow, linear solves, callbacks.

Calls are inlined, except checkpoints. Loops and branches carry coefficients next to values; which carried values of a
loop have coefficients is iterated to a fixed point first, as in forward mode. A linear system A(t) x(t) = b(t) is
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
    Whole,
    flags_of,
    flat_terms,
    jet,
    jet_jaxpr,
    rules,
    value_of,
    with_series,
)
from tapeless.interpreters.rules.control_flow import with_all_consts
from tapeless.interpreters.zero import instantiate, zero_of, zeros_of
from tapeless.tracer import core, passes
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import Flags, fixed_point, paired_positions, split_list, where_true
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call, callback, checkpoint, custom
from tapeless.tracer.primitives import control_flow as c
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
        return trace.series(avals, Whole(trace, partial(rule, **params), args))

    rules[primitive] = apply


def _custom(primitive: Primitive, trace: JetTrace, args: Values, /, **params: Any) -> Sequence[Any]:
    """Compute series by the user's jvp rule; a function without a program is traced for its result types."""
    types = tuple(map(aval_of, args))
    program = params["jaxpr"] or params["custom"].traced(types)[0]
    return trace.series(program.out_avals, ByRule(trace, primitive, tuple(args), params))


def _checkpoint(primals: Values, series: Series, order: int, /, *, jaxpr: Jaxpr, **how: Any) -> Any:
    program, consts, moving = jet_jaxpr(jaxpr, order, flags_of(series))
    outs = checkpoint.checkpoint(program, *consts, *primals, *flat_terms(series), **how)
    return with_series(outs, moving, order)


# ---- control flow --------------------------------------------------------------------------------------------


def _cond(primals: Values, series: Series, order: int, *, branches: tuple[Jaxpr, ...]) -> Any:
    moving = flags_of(series[1:])
    out_moving = tuple(map(any, zip(*[jet_jaxpr(branch, order, moving)[2] for branch in branches])))
    made = [jet_jaxpr(branch, order, moving, out_moving) for branch in branches]
    programs = with_all_consts([m[:2] for m in made])
    outer = [x for _, consts, _ in made for x in consts]
    outs = c.cond(primals[0], [*outer, *primals[1:], *flat_terms(series[1:])], programs)
    return with_series(outs, out_moving, order)


def _scan(
    primals: Values, series: Series, order: int, /, *, jaxpr: Jaxpr, n_consts: int, n_carry: int, **loop: Any
) -> Any:
    of_consts, of_carry, of_xs = split_list(flags_of(series), n_consts, n_carry)
    n_ys = len(jaxpr.outvars) - n_carry

    def step(carry: Flags) -> tuple[Any, Flags]:
        made = jet_jaxpr(jaxpr, order, (*of_consts, *carry, *of_xs), (*carry, *[False] * n_ys))
        return made, made[2]

    (program, outer, out_moving), of_carry = fixed_point(of_carry, step)
    k, moving = len(outer), (*of_consts, *of_carry, *of_xs)
    ins = [*range(k), *paired_positions((n_consts, n_carry, len(of_xs)), moving, k, order)]
    outs = paired_positions((n_carry, n_ys), out_moving, 0, order)
    values = [*outer, *primals, *flat_terms(_instantiated(primals, series, order, moving))]
    sizes = k + n_consts + order * sum(of_consts), n_carry + order * sum(of_carry)
    results = c.scan(passes.rearranged(program, ins, outs), *split_list([values[i] for i in ins], *sizes), **loop)
    return with_series(_in_order(results, outs), out_moving, order)


def _while(
    primals: Values, series: Series, order: int, *, condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int
) -> Any:
    _, of_consts, of_carry = split_list(flags_of(series), n_condition, n_body)

    def step(carry: Flags) -> tuple[Any, Flags]:
        made = jet_jaxpr(body, order, (*of_consts, *carry), carry)
        return made, made[2]

    (program, outer, _), of_carry = fixed_point(of_carry, step)
    n, k, moving = len(of_carry), len(outer), (*of_consts, *of_carry)
    ins = [*range(k), *paired_positions((n_body, n), moving, k, order)]
    outs = paired_positions((n,), of_carry, 0, order)
    found = _instantiated(primals[n_condition:], series[n_condition:], order, moving)
    values = [*outer, *primals[n_condition:], *flat_terms(found)]
    consts, carry = split_list([values[i] for i in ins], k + n_body + order * sum(of_consts))
    unused = [aval.tangent() for aval in where_true(of_carry, body.out_avals) for _ in range(order)]
    test = passes.rearranged(condition, [*range(n_condition + n), *unused], [0])
    looped = c.while_loop(test, passes.rearranged(program, ins, outs), (primals[:n_condition], consts), carry)
    return with_series(_in_order(looped, outs), of_carry, order)


def _instantiated(primals: Values, series: Series, order: int, moving: Sequence[bool]) -> list[Any]:
    """Return the series of `moving` operands; zeros for a carry that has coefficients only after the first step."""
    return [(terms or [zero_of(x)] * order) if some else None for x, terms, some in zip(primals, series, moving)]


def _in_order(results: Values, places: Sequence[int]) -> list[Any]:
    """Invert the order of `paired_positions`: all values, then all coefficients."""
    return [x for _, x in sorted(zip(places, results, strict=True), key=lambda pair: pair[0])]


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
    """Apply the jvp rule of a callback, which raises that it has no derivative."""
    values = [value_of(trace, x) for x in args]
    return jvp.rules[primitive](values, [instantiate(zero_of(x)) for x in values], **params)[0]


rules[call.jit_p] = _written_out
for _primitive in (custom.custom_jvp_p, custom.custom_vjp_p):
    rules[_primitive] = partial(_custom, _primitive)
_whole(checkpoint.checkpoint_p, _checkpoint)
_whole(c.cond_p, _cond)
_whole(c.scan_p, _scan)
_whole(c.while_p, _while)
_whole(s.linear_solve_p, _linear_solve)
for _primitive in (callback.pure_callback_p, callback.io_callback_p):
    rules[_primitive] = partial(_opaque, _primitive)
