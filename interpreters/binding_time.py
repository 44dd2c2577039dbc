"""Partial evaluation of any program: split it into what depends on known inputs alone, and what needs unknown ones.

Search terms: binding-time analysis, known and unknown inputs, offline partial evaluation, program specialization. It is
`partial_eval` with unknown values of any kind in the place of tangents: the same rules split scans, branches, calls and
checkpoints, and the same minimum cut and policies choose the residuals. Nothing is simplified, so that the halves
compute what the program computes, operation by operation. Source: Jones, Gomard & Sestoft 1993.
Left out: an equation stays in the unknown half as a whole if a user's rule belongs to its program, if its program has
an effect, or if an unknown value selects the branch. A loop of an unknown number of steps that reads an unknown value
computes its known carries there, too.
"""

from typing import TYPE_CHECKING, Any

from tapeless.interpreters import partial_eval
from tapeless.interpreters.inline import inline_calls
from tapeless.interpreters.partial_eval import LinearTracer, UnzippedJaxpr, UnzipTrace
from tapeless.interpreters.residuals import cut, recomputation, rematerialization
from tapeless.interpreters.residuals.budget import Budget
from tapeless.interpreters.residuals.rematerialization import Policy, ProgramPolicy, save_all
from tapeless.interpreters.simplifications.common_subexpressions import without_common_subexpressions
from tapeless.interpreters.simplifications.dead_operands import remove_dead_operands
from tapeless.tracer import core, passes, source
from tapeless.tracer.bodies import bodies_of
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import aval_of

if TYPE_CHECKING:
    from tapeless.interpreters.residuals.cut import Loop


def partial_eval_jaxpr(jaxpr: Jaxpr, unknown_in: tuple[bool, ...], policy: Policy = save_all) -> UnzippedJaxpr:
    """Split a whole program, its calls inlined, by which of its inputs are unknown; all results are of the second half.

    Args:
      policy: which residuals are saved; a budget limits their bytes.
    Returns: the halves, known inputs -> residuals, and residuals, unknown inputs -> results.
    Raises: ValueError if residuals do not fit a budget.
    """
    halves = _split(inline_calls(jaxpr), unknown_in, (True,) * len(jaxpr.outvars), None)
    if policy is save_all:
        return halves
    known, unknown, unknown_out, n = halves
    if isinstance(policy, ProgramPolicy):
        assert isinstance(policy, Budget)  # the only one
        plan = recomputation.within(policy, known, n)
    else:
        plan = rematerialization.plan_rematerialization(known, known.outvars[len(known.outvars) - n :], policy)
    return _with_plan(known, unknown, unknown_out, plan)


def known_in_unknown(halves: UnzippedJaxpr) -> Jaxpr:
    """Return the part of the unknown half that depends on residuals alone: what is computed again for each call."""
    unknown = halves.linear
    late: set[Atom] = set(unknown.invars[halves.residuals :])
    again: list[Equation] = []
    for eqn in unknown.eqns:
        if late.isdisjoint(eqn.invars) and not effects(eqn):
            again.append(eqn)
        else:
            late.update(eqn.outvars)
    return unknown.replace(eqns=again, outvars=[])


class UnknownTrace(UnzipTrace):
    """The trace that runs equations of known operands under the parent trace, and writes all others down.

    Effects keep their order: after one that is written down, so are all others.
    """

    __slots__ = ("_has_effects",)
    what = "partial_eval"
    linear = False

    def __init__(self, parent: StagingTrace, function: Any) -> None:
        super().__init__(parent, function)
        self._has_effects = False

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        has_effects = False
        if primitive.effect is not None or primitive.carries_programs:
            has_effects = bool(effects(_equation(primitive, args, params)))
        if not any(map(self.is_unknown, args)) and not (has_effects and self._has_effects):
            return self.process_primal(primitive, args, params)
        self._has_effects |= has_effects
        rule = None if has_effects or self._is_whole(primitive, args, params) else partial_eval.rules.get(primitive)
        if rule is None:
            return self.record(primitive, args, params)
        return core.under(self.parent, rule, self, args, **params)

    def _is_whole(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> bool:
        """Tell whether the programs of an equation are not split: a user's rule or an unknown selector goes with it."""
        found = bodies_of(_equation(primitive, args, params))
        if found is None:
            return False
        return found.fixed or (found.selector is not None and self.is_unknown(args[found.selector]))

    def record(self, primitive: Primitive, args: Any, params: dict[str, Any]) -> tuple[Any, ...]:
        """Write an equation into the unknown half; return its results."""
        eqn = _equation(primitive, args, params).replace(invars=[self.atom(x) for x in args], source=source.current())
        outvars = [Var(aval) for aval in primitive.type(tuple([v.aval for v in eqn.invars]), params)]
        self._eqns.append(eqn.replace(outvars=outvars))
        return tuple([LinearTracer(self, v) for v in outvars])

    def unzip_body(
        self,
        jaxpr: Jaxpr,
        unknown_in: tuple[bool, ...],
        policy: Policy = save_all,
        unknown_out: tuple[bool, ...] | None = None,
        loop: "Loop | None" = None,
    ) -> UnzippedJaxpr:
        """Split the program of an equation in halves; the policy of a checkpoint is one for its derivatives."""
        return _split(jaxpr, unknown_in, unknown_out or (False,) * len(jaxpr.outvars), loop)

    def unknown_results(
        self, jaxpr: Jaxpr, unknown_in: tuple[bool, ...], unknown_out: tuple[bool, ...] | None = None
    ) -> tuple[bool, ...]:
        return _separated(jaxpr, unknown_in, unknown_out or (False,) * len(jaxpr.outvars)).linear_out

    def as_unknown(self, x: Any) -> Any:
        """Return `x`: a known value is as good as an unknown one."""
        return x


def _equation(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Equation:
    return Equation(primitive, [Var(aval_of(x)) for x in args], params, ())


@core.memoize_by_program
def _separated(jaxpr: Jaxpr, unknown_in: tuple[bool, ...], must: tuple[bool, ...]) -> UnzippedJaxpr:
    return partial_eval.separate(UnknownTrace, jaxpr, unknown_in, must)


@core.memoize_by_program
def _split(jaxpr: Jaxpr, unknown_in: tuple[bool, ...], must: tuple[bool, ...], loop: "Loop | None") -> UnzippedJaxpr:
    """Separate known from unknown equations, and save the fewest bytes.

    must: which results must be of the unknown half.
    """
    halves = _separated(without_common_subexpressions(jaxpr), unknown_in, must)
    known, unknown, n = _without_unread(halves)
    known, unknown = known.replace(name=f"known_{jaxpr.name}"), unknown.replace(name=f"unknown_{jaxpr.name}")
    return _with_plan(known, unknown, halves.linear_out, cut.cheapest(known, n, loop))


def _without_unread(halves: UnzippedJaxpr) -> tuple[Jaxpr, Jaxpr, int]:
    """Drop carries that the unknown half does not need, as a loop's known ones, and residuals that it does not read."""
    known, unknown, _, n = halves
    unknown = _live(unknown)
    read, results = passes.used_variables(unknown), len(known.outvars) - n
    kept = [k for k in range(n) if unknown.invars[k] in read]
    known = known.replace(outvars=[*known.outvars[:results], *[known.outvars[results + k] for k in kept]])
    return known, unknown.replace(invars=[*[unknown.invars[k] for k in kept], *unknown.invars[n:]]), len(kept)


def _live(jaxpr: Jaxpr) -> Jaxpr:
    return passes.dead_code(remove_dead_operands(passes.dead_code(jaxpr)))


def _with_plan(
    known: Jaxpr, unknown: Jaxpr, unknown_out: tuple[bool, ...], plan: rematerialization.RematerializationPlan
) -> UnzippedJaxpr:
    known, unknown, n = rematerialization.with_plan(known, unknown, plan)
    return UnzippedJaxpr(_live(known), unknown, unknown_out, n)
