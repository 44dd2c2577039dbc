"""Unzipping, or partial evaluation with unknown tangents: split a program into a primal and a linear jaxpr.

An `UnzipTrace` hands a primitive whose operands are all primal to its parent trace, at once, and writes any other into
the linear jaxpr. Primal values that the linear jaxpr reads are its residuals. A whole jaxpr (`unzip_jaxpr`,
`unzip_body`) is simplified with its linear equations separated, but as one program, and then cut in two where the least
bytes are saved (residuals/cut.py). A policy says which of these residuals are saved; the others are rematerialized.
Source: Radul et al. 2023, section 5; partial evaluation as in Jones, Gomard & Sestoft 1993.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.inline import inline_calls
from tapeless.interpreters.residuals import inversion, rematerialization
from tapeless.interpreters.residuals.rematerialization import Asked, Policy, ProgramPolicy, save_all
from tapeless.interpreters.simplify import simplify_body, simplify_program
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, linear_vars, passes, source
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import InternalError
from tapeless.tracer.flags import split_list, where_false, where_true
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, eval_jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives.invertible import invertible_p
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import StagingTrace, WritingTrace, WrittenTracer
from tapeless.tracer.types import ShapedArray, aval_of

if TYPE_CHECKING:
    from tapeless.interpreters import random_bits
    from tapeless.interpreters.residuals import cut as residual_cut
    from tapeless.interpreters.residuals.cut import Loop
    from tapeless.interpreters.simplifications import common_subexpressions
else:
    random_bits = LateModule("tapeless.interpreters.random_bits")
    residual_cut = LateModule("tapeless.interpreters.residuals.cut")
    common_subexpressions = LateModule("tapeless.interpreters.simplifications.common_subexpressions")

Simplify = Callable[[Jaxpr], Jaxpr]


class UnzippedJaxpr(NamedTuple):
    """A program in two halves.

    primal: primal inputs -> primal results, residuals. linear: residuals ; linear inputs -> linear results.
    linear_out: which results of the whole are linear. residuals: how many of the primal half's results are residuals.
    """

    primal: Jaxpr
    linear: Jaxpr
    linear_out: tuple[bool, ...]
    residuals: int


def unzip_jaxpr(jaxpr: Jaxpr, linear_in: tuple[bool, ...], policy: Policy = save_all) -> UnzippedJaxpr:
    """Split a whole program, its calls inlined, by which of its inputs are linear. Remembered while `jaxpr` lives.

    Args:
      policy: which residuals are saved.
    """
    return _remembered(inline_calls(jaxpr), linear_in, policy, (False,) * len(jaxpr.outvars), simplify_program)


def with_linear_equations(jaxpr: Jaxpr, linear_in: tuple[bool, ...], all_linear: bool = False) -> Jaxpr:
    """Return the program that `unzip_jaxpr` simplifies and cuts: each equation is either primal or linear.

    all_linear: whether every result must be linear; else primal results come first.
    """
    return _separated(inline_calls(jaxpr), linear_in, (all_linear,) * len(jaxpr.outvars)).program


def unzip_body(
    jaxpr: Jaxpr,
    linear_in: tuple[bool, ...],
    policy: Policy = save_all,
    linear_out: tuple[bool, ...] | None = None,
    loop: "Loop | None" = None,
) -> UnzippedJaxpr:
    """Split the program of a loop, a branch or a call into a primal and a linear half; its calls are not inlined.

    Args:
      linear_out: which results must be linear, even those independent of the linear inputs and so zero: the carry
        of a loop. None: none must.
      loop: the scan whose body the program is, so that its residuals are stacked; None for other programs.
    """
    return _remembered(jaxpr, linear_in, policy, linear_out or (False,) * len(jaxpr.outvars), simplify_body, loop)


def linear_results(
    jaxpr: Jaxpr, linear_in: tuple[bool, ...], linear_out: tuple[bool, ...] | None = None
) -> tuple[bool, ...]:
    """Find the linear results of a body, given which inputs are linear, as `unzip_body` finds them."""
    return _separated(jaxpr, linear_in, linear_out or (False,) * len(jaxpr.outvars)).linear_out


def _are_all_linear(eqn: Equation) -> bool:
    """Tell whether all results of an equation are linear, by a glance at its program if it has one, which says so."""
    program = eqn.params.get("jaxpr")
    if not isinstance(program, Jaxpr) or program.linear_in != tuple(map(_linear, eqn.invars)):
        return False
    return False not in map(_linear, program.outvars)


_aval, _linear = attrgetter("aval"), attrgetter("linear")


class UnzipTrace(WritingTrace):
    """The trace that unzips: it runs primitives of primal operands under the parent trace, and writes down linear ones.

    When a jaxpr is unzipped, the parent stages a jaxpr, too, and linear equations read its variables.
    """

    __slots__ = ()
    what = "linearize"
    linear = True  # are unknown values linear? If not, they are of any kind, see `binding_time`.

    def input(self, aval: ShapedArray) -> "LinearTracer":
        """Add an unknown input, and return it."""
        var = Var(aval, self.linear)
        self._inputs.append(var)
        return LinearTracer(self, var)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        for x in args:
            if type(x) is LinearTracer and x.owner is self:
                break
        else:
            return self.process_primal(primitive, args, params)
        rule = rules.get(primitive)
        if rule is None:
            return self.record(primitive, args, params)
        return core.under(self.parent, rule, self, args, **self.inlined(params))

    def process_primal(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        """Apply a primitive to primal values, under the parent trace."""
        return self.parent.process(primitive, args, params)

    def inlined(self, params: dict[str, Any]) -> dict[str, Any]:
        """Inline calls in the bodies of an equation; here nothing is left to inline, as the whole jaxpr was inlined."""
        return params

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Append an equation with linear operands to the linear jaxpr; return its results.

        A result that depends on no linear operand is returned as a primal zero, as the carry of a loop if it begins as
        a zero and stays one: no equation reads a nonlinear result of a linear one.
        """
        atoms = [x.variable if type(x) is LinearTracer and x.owner is self else self.primal_atom(x) for x in args]
        outvars = [Var(aval, True) for aval in primitive.type(tuple(map(_aval, atoms)), params)]
        eqn = Equation(primitive, atoms, params, outvars, source.current())
        if primitive.carries_programs:
            if not _are_all_linear(eqn):
                linear = linear_vars.linear_results(eqn)
                outvars = [v if yes else Var(v.aval) for v, yes in zip(outvars, linear, strict=True)]
                eqn = eqn.replace(outvars=outvars)
            self.note_programs(eqn)
        self._eqns.append(eqn)
        return tuple([LinearTracer(self, v) if v.linear else self._primal_zero(v.aval) for v in outvars])

    def note_programs(self, eqn: Equation) -> None:
        """Record what is known of the operands of an equation with programs; here nothing."""

    def unzip_body(
        self,
        jaxpr: Jaxpr,
        unknown_in: tuple[bool, ...],
        policy: Policy = save_all,
        unknown_out: tuple[bool, ...] | None = None,
        loop: "Loop | None" = None,
    ) -> UnzippedJaxpr:
        """Split the program of an equation in halves, as the function of this name does."""
        return unzip_body(jaxpr, unknown_in, policy, unknown_out, loop)

    def unknown_results(
        self, jaxpr: Jaxpr, unknown_in: tuple[bool, ...], unknown_out: tuple[bool, ...] | None = None
    ) -> tuple[bool, ...]:
        """Find the unknown results of a body, given which inputs are unknown, as `unzip_body` finds them."""
        return linear_results(jaxpr, unknown_in, unknown_out)

    def as_unknown(self, x: Any) -> Any:
        """Return `x`, or if it is known what stands for it where an unknown value is expected: a zero tangent."""
        return x if self.is_unknown(x) else self._zero(aval_of(x))

    def _zero(self, aval: ShapedArray) -> Any:
        scalar, v = self.primal_atom(constant(0, aval.update(shape=()))), Var(aval)
        params = {"shape": aval.shape, "dims": ()}
        self._eqns.append(Equation(broadcast_in_dim_p, [scalar], params, [v], source.current()))
        return LinearTracer(self, v)

    def _primal_zero(self, aval: ShapedArray) -> Any:
        return core.under(self.parent, instantiate, Zero(aval))

    def is_unknown(self, x: Any) -> bool:
        """Tell whether `x` is a value of this trace: a linear one, or one that depends on unknown inputs."""
        return type(x) is LinearTracer and x.owner is self

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal that stands for `x` in the linear jaxpr."""
        return x.variable if self.is_unknown(x) else self.primal_atom(x)

    def primal_atom(self, x: Any) -> Atom:
        """Return the variable or literal that stands for a primal value."""
        assert isinstance(self.parent, StagingTrace)
        return self.parent.atom(x)

    def finish(self, outs: Sequence[Any], name: str = "linear") -> Jaxpr:
        """Close the linear jaxpr over the primal values that it reads, its first inputs."""
        outvars = [self.atom(x) for x in outs]
        eqns, _ = passes.live(self._eqns, outvars)
        made = {v for eqn in eqns for v in eqn.outvars}.union(self._inputs)
        read = dict.fromkeys([v for eqn in eqns for v in eqn.invars] + outvars)
        return Jaxpr([*[v for v in read if type(v) is Var and v not in made], *self._inputs], eqns, outvars, name)


class LinearTracer(WrittenTracer):
    """A linear value: a variable of the linear jaxpr."""

    __slots__ = ()


rules: Final = Rules(
    "partial_eval",
    "rule(trace, args, **params) -> results, some linear: only primitives that carry programs need one",
    absent="the equation is linear, and written into the linear jaxpr as it is",
)


@core.memoize_by_program
def _remembered(
    jaxpr: Jaxpr,
    linear_in: tuple[bool, ...],
    policy: Policy,
    linear_out: tuple[bool, ...],
    simplify: Simplify,
    loop: "Loop | None" = None,
) -> UnzippedJaxpr:
    if isinstance(policy, ProgramPolicy):
        return policy.unzip(
            jaxpr, lambda program, saves=policy: _unzip(program, linear_in, linear_out, simplify, loop, saves)
        )
    halves = _unzip(jaxpr, linear_in, linear_out, simplify, loop, policy)
    return halves if policy is save_all else _recomputing(halves, policy)


def _unzip(
    jaxpr: Jaxpr,
    linear_in: tuple[bool, ...],
    must: tuple[bool, ...],
    simplify: Simplify,
    loop: "Loop | None",
    policy: Policy,
) -> UnzippedJaxpr:
    """Separate primal from linear equations, simplify them as one program, and cut it in two at the cheapest residuals.

    must: which results must be linear.
    """
    whole, linear_out = _separated(jaxpr, linear_in, must)
    whole = common_subexpressions.without_common_subexpressions(simplify(whole))
    primal, linear, n = _halves(whole, sum(linear_out), jaxpr.name.removeprefix("jvp_"))
    if invertible_p in jaxpr.primitives:
        primal, linear, n = inversion.through_inverses(primal, linear, n)
    saving = residual_cut.cheapest(primal, n, loop)
    if policy is save_all:  # with another, what is saved is chosen again
        saving = residual_cut.save_masked(saving, primal, n, loop)
    primal, linear, n = rematerialization.with_plan(primal, linear, saving)
    if random_bits.may_be_random(jaxpr):
        random_bits.note_residuals(linear.invars[:n], primal)
    return UnzippedJaxpr(primal, checked_linear(linear), linear_out, n)


class _Separated(NamedTuple):
    """A program whose equations are each either primal or linear; bodies that mix both are unzipped.

    program: primal inputs, linear inputs -> primal results, linear results. linear_out: which results of the original
    are linear.
    """

    program: Jaxpr
    linear_out: tuple[bool, ...]


@core.memoize_by_program
def _separated(jaxpr: Jaxpr, linear_in: tuple[bool, ...], must: tuple[bool, ...]) -> _Separated:
    """Join the primal and the linear equations of a program."""
    program, linear, linear_out, n = separate(UnzipTrace, jaxpr, linear_in, must)
    whole = program.replace(
        invars=[*program.invars, *linear.invars[n:]],
        eqns=[*program.eqns, *linear.eqns],
        outvars=[*program.outvars[: len(program.outvars) - n], *linear.outvars],
    )
    return _Separated(check_if_configured(whole), linear_out)


def separate(
    kind: type[UnzipTrace], jaxpr: Jaxpr, unknown_in: tuple[bool, ...], must: tuple[bool, ...]
) -> UnzippedJaxpr:
    """Evaluate a program on known and unknown tracers; return the halves that they stage, of the same variables.

    Args:
      kind: the trace of the unknown ones. must: which results must be unknown.
    """
    primal = StagingTrace(core.current_trace(), jaxpr, kind.what)
    trace = kind(primal, jaxpr)
    args = [
        trace.input(aval) if unknown else primal.input(aval)
        for aval, unknown in zip(jaxpr.in_avals, unknown_in, strict=True)
    ]

    def split() -> tuple[tuple[bool, ...], Jaxpr, list[Atom]]:
        outs = eval_jaxpr(jaxpr, args)
        unknown_out = tuple([unknown or trace.is_unknown(x) for unknown, x in zip(must, outs, strict=True)])
        pushed = [trace.as_unknown(x) for x in where_true(unknown_out, outs)]
        return unknown_out, trace.finish(pushed), [primal.atom(x) for x in where_false(unknown_out, outs)]

    unknown_out, unknown, results = core.under_new(primal, core.under_new, trace, split)
    n = len(unknown.invars) - sum(unknown_in)
    program, consts = primal.finish([*results, *unknown.invars[:n]], jaxpr.name)
    if consts:
        raise InternalError(f"the primal half of {jaxpr.name} is not closed: it holds {[aval_of(x) for x in consts]}")
    return UnzippedJaxpr(program, unknown, unknown_out, n)


def _halves(whole: Jaxpr, n_linear: int, name: str) -> tuple[Jaxpr, Jaxpr, int]:
    """Cut a program before the linear equations and all equations that depend on them.

    Returns: the primal half: primal inputs -> primal results, residuals; the linear half: residuals ; linear inputs ->
      linear results; the number of residuals.
    """
    primal_in, inputs = where_false(whole.linear_in, whole.invars), where_true(whole.linear_in, whole.invars)
    results, pushed = split_list(whole.outvars, len(whole.outvars) - n_linear)
    late = set[Atom](inputs)
    eqns: tuple[list[Equation], list[Equation]] = [], []
    for eqn in whole.eqns:
        is_late = eqn.linear or not late.isdisjoint(eqn.invars)
        eqns[is_late].append(eqn)
        late.update(eqn.outvars if is_late else ())
    read = list(dict.fromkeys([v for eqn in eqns[True] for v in eqn.invars] + list(pushed)))
    wanted = [v for v in read if type(v) is Var and v not in late]
    primal = Jaxpr(primal_in, eqns[False], [*results, *wanted], f"primal_{name}")
    return primal, Jaxpr([*wanted, *inputs], eqns[True], pushed, f"linear_{name}"), len(wanted)


def _recomputing(halves: UnzippedJaxpr, policy: Asked) -> UnzippedJaxpr:
    primal, linear, residuals = rematerialization.by_policy(halves.primal, halves.linear, halves.residuals, policy)
    return UnzippedJaxpr(primal, linear, halves.linear_out, residuals)
