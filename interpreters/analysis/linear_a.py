"""Linear A: jvp, unzip and transpose of programs in strict form, rule by rule and without any optimisation.

There are no symbolic zeros, and dead code is kept: the work of the real transforms is compared with this. The bodies of
scan and cond are transformed: a scan saves every residual of every step, `cond` those of all branches, zeros for
branches that are not taken. Source: Radul et al. 2023, sections 4 to 6; scans and branches are ours. Left out: `while`,
whose number of residuals is unknown.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from tapeless.interpreters import jvp as forward
from tapeless.interpreters import transpose as reverse
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.analysis.cost import price_of
from tapeless.interpreters.analysis.strict_form import StrictBuilder, drop, dup, lit, look_up, lzero, strict_form
from tapeless.tracer import dtypes, source
from tapeless.tracer.bodies import CARRY, CONST, EACH, VALUE, Body, bodies_of, in_groups, rebuild_equation
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import merge_lists, split_list, where_false, where_true
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_subjaxprs, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.control_flow import as_scan, cond_p, scan_p, stacked_type
from tapeless.tracer.primitives.elementwise import add_p, select_n_p
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray


def jvp(program: Jaxpr, differentiated: Sequence[bool] | None = None) -> Jaxpr:
    """Build the program `primals ; tangents -> results ; tangents` of one without linear inputs, in strict form.

    Calls are inlined.

    Args:
      differentiated: which inputs have a tangent; all that are inexact if None.
    Raises: NotImplementedError for control flow other than scan and cond, and for rules that close over arrays.
    """
    some = differentiated or list(map(_has_tangent, program.invars))
    program = strict_form(_without_calls(program))
    to = StrictBuilder()
    primal: dict[Atom, Any] = {v: Var(v.aval) for v in program.invars}
    tangent: dict[Atom, Any] = {v: Var(v.aval.tangent(), True) for v in where_true(some, program.invars)}
    invars = [*primal.values(), *tangent.values()]
    for eqn in program.eqns:
        given = [primal.get(v, v) for v in eqn.invars]
        pushed = {v: tangent.get(v) for v in eqn.invars if _has_tangent(v)}
        if eqn.primitive is drop:
            for v in (*given, *[t for t in pushed.values() if t]):
                to.write(drop, [v], [], eqn.source)
            continue
        if eqn.primitive is lit:
            outs, new = to.write(lit, given, eqn.outvars, eqn.source), ()
        elif eqn.primitive in _CONTROL_FLOW:
            outs, new = _pushed_inside(to, eqn, given, [pushed.get(v) for v in eqn.invars])
        else:
            outs, new = _pushed(to, eqn, given, [pushed.get(v) for v in eqn.invars])
        primal.update(zip(eqn.outvars, outs))
        tangent.update(new)
    tangents = [tangent[v] if v in tangent else to.zero(v) for v in program.outvars if _has_tangent(v)]
    built = Jaxpr(invars, to.eqns, [*[primal[v] for v in program.outvars], *tangents], f"jvp_{program.name}")
    return strict_form(built, linear_out=[i >= len(program.outvars) for i in range(len(built.outvars))])


class StrictHalves(NamedTuple):
    """An unzipped program. nonlinear: inputs -> results, residuals. linear: residuals ; tangents -> tangents.

    residuals: how many there are.
    """

    nonlinear: Jaxpr
    linear: Jaxpr
    residuals: int


def unzip(program: Jaxpr) -> StrictHalves:
    """Split a strict jaxpr into nonlinear and linear equations; nonlinear values that the latter read are residuals."""
    eqns = [half for eqn in program.eqns for half in _halves(eqn)]
    linear = [eqn for eqn in eqns if eqn.linear]
    others = [eqn for eqn in eqns if not eqn.linear]
    residuals = list(dict.fromkeys(v for eqn in linear for v in eqn.invars if isinstance(v, Var) and not v.linear))
    invars, outvars = _by_linearity(program.invars), _by_linearity(program.outvars)
    name = program.name.removeprefix("jvp_")
    return StrictHalves(
        Jaxpr(invars[0], others, [*outvars[0], *residuals], f"primal_{name}"),
        Jaxpr([*residuals, *invars[1]], linear, outvars[1], f"linear_{name}"),
        len(residuals),
    )


def transpose(program: Jaxpr, zero_in: Sequence[bool] = ()) -> Jaxpr:
    """Transpose a linear jaxpr in strict form: `residuals ; cotangents of results -> cotangents of linear inputs`.

    Args:
      zero_in: which of its first inputs are known to be zero.
    Raises: NotImplementedError for control flow other than scan and cond; LinearityError if it is not linear.
    """
    program = strict_form(_without_calls(program), zero_in)
    to = StrictBuilder()
    residuals, inputs = _by_linearity(program.invars)
    ct = {v: Var(v.aval, True) for v in program.outvars}  # one for each value, since it is read once
    given = [*residuals, *ct.values()]
    eqns = [half for eqn in program.eqns for half in _halves(eqn)]
    to.eqns += [eqn for eqn in eqns if not eqn.linear]
    for eqn in reversed(eqns):
        if eqn.linear:
            _pull(to, eqn, ct)
    return strict_form(Jaxpr(given, to.eqns, [ct[v] for v in inputs], f"transpose_{program.name}"))


def _without_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Inline calls; scan and cond keep their bodies. Raises: NotImplementedError for other control flow."""
    to = StrictBuilder()
    env: dict[Var, Atom] = {v: v for v in jaxpr.invars}
    for eqn in jaxpr.eqns:
        eqn, programs = as_scan(eqn), list(subjaxprs(eqn.params))
        if eqn.primitive in _CONTROL_FLOW:
            programs = []
        elif programs and not _is_call(eqn):
            raise NotImplementedError(_no_strict_form(eqn, "it has one without strict=True only."))
        inner = _without_calls(programs[0]) if programs else Jaxpr(eqn.invars, [eqn], eqn.outvars)  # type: ignore[arg-type]
        env.update(zip(eqn.outvars, to.inline(inner, [look_up(v, env) for v in eqn.invars], eqn.source)))
    return jaxpr.replace(eqns=to.eqns, outvars=[look_up(v, env) for v in jaxpr.outvars])


def _is_call(eqn: Equation) -> bool:
    """Tell whether an equation does nothing but to call its one body."""
    bodies = bodies_of(eqn)
    return eqn.primitive not in linearity.rules and not (bodies is not None and bodies.loops)


def _pushed(
    to: "StrictBuilder", eqn: Equation, given: Sequence[Atom], tangents: Sequence[Var | None]
) -> tuple[list[Atom], list[tuple[Var, Any]]]:
    """Write the jvp of an equation by its rule; return its results, and the results that have tangents with these."""
    nonzero = tuple([t is not None if _keeps_zeros(eqn) else _has_tangent(v) for v, t in zip(eqn.invars, tangents)])
    rule, consts, some = source.at(eqn.source, forward.jvp_jaxpr, _alone(eqn), nonzero)
    if consts:
        raise NotImplementedError(_no_strict_form(eqn, "its rule closes over arrays."))
    pushed = [t or to.zero(v) for v, t in where_true(nonzero, zip(eqn.invars, tangents))]
    results = to.inline(rule, [*given, *pushed], eqn.source)
    n = len(eqn.outvars)
    return results[:n], list(zip(where_true(some, eqn.outvars), results[n:], strict=True))


def _keeps_zeros(eqn: Equation) -> bool:
    """Tell whether zero tangents may be left out: a move of zeros is zero, and a select with zeros is a product."""
    return eqn.primitive is select_n_p or price_of(eqn).moves


def _pull(to: "StrictBuilder", eqn: Equation, ct: dict[Any, Any]) -> None:
    """Write the transpose of an equation: replace the cotangents of its results in `ct` by those of linear operands."""
    given = [ct.pop(v) for v in eqn.outvars]
    if eqn.primitive is dup:
        (v,) = eqn.invars
        ct[v] = to.inline(_alone_add(v.aval), given, eqn.source)[0]
    elif eqn.primitive is lzero:
        to.write(drop, given, [], eqn.source)
    elif eqn.primitive is drop:
        ct[eqn.invars[0]] = to.zero(eqn.invars[0])
    elif eqn.primitive in _CONTROL_FLOW:
        transposed, pulled = _pulled_inside(eqn, given)
        to.eqns.append(transposed)
        ct.update(zip([v for v in eqn.invars if v.linear], pulled, strict=True))
    else:
        operands = [v for v in eqn.invars if v.linear]
        rule, some = reverse.transpose_jaxpr(_alone(eqn), (True,) * len(given))
        pulled = to.inline(rule, [*[v for v in eqn.invars if not v.linear], *given], eqn.source)
        ct.update(zip(operands, merge_lists(some, pulled, map(to.zero, where_false(some, operands)))))


def _alone(eqn: Equation) -> Jaxpr:
    """Return the program of one equation, whose operands are its inputs; the same object for equal equations."""
    return _program_of(
        eqn.primitive,
        tuple([(v.aval, v.linear) for v in eqn.invars]),
        tuple([v.aval for v in eqn.outvars]),
        tuple(eqn.params.items()),
    )


@lru_cache(maxsize=4096)
def _program_of(primitive: Primitive, operands: Any, results: Any, params: Any) -> Jaxpr:
    invars = [Var(aval, linear) for aval, linear in operands]
    outvars = [Var(aval) for aval in results]
    alone = Jaxpr(invars, [Equation(primitive, invars, dict(params), outvars)], outvars, str(primitive))
    return mark_linear(alone)


def _alone_add(aval: ShapedArray) -> Jaxpr:
    return _program_of(add_p, ((aval, True), (aval, True)), (aval,), ())


def _no_strict_form(eqn: Equation, why: str) -> str:
    place = f", of {eqn.source.describe()}" if eqn.source else ""
    return f"the strict form of a derivative of {eqn.primitive} is not known{place}: {why}"


def _has_tangent(v: Atom) -> bool:
    return dtypes.is_inexact(v.aval.dtype)


def _by_linearity(atoms: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    return [v for v in atoms if not v.linear], [v for v in atoms if v.linear]


# ---- scans and branches --------------------------------------------------------------------------------------


class _Groups(NamedTuple):
    """The groups (constants, carries, elements) of operands and of results, by their sizes.

    before: how many operands come first that bodies do not take.
    """

    before: int
    operands: tuple[int, ...]
    results: tuple[int, ...]


_INPUTS, _OUTPUTS = (CONST, CARRY, EACH), (VALUE, CARRY, EACH)


def _groups(eqn: Equation) -> _Groups:
    bodies = bodies_of(eqn)
    assert bodies is not None
    body, before = bodies.each[0], 0 if bodies.selector is None else 1
    return _Groups(before, tuple(map(body.ins.count, _INPUTS)), tuple(map(body.outs.count, _OUTPUTS)))


def _body(program: Jaxpr, inputs: Sequence[Sequence[Any]], results: Sequence[Sequence[Any]], before: int = 0) -> Body:
    """Describe a body by the groups of its operands and results, the constants or values first."""
    return in_groups(program, list(zip(_INPUTS, map(len, inputs))), list(zip(_OUTPUTS, map(len, results))), before)


def _paired(primals: Sequence[Atom], tangents: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Group primals by sizes, and append to each group the tangents of those that have one."""
    left = iter(tangents)
    groups = split_list([(v, next(left) if _has_tangent(v) else None) for v in primals], *sizes[:-1])
    return [[*[v for v, _ in pairs], *[t for _, t in pairs if t is not None]] for pairs in groups]


def _pushed_inside(
    to: StrictBuilder, eqn: Equation, given: Sequence[Atom], tangents: Sequence[Var | None]
) -> tuple[list[Atom], list[tuple[Var, Any]]]:
    """Write the jvp of a scan or cond, with the jvp of each body; return its results, and these with tangents."""
    groups, outs = _groups(eqn), [Var(v.aval) for v in eqn.outvars]
    some = [v for v in eqn.outvars if _has_tangent(v)]
    new = [Var(v.aval.tangent(), True) for v in some]
    pushed = [t or to.zero(v) for t, v in zip(tangents, eqn.invars) if _has_tangent(v)]
    operands = _paired(given[groups.before :], pushed, groups.operands)
    results = _paired(outs, new, groups.results)
    programs = [_paired_jvp(program, groups) for program in subjaxprs(eqn.params)]
    bodies = [_body(program, operands, results, groups.before) for program in programs]
    to.eqns.append(rebuild_equation(eqn, bodies, [*given[: groups.before], *chain(*operands)], [*chain(*results)]))
    return [*outs], list(zip(some, new))


def _paired_jvp(program: Jaxpr, groups: _Groups) -> Jaxpr:
    both, n, m = jvp(program), len(program.invars), len(program.outvars)
    invars = chain(*_paired(both.invars[:n], both.invars[n:], groups.operands))
    return both.replace(
        invars=[*invars], outvars=[*chain(*_paired(both.outvars[:m], both.outvars[m:], groups.results))]
    )


def _halves(eqn: Equation) -> Sequence[Equation]:
    """Unzip an equation: split a scan or cond that has results of both kinds into a nonlinear and a linear one."""
    if eqn.primitive not in _CONTROL_FLOW or not eqn.linear or all(v.linear for v in eqn.outvars):
        return [eqn]
    return _scan_halves(eqn) if eqn.primitive is scan_p else _cond_halves(eqn)


def _scan_halves(eqn: Equation) -> Sequence[Equation]:
    """Unzip a scan: the linear loop scans the residuals that the first stacks; linear operands are carries or xs."""
    halves, sizes = unzip(eqn.params["jaxpr"]), _groups(eqn)
    inner, ins = halves.linear.invars[: halves.residuals], halves.linear.invars[halves.residuals :]
    stacked = [Var(stacked_type(v.aval, eqn.params["length"])) for v in inner]
    of_scan = [_by_linearity(group) for group in split_list(eqn.invars, *sizes.operands[:-1])]
    (consts, _), (carry, tangents), (xs, elements) = of_scan
    outs, pushed = _by_linearity(eqn.outvars)
    m, n = len(carry), len(tangents)
    outs = [*outs, *stacked]
    first = _body(halves.nonlinear, (consts, carry, xs), ((), outs[:m], outs[m:]))
    linear = halves.linear.replace(invars=[*ins[:n], *inner, *ins[n:]])
    second = _body(linear, ((), tangents, [*stacked, *elements]), ((), pushed[:n], pushed[n:]))
    return (
        rebuild_equation(eqn, [first], [*consts, *carry, *xs], outs),
        rebuild_equation(eqn, [second], [*tangents, *stacked, *elements], pushed),
    )


def _cond_halves(eqn: Equation) -> Sequence[Equation]:
    """Unzip a cond: the linear one reads the residuals of all branches, which are zeros for those not taken."""
    halves = [unzip(branch) for branch in eqn.params["branches"]]
    residuals = [h.linear.invars[: h.residuals] for h in halves]
    slots = [Var(v.aval) for group in residuals for v in group]
    index, *operands = eqn.invars
    given, tangents = _by_linearity(operands)
    outs, pushed = _by_linearity(eqn.outvars)
    first = tuple([_with_slots(h, k, residuals) for k, h in enumerate(halves)])
    second = tuple([_reading_slots(h, k, residuals) for k, h in enumerate(halves)])
    return (
        eqn.replace(invars=[index, *given], outvars=[*outs, *slots], params={"branches": first}),
        eqn.replace(invars=[index, *slots, *tangents], outvars=pushed, params={"branches": second}),
    )


def _with_slots(halves: StrictHalves, k: int, residuals: Sequence[Sequence[Var]]) -> Jaxpr:
    """Return the nonlinear half of branch k, with zeros for the residuals of other branches."""
    program, to = halves.nonlinear, StrictBuilder()
    to.eqns += program.eqns
    n = len(program.outvars) - halves.residuals
    slots = [program.outvars[n:] if i == k else [_zeros(to, v) for v in group] for i, group in enumerate(residuals)]
    return program.replace(eqns=to.eqns, outvars=[*program.outvars[:n], *chain(*slots)])


def _reading_slots(halves: StrictHalves, k: int, residuals: Sequence[Sequence[Var]]) -> Jaxpr:
    """Return the linear half of branch k, which drops the residuals of other branches."""
    program, to = halves.linear, StrictBuilder()
    slots = [group if i == k else [Var(v.aval) for v in group] for i, group in enumerate(residuals)]
    for i, group in enumerate(slots):
        for v in group if i != k else ():
            to.write(drop, [v], [], None)
    return program.replace(invars=[*chain(*slots), *program.invars[halves.residuals :]], eqns=[*to.eqns, *program.eqns])


def _zeros(to: StrictBuilder, like: Var) -> Var:
    scalar = like.aval.update(shape=())
    (zero,) = to.write(lit, [Literal(constant(0, scalar), scalar)], [Var(scalar)], None)
    if like.aval.shape:
        spread, zero = zero, Var(like.aval)
        to.eqns.append(Equation(broadcast_in_dim_p, [spread], {"shape": like.aval.shape, "dims": ()}, [zero]))
    return zero


def _pulled_inside(eqn: Equation, cts: Sequence[Var]) -> tuple[Equation, list[Var]]:
    """Transpose a linear cond, or a scan, which then runs in reverse; return it with the operands' cotangents."""
    params, (before, sizes, _) = map_subjaxprs(transpose, eqn.params), _groups(eqn)
    index, groups = eqn.invars[:before], [_by_linearity(g) for g in split_list(eqn.invars[before:], *sizes[:-1])]
    residuals, linear = chain(*[r for r, _ in groups]), [v for _, group in groups for v in group]
    pulled = [Var(v.aval, True) for v in linear]
    if eqn.primitive is cond_p:
        return eqn.replace(invars=[*index, *residuals, *cts], outvars=pulled, params=params), pulled
    (consts, _), (_, carry), (xs, _) = groups
    k, n, total = len(consts), len(carry), len(consts) + len(xs)
    ins = params["jaxpr"].invars
    program = params["jaxpr"].replace(invars=[*ins[:k], *ins[total : total + n], *ins[k:total], *ins[total + n :]])
    body = _body(program, (consts, cts[:n], [*xs, *cts[n:]]), ((), pulled[:n], pulled[n:]))
    reversed_scan = eqn.replace(params={**params, "reverse": not params["reverse"]})
    return rebuild_equation(reversed_scan, [body], [*consts, *cts[:n], *xs, *cts[n:]], pulled), pulled


_CONTROL_FLOW = (scan_p, cond_p)
