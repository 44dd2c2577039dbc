"""Linear A: the three transformations of programs in strict form, rule by rule and without any shortcut.

No zero is symbolic, and no code is dead: what the transforms that are used do is measured against this.
Source: Radul et al. 2023, sections 4 to 6.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tapeless.interpreters import jvp as forward
from tapeless.interpreters import transpose as reverse
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.analysis.strict_form import StrictBuilder, drop, dup, lit, lzero, read, strict_form
from tapeless.tracer import dtypes, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import chosen, merged, others
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.elementwise import add_p
from tapeless.tracer.types import ShapedArray


def jvp(program: Jaxpr, differentiated: Sequence[bool] | None = None) -> Jaxpr:
    """The program `primals ; tangents -> results ; tangents` of a program without linear inputs, its calls inlined.

    Args:
      differentiated: which inputs have a tangent; all that are inexact if None.
    Raises: NotImplementedError if it branches or loops.
    """
    some = differentiated or list(map(_has_tangent, program.invars))
    program = strict_form(_without_calls(program))
    to = StrictBuilder()
    primal: dict[Atom, Any] = {v: Var(v.aval) for v in program.invars}
    tangent: dict[Atom, Any] = {v: Var(v.aval.tangent(), True) for v in chosen(some, program.invars)}
    invars = [*primal.values(), *tangent.values()]
    for eqn in program.eqns:
        given = [primal.get(v, v) for v in eqn.invars]
        pushed = {v: tangent.get(v) for v in eqn.invars if _has_tangent(v)}
        if eqn.primitive is drop:
            for v in (*given, *[t for t in pushed.values() if t]):
                to.write(drop, [v], [], eqn.source)
        elif eqn.primitive is lit:
            primal.update(zip(eqn.outvars, to.write(lit, given, eqn.outvars, eqn.source)))
        else:
            outs, new = _pushed(to, eqn, given, [pushed[v] for v in eqn.invars if v in pushed])
            primal.update(zip(eqn.outvars, outs))
            tangent.update(new)
    tangents = [tangent[v] if v in tangent else to.zero(v) for v in program.outvars if _has_tangent(v)]
    built = Jaxpr(invars, to.eqns, [*[primal[v] for v in program.outvars], *tangents], f"jvp_{program.name}")
    return strict_form(built, linear_out=[i >= len(program.outvars) for i in range(len(built.outvars))])


class StrictHalves(NamedTuple):
    """nonlinear: inputs -> results, residuals. linear: residuals ; tangents -> tangents."""

    nonlinear: Jaxpr
    linear: Jaxpr
    residuals: int


def unzip(program: Jaxpr) -> StrictHalves:
    """Split a strict jaxpr into its nonlinear and its linear equations; what the linear ones read are the residuals."""
    linear = [eqn for eqn in program.eqns if eqn.linear]
    others = [eqn for eqn in program.eqns if not eqn.linear]
    residuals = list(dict.fromkeys(v for eqn in linear for v in eqn.invars if isinstance(v, Var) and not v.linear))
    invars, outvars = _by_linearity(program.invars), _by_linearity(program.outvars)
    name = program.name.removeprefix("jvp_")
    return StrictHalves(
        Jaxpr(invars[0], others, [*outvars[0], *residuals], f"primal_{name}"),
        Jaxpr([*residuals, *invars[1]], linear, outvars[1], f"linear_{name}"),
        len(residuals),
    )


def transpose(program: Jaxpr) -> Jaxpr:
    """The program `residuals ; cotangents of results -> cotangents of inputs` of a linear jaxpr in strict form."""
    to = StrictBuilder()
    residuals, inputs = _by_linearity(program.invars)
    ct = {v: Var(v.aval, True) for v in program.outvars}  # of every value there is one, since it is read once
    given = [*residuals, *ct.values()]
    to.eqns += [eqn for eqn in program.eqns if not eqn.linear]
    for eqn in reversed(program.eqns):
        if eqn.linear:
            _pull(to, eqn, ct)
    return strict_form(Jaxpr(given, to.eqns, [ct[v] for v in inputs], f"transpose_{program.name}"))


def _without_calls(jaxpr: Jaxpr) -> Jaxpr:
    """With the programs that are called in the place of the calls."""
    to = StrictBuilder()
    env: dict[Var, Atom] = {v: v for v in jaxpr.invars}
    for eqn in jaxpr.eqns:
        programs = list(subjaxprs(eqn.params))
        if programs and eqn.primitive in linearity.rules:  # it does more than to call one
            raise NotImplementedError(_no_strict_form(eqn, "what branches or loops has one without strict=True only."))
        inner = _without_calls(programs[0]) if programs else Jaxpr(eqn.invars, [eqn], eqn.outvars)  # type: ignore[arg-type]
        env.update(zip(eqn.outvars, to.inline(inner, [read(v, env) for v in eqn.invars], eqn.source)))
    return jaxpr.replace(eqns=to.eqns, outvars=[read(v, env) for v in jaxpr.outvars])


def _pushed(
    to: "StrictBuilder", eqn: Equation, given: Sequence[Atom], tangents: Sequence[Var | None]
) -> tuple[list[Atom], list[tuple[Var, Any]]]:
    """Results of an equation, and tangents of those that have one by its rule."""
    nonzero = tuple(map(_has_tangent, eqn.invars))
    rule, consts, some = source.at(eqn.source, forward.jvp_jaxpr, _alone(eqn), nonzero)
    if consts:
        raise NotImplementedError(_no_strict_form(eqn, "its rule closes over arrays."))
    pushed = [t or to.zero(v) for t, v in zip(tangents, chosen(nonzero, eqn.invars), strict=True)]
    results = to.inline(rule, [*given, *pushed], eqn.source)
    n = len(eqn.outvars)
    return results[:n], list(zip(chosen(some, eqn.outvars), results[n:], strict=True))


def _pull(to: "StrictBuilder", eqn: Equation, ct: dict[Any, Any]) -> None:
    """Cotangents of an equation's linear operands, from those of its results."""
    given = [ct.pop(v) for v in eqn.outvars]
    if eqn.primitive is dup:
        (v,) = eqn.invars
        ct[v] = to.inline(_alone_add(v.aval), given, eqn.source)[0]
    elif eqn.primitive is lzero:
        to.write(drop, given, [], eqn.source)
    elif eqn.primitive is drop:
        ct[eqn.invars[0]] = to.zero(eqn.invars[0])
    else:
        operands = [v for v in eqn.invars if v.linear]
        rule, some = reverse.transpose_jaxpr(_alone(eqn), (True,) * len(given))
        pulled = to.inline(rule, [*[v for v in eqn.invars if not v.linear], *given], eqn.source)
        ct.update(zip(operands, merged(some, pulled, map(to.zero, others(some, operands)))))


def _alone(eqn: Equation) -> Jaxpr:
    """The program of one equation, whose operands are its inputs; the same object for equations that are alike."""
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
