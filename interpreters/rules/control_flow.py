"""Rules of scan, while and cond: transform the bodies, and run them by the same kind of control flow.

A loop's carry is brought to a fixed point first: if one step returns a carried value with a tangent, linear or mapped,
the next step takes it so. Source: Radul et al. 2023, section 7, for linear values.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import (
    batched_control_flow,
    jvp,
    partial_eval,
    transformed_bodies,
    transpose,
    vmap,
)
from tapeless.interpreters.index_rows import core, rows, without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals import (
    inversion,
    locations,
    rematerialization,
    rematerialization_control_flow,
    saved_states,
)
from tapeless.interpreters.residuals.cut import Loop
from tapeless.interpreters.residuals.repeated_step import repeated_step
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, zero_of, zeros_of
from tapeless.tracer import passes
from tapeless.tracer.bodies import apply_with_bodies
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import (
    Flags,
    fixed_point,
    merge_lists,
    split_list,
    where_false,
    where_true,
)
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import call, invertible, linear_while
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.control_flow import platform_index_p
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.types import aval_of

# ---- jvp -----------------------------------------------------------------------------------------------------


def jvp_of_bodies(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    """Push tangents through bodies: the jvp rule of a primitive that describes them."""
    terms = [None if type(t) is Zero else (t,) for t in tangents]
    if not any(terms):
        outs = primitive.apply(*primals, **params)
        return outs, zeros_of(outs)
    outs, found = transformed_bodies.push_terms(primitive, params, primals, terms, 1, jvp.jvp_jaxpr)
    return outs, [zero_of(y) if pair is None else pair[0] for y, pair in zip(outs, found)]


# ---- unzip ---------------------------------------------------------------------------------------------------


def _scan_partial_eval(trace: UnzipTrace, args: Any, *, jaxpr: Jaxpr, n_consts: int, n_carry: int, **loop: Any) -> Any:
    """Split a scan into a primal scan, with stacked residuals, and a linear scan that reads them.

    Loop-invariant residuals are computed before the loop; those that are elements of an operand are read from it.
    """
    of_consts, of_carry, of_xs = split_list(tuple(map(trace.is_unknown, args)), n_consts, n_carry)
    n_ys = len(jaxpr.outvars) - n_carry

    def step(carry: Flags) -> tuple[tuple[Flags, Flags], Flags]:
        given, must = (*of_consts, *carry, *of_xs), (*carry, *[False] * n_ys)
        return (given, must), trace.unknown_results(jaxpr, given, must)[:n_carry]

    (linear_in, must), of_carry = fixed_point(of_carry, step)
    steps = Loop(n_consts - sum(of_consts), n_carry - sum(of_carry), loop["length"])
    halves = trace.unzip_body(jaxpr, linear_in, unknown_out=must, loop=steps)
    pushed = [trace.as_unknown(x) for x in where_true(linear_in, args)]
    tangents = split_list(pushed, sum(of_consts), sum(of_carry))
    primal = split_list(where_false(linear_in, args), n_consts - sum(of_consts), n_carry - sum(of_carry))
    apart = trace.linear and loop["unroll"] < loop["length"]
    linear = locations.apart(halves.linear) if apart else halves.linear
    counts = len(primal[0]), len(primal[1]), halves.residuals
    inverted = trace.linear and invertible.invertible_p in jaxpr.primitives
    if inverted and (back := inversion.step_backwards(halves.primal, *counts)):
        results, given = _scan_by_inverses(halves, back, primal, loop)
        groups = [*given, *tangents]
        params = {"back": back.jaxpr, "linear": linear, "counts": tuple(map(len, groups[:-1])), **loop}
        pushed = trace.record(invertible.linear_scan_p, [x for group in groups for x in group], params)
        return merge_lists(halves.linear_out, pushed, results)
    results, residuals = _primal_scan(locations.scan_body(halves, len(primal[0]), len(primal[1])), primal, loop)
    in_body = split_list(range(halves.residuals, len(halves.linear.invars)), *map(len, tangents[:2]))
    stacked = [place.stacked for place in residuals]
    places = range(halves.residuals)
    ins = [*where_false(stacked, places), *in_body[0], *in_body[1], *where_true(stacked, places), *in_body[2]]
    values = [place.value for place in residuals]
    operands = [*where_false(stacked, values), *tangents[0], *tangents[1], *where_true(stacked, values), *tangents[2]]
    params = {
        "jaxpr": passes.rearrange_program(linear, ins, range(len(halves.linear.outvars))),
        "n_consts": len(stacked) - sum(stacked) + len(tangents[0]),
        "n_carry": len(tangents[1]),
        **loop,
    }
    return merge_lists(halves.linear_out, trace.record(c.scan_p, operands, params), results)


def _scan_by_inverses(
    halves: partial_eval.UnzippedJaxpr, back: inversion.StepBackwards, primal: Sequence[Any], loop: dict[str, Any]
) -> tuple[Any, list[Sequence[Any]]]:
    """Run the primal half of a scan whose steps are inverted; return its results, and the primal operands of a
    `linear_scan`, in groups: constants, last state, elements."""
    (consts, carry, xs), program = primal, halves.primal
    n = len(program.outvars) - halves.residuals
    saved = passes.rearrange_program(program, range(len(program.invars)), [*range(n), *[n + k for k in back.stacked]])
    outs = c.scan(saved, consts, carry, xs, **loop)
    return outs[:n], [consts, [outs[k] for k in back.state], [*xs, *outs[n:]]]


class _ScanResidual(NamedTuple):
    """The value of a residual of a scan's body: stacked, or the same for every step."""

    value: Any
    stacked: bool


def _primal_scan(
    body: locations.ScanBody, primal: Sequence[Any], loop: dict[str, Any]
) -> tuple[Any, list[_ScanResidual]]:
    """Run the primal half of a scan; return its results and residuals."""
    consts, carry, xs = primal
    invariant = [*call.jit(body.before, *consts), *consts] if body.before.eqns else list(consts)
    used = [invariant[k] for k in body.used]
    outs = c.scan(body.jaxpr, used, carry, xs, **loop) if body.jaxpr.outvars else ()
    results = outs[: body.results]
    of_kind = {"const": invariant, "element": xs, "result": results, "stacked": outs[body.results :]}
    return results, [_ScanResidual(of_kind[r.kind][r.number], r.kind != "const") for r in body.residuals]


def _while_partial_eval(trace: UnzipTrace, args: Any, **params: Any) -> Any:
    """Split a while into a primal one, which counts its steps and saves states, and a linear one that reads them."""
    unknown = tuple(map(trace.is_unknown, args))
    if not trace.linear:
        return _split_unknown_while(trace, unknown, args, **params)
    found = _run_primal_while(unknown, args, **params)
    linear = [trace.as_unknown(x) for x in found.linear]
    pushed = trace.record(linear_while.linear_while_p, [*found.residuals, *linear], found.params)
    return merge_lists(found.of_carry, pushed, found.carry)


def _split_unknown_while(
    trace: UnzipTrace,
    unknown: Flags,
    args: Any,
    *,
    condition: Jaxpr,
    body: Jaxpr,
    n_condition: int,
    n_body: int,
    **how: Any,
) -> Any:
    """Run the known part of a while of values that are unknown of any kind, and stage all of it in the other half.

    What is the same in all steps and known is computed before the staged loop.
    """
    of_test, of_consts, of_carry = split_list(unknown, n_condition, n_body)

    def step(carry: Flags) -> tuple[None, Flags]:
        if any(trace.unknown_results(condition, (*of_test, *carry))):
            return None, (True,) * len(carry)
        return None, trace.unknown_results(body, (*of_consts, *carry), carry)

    _, of_carry = fixed_point(of_carry, step)
    test_consts, consts, carry = split_list(args, n_condition, n_body)
    known = where_false(of_consts, consts)
    results: Sequence[Any] = ()
    if not all(of_carry):
        halves = trace.unzip_body(body, (*of_consts, *of_carry), unknown_out=of_carry)
        kept = where_false((*of_test, *of_carry), range(n_condition + len(carry)))
        test = passes.rearrange_program(condition, kept, [0])
        n = len(of_carry) - sum(of_carry)
        program = passes.rearrange_program(halves.primal, range(len(halves.primal.invars)), range(n))
        consts_of_test = where_false(of_test, test_consts)
        results = c.while_loop(test, program, (consts_of_test, known), where_false(of_carry, carry))
    every = (True,) * len(of_carry)
    halves = trace.unzip_body(body, (*of_consts, *every), unknown_out=every)
    before = [*call.jit(halves.primal, *known), *where_true(of_consts, consts)]
    params = {"condition": condition, "body": halves.linear, "n_condition": n_condition, "n_body": len(before), **how}
    pushed = trace.record(c.while_p, [*test_consts, *before, *carry], params)
    return merge_lists(of_carry, where_true(of_carry, pushed), results)


class _RunWhile(NamedTuple):
    """The primal half of a while loop, which has run, and the operands and params of its linear half.

    of_carry: which parts of the carry are linear. carry: the others, after the loop. linear: the linear constants and
    parts of the carry before the loop; a part that becomes linear in a step need not be yet.
    """

    of_carry: Flags
    carry: Sequence[Any]
    residuals: list[Any]
    linear: list[Any]
    params: dict[str, Any]


def _run_primal_while(
    linear: Flags,
    args: Sequence[Any],
    *,
    condition: Jaxpr,
    body: Jaxpr,
    n_condition: int,
    n_body: int,
    saving: c.Saving = c.BY_DEFAULT,
) -> _RunWhile:
    of_test, of_consts, of_carry = split_list(linear, n_condition, n_body)

    def step(carry: Flags) -> tuple[None, Flags]:
        return None, partial_eval.linear_results(body, (*of_consts, *carry), carry)

    _, of_carry = fixed_point(of_carry, step)
    if not passes.used_variables(condition).isdisjoint(where_true((*of_test, *of_carry), condition.invars)):
        raise transpose.not_linear(c.while_p, "its condition depends on a linear value")
    halves = partial_eval.unzip_body(body, (*of_consts, *of_carry), linear_out=of_carry)
    test_consts, consts, carry = split_list(args, n_condition, n_body)
    kept, before = where_false(of_consts, consts), where_false(of_carry, carry)
    n_consts, n_carry = len(kept), len(before)
    going = [*range(n_condition), *[n_condition + k for k in where_false(of_carry, range(len(of_carry)))]]
    test = passes.rearrange_program(condition, going, [0])
    again = repeated_step(halves.primal, n_consts, n_carry, saving.trips is not None)
    ran = saved_states.run_saving(test, again, (test_consts, kept), before, saving)
    params = {
        "step": ran.step,
        "linear": halves.linear,
        "n_states": len(ran.saved.states) if ran.saved else 0,
        "n_consts": n_consts + len(ran.kept),
        "n_linear_consts": sum(of_consts),
        **({} if saving == c.BY_DEFAULT else {"saving": saving}),
    }
    pushed = [*where_true(of_consts, consts), *where_true(of_carry, carry)]
    return _RunWhile(of_carry, ran.carry, [*ran.residuals(), *kept, *ran.kept], pushed, params)


def _cond_partial_eval(trace: UnzipTrace, args: Any, *, branches: tuple[Jaxpr, ...]) -> Any:
    """Split a cond into one of primal halves, which return the residuals in common slots, and one of linear halves."""
    index, operands = args[0], args[1:]
    linear_in = tuple(map(trace.is_unknown, operands))
    if trace.is_unknown(index):
        raise transpose.not_linear(c.cond_p, "its index depends on a linear value")
    outs = zip(*[trace.unknown_results(branch, linear_in) for branch in branches])
    linear_out = tuple(map(any, outs))
    halves = [trace.unzip_body(branch, linear_in, unknown_out=linear_out) for branch in branches]
    primal = where_false(linear_in, operands)
    found = locations.branches(halves)
    n = len(linear_out) - sum(linear_out)
    outs = c.cond(index, primal, found.primal) if found.primal[0].outvars else ()
    residuals = [*[primal[i] for i in found.operands], *outs[n:]]
    recorded = trace.record(c.cond_p, [index, *residuals, *where_true(linear_in, operands)], {"branches": found.linear})
    return merge_lists(linear_out, recorded, outs[:n])


# ---- transpose -----------------------------------------------------------------------------------------------


def _scan_transpose(
    cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, n_consts: int, n_carry: int, reverse: bool, **loop: Any
) -> Any:
    """Transpose a scan: a scan of the transposed body in the opposite direction.

    It carries the cotangents of the carry, and running cotangents of the constants, to which every step adds in place.
    """
    reached = reached_operands(jaxpr, cts, n_consts, n_carry)
    linear = split_list(jaxpr.linear_in, n_consts, n_carry)
    kept, _, elements = [where_false(flags, xs) for flags, xs in zip(linear, split_list(args, n_consts, n_carry))]
    taken = [(totals.take(i), aval_of(x)) for i, (x, yes) in enumerate(zip(args, reached.consts)) if yes]
    running = [instantiate(Zero(aval)) if total is None else total for total, aval in taken]
    arriving = [instantiate(ct) for ct in where_true(reached.carry, cts[:n_carry])]
    pulled = c.scan(
        transposed_step(jaxpr, reached, len(kept), len(elements)),
        kept,
        [*running, *arriving],
        [*elements, *where_true(reached.ys, cts[n_carry:])],
        reverse=not reverse,
        **loop,
    )
    return cotangents_of_operands(pulled, (*reached.consts, *reached.carry, *reached.xs), args)


class Reached(NamedTuple):
    """Flags of the operands and stacked results of a scan that have a cotangent."""

    consts: Flags
    carry: Flags
    xs: Flags
    ys: Flags


def reached_operands(jaxpr: Jaxpr, cts: Sequence[Any], n_consts: int, n_carry: int) -> Reached:
    of_ys = are_nonzero(cts[n_carry:])

    def step(carry: Flags) -> tuple[Flags, Flags]:
        found = transpose.flag_reached(jaxpr, (*carry, *of_ys))
        return found, found[n_consts : n_consts + n_carry]

    found, of_carry = fixed_point(are_nonzero(cts[:n_carry]), step)
    of_consts, _, of_xs = split_list(found, n_consts, n_carry)
    return Reached(of_consts, of_carry, of_xs, of_ys)


def transposed_step(jaxpr: Jaxpr, reached: Reached, n_kept: int, n_elements: int) -> Jaxpr:
    """Build the body of the transposed scan, with `n_kept` constants and `n_elements` sequences as residuals."""
    operands = (*reached.consts, *reached.carry, *reached.xs)
    added = where_true(jaxpr.linear_in, [yes and i < len(reached.consts) for i, yes in enumerate(operands)])
    wanted = where_true(jaxpr.linear_in, operands)
    program, _ = transpose.transpose_jaxpr(jaxpr, (*reached.carry, *reached.ys), tuple(added), tuple(wanted))
    counts = (n_kept, n_elements, sum(reached.carry), sum(reached.ys))
    kept, elements, carried, stacked, sums = split_list(range(len(program.invars)), *counts)
    return passes.rearrange_program(program, [*kept, *sums, *carried, *elements, *stacked], range(sum(wanted)))


def cotangents_of_operands(pulled: Sequence[Any], some: Sequence[bool], args: Sequence[Any]) -> tuple[Any, ...]:
    """Assign the cotangents `pulled` to the operands flagged in `some`; `Zero` to other linear operands, else None."""
    given = iter(pulled)
    cts = [next(given) if yes else None for yes in some]
    return tuple([(Zero(x.aval) if ct is None else ct) if is_linear(x) else None for x, ct in zip(args, cts)])


def _while_transpose(cts: Any, totals: Any, *args: Any, **params: Any) -> Any:
    """Transpose a while loop of linear values that was not unzipped: run its primal half first."""
    found = _run_primal_while(tuple(map(is_linear, args)), args, **params)
    before = params["n_condition"] + params["n_body"]
    flags = (*[is_linear(x) for x in args[:before]], *found.of_carry)
    positions = where_true(flags, range(len(args)))
    n = len(found.residuals)
    pulled = transpose.rules[linear_while.linear_while_p](
        where_true(found.of_carry, cts),
        totals.of_operands([*[0] * n, *positions]),
        *found.residuals,
        *[args[i] if is_linear(args[i]) else transpose.Linear(aval_of(args[i])) for i in positions],
        **found.params,
    )
    of_operand = dict(zip(positions, pulled[n:]))
    return tuple([of_operand[i] if is_linear(x) else None for i, x in enumerate(args)])


def _cond_transpose(cts: Any, totals: Any, index: Any, *operands: Any, branches: tuple[Jaxpr, ...]) -> Any:
    """Transpose a cond: a cond of the transposed branches, which add to running cotangents in place."""
    linear, some = branches[0].linear_in, are_nonzero(cts)
    reach = [transpose.flag_reached(branch, some) for branch in branches]
    found = [any(flags) for flags in zip(*reach)]
    running = [totals.take(1 + i) if yes else None for i, yes in enumerate(found)]
    added = [total is not None for total in running]
    masks = tuple(where_true(linear, added)), tuple(where_true(linear, found))
    programs = [transpose.transpose_jaxpr(branch, some, *masks)[0] for branch in branches]
    given = [*where_false(linear, operands), *where_true(some, cts), *where_true(added, running)]
    pulled = c.cond(index, given, programs)
    return None, *cotangents_of_operands(pulled, found, operands)


# ---- vmap ----------------------------------------------------------------------------------------------------


def vmap_of_bodies(primitive: Primitive, size: int, args: Any, dims: Any, **params: Any) -> Any:
    """Batch bodies: the vmap rule of a primitive that describes them, if all examples run the same ones."""
    found = transformed_bodies.batch_bodies(primitive, params, size, args, dims)
    return apply_with_bodies(primitive, params, found.bodies, found.operands), found.dims


def _while_vmap(size: int, args: Any, dims: Any, **params: Any) -> Any:
    found = transformed_bodies.batch_bodies(c.while_p, params, size, args, dims)
    if not found.differs:
        return apply_with_bodies(c.while_p, params, found.bodies, found.operands), found.dims
    condition, body, counts = params["condition"], params["body"], (params["n_condition"], params["n_body"])
    before = sum(counts)
    mapped = tuple([d is not None or k >= before for k, d in enumerate(dims)])
    given = [vmap.move_mapped_axis(x, d, 0, size) if yes else x for x, d, yes in zip(args, dims, mapped, strict=True)]
    if batched_control_flow.decide(c.while_p, size, [condition, body]) == "loop":
        outs = batched_control_flow.one_by_one(c.while_p, size, given, mapped, params)
    else:
        of_test, of_consts, of_carry = split_list(mapped, *counts)
        test = vmap.batch_jaxpr(condition, size, transformed_bodies.dims_of((*of_test, *of_carry)))
        program = vmap.batch_jaxpr(body, size, transformed_bodies.dims_of((*of_consts, *of_carry)))
        test_consts, consts, carry = split_list(given, *counts)
        outs = batched_control_flow.select_while(
            size, test, program, (test_consts, consts), carry, params.get("saving", c.BY_DEFAULT)
        )
    return outs, [0] * len(outs)


def _cond_vmap(size: int, args: Any, dims: Any, *, branches: tuple[Jaxpr, ...]) -> Any:
    if dims[0] is None:
        return vmap_of_bodies(c.cond_p, size, args, dims, branches=branches)
    mapped = tuple([d is not None for d in dims])
    given = [vmap.move_mapped_axis(x, d, 0, size) if yes else x for x, d, yes in zip(args, dims, mapped, strict=True)]
    if batched_control_flow.decide(c.cond_p, size, branches) == "loop":
        outs = batched_control_flow.one_by_one(c.cond_p, size, given, mapped, {"branches": branches})
    else:
        index = convert_element_type(given[0], np.int32)
        outs = batched_control_flow.select_branches(size, index, given[1:], mapped[1:], branches)
    return outs, [0] * len(outs)


def enter_loop(primitive: Primitive) -> None:
    """Enter the rules of a primitive that describes one body and a known number of steps: those of such a scan.

    Tangents and mapped axes go through an equation of the primitive itself; both halves of an unzipped one are scans.
    """

    def partial_eval_rule(trace: UnzipTrace, args: Any, **params: Any) -> Any:
        if primitive is not c.scan_p:
            primitive.type(tuple(map(aval_of, args)), params)  # its own checks, and its name in their errors
        return _scan_partial_eval(trace, args, **c.as_scan_params(primitive, params))

    def transpose_rule(cts: Any, totals: Any, *args: Any, **params: Any) -> Any:
        return _scan_transpose(cts, totals, *args, **c.as_scan_params(primitive, params))

    jvp.rules[primitive] = partial(jvp_of_bodies, primitive)
    vmap.rules[primitive] = partial(vmap_of_bodies, primitive)
    partial_eval.rules[primitive] = partial_eval_rule
    transpose.rules[primitive] = transpose.Accumulating(transpose_rule)
    rematerialization.rules[primitive] = lambda eqn, *how: rematerialization_control_flow.loop(c.as_scan(eqn), *how)


for _primitive in (c.while_p, c.cond_p):
    jvp.rules[_primitive] = partial(jvp_of_bodies, _primitive)
enter_loop(c.scan_p)
partial_eval.rules[c.while_p] = _while_partial_eval
partial_eval.rules[c.cond_p] = _cond_partial_eval
transpose.rules[c.while_p] = transpose.Accumulating(_while_transpose)
transpose.rules[c.cond_p] = transpose.Accumulating(_cond_transpose)
rematerialization.rules[c.cond_p] = rematerialization_control_flow.choice
vmap.rules[c.while_p] = _while_vmap
vmap.rules[c.cond_p] = _cond_vmap

# ---- index rows ----------------------------------------------------------------------------------------------

without_row("its programs have equations, which have rows", c.cond_p, c.while_p, c.scan_p)

# ---- the platform --------------------------------------------------------------------------------------------
# A number without operands: its derivative is zero, and it is the same for all examples.

jvp.zero(platform_index_p)
vmap.rules[platform_index_p] = lambda size, args, dims, **params: (platform_index_p.bind(**params), [None])
rows[platform_index_p] = lambda params, avals: core((), ())
