"""Unzipping, or partial evaluation with unknown tangents: split a program into a primal and a linear jaxpr.

An `UnzipTrace` hands a primitive whose operands are all primal to its parent trace, at once, and writes any other into
the linear jaxpr. Primal values that the linear jaxpr reads are its residuals. Given a whole jaxpr (`unzip_jaxpr`,
`unzip_body`), a policy says which residuals are saved; the others are rematerialized from the saved ones.
Source: Radul et al. 2023, section 5; partial evaluation as in Jones, Gomard & Sestoft 1993.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.interpreters import rematerialization
from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.inline import InliningInTurn, inlined
from tapeless.interpreters.rematerialization import Policy, save_all
from tapeless.interpreters.residual_provenance import ResidualProvenance, hoist_primal_equations, spreading
from tapeless.interpreters.simplify import simplified, simplified_body
from tapeless.tracer import core, passes, source
from tapeless.tracer.array import Array
from tapeless.tracer.check import checked
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.errors import InternalError
from tapeless.tracer.flags import where_false, where_true
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, eval_jaxpr
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import StagingTrace, WritingTrace, WrittenTracer
from tapeless.tracer.types import ShapedArray, aval_of

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
    return _remembered(inlined(jaxpr), linear_in, policy, (False,) * len(jaxpr.outvars), simplified)


def linear_as_written(jaxpr: Jaxpr, linear_in: tuple[bool, ...]) -> Jaxpr:
    """Return the linear half of `unzip_jaxpr` before it is simplified."""
    return _remembered(inlined(jaxpr), linear_in, save_all, (False,) * len(jaxpr.outvars), _unchanged).linear


def _unchanged(jaxpr: Jaxpr) -> Jaxpr:
    return jaxpr


def unzip_body(
    jaxpr: Jaxpr,
    linear_in: tuple[bool, ...],
    policy: Policy = save_all,
    linear_out: tuple[bool, ...] | None = None,
) -> UnzippedJaxpr:
    """Split the program of a loop, a branch or a call into a primal and a linear half; its calls are not inlined.

    Args:
      linear_out: which results must be linear, even those that depend on no linear input and so are zero: the carry
        of a loop. None: none must.
    """
    return _remembered(jaxpr, linear_in, policy, linear_out or (False,) * len(jaxpr.outvars), simplified_body)


class UnzipTrace(WritingTrace):
    """Hand primitives of primal operands to the parent trace, and write those of linear operands down.

    inlining: of programs that it is given; None in a program that is unzipped, where that was done.
    """

    __slots__ = ("_inlining", "_residuals", "_structure")
    what = "linearize"

    def __init__(self, parent: Trace, function: Any = None, inlining: InliningInTurn | None = None) -> None:
        super().__init__(parent, function)
        self._inlining = inlining
        self._residuals: dict[int, tuple[Var, Any]] = {}
        self._structure = ResidualProvenance()

    def input(self, aval: ShapedArray) -> "LinearTracer":
        """A new linear input."""
        var = Var(aval, True)
        self._inputs.append(var)
        return LinearTracer(self, var)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        for x in args:
            if type(x) is LinearTracer and x.owner is self:
                break
        else:
            outs = self.parent.process(primitive, args, params)
            if primitive in spreading:
                self._structure.remember(primitive, args, params, outs[0])
            return outs
        rule = rules.get(primitive)
        if rule is None:
            return self.record(primitive, args, params)
        if self._inlining is not None:
            params = self._inlining.params(params)
        return core.under(self.parent, rule, self, args, **params)

    def record(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        linear_out: Sequence[bool] | None = None,
    ) -> tuple[Any, ...]:
        """Write down an equation of the linear jaxpr; `linear_out` says which results are linear, if not all."""
        atoms = [self.atom(x) for x in args]
        avals = primitive.type(tuple([a.aval for a in atoms]), params)
        outvars = [Var(aval, linear) for aval, linear in zip(avals, linear_out or [True] * len(avals))]
        self._eqns.append(Equation(primitive, atoms, params, outvars, source.current()))
        return tuple([LinearTracer(self, v) for v in outvars])

    def zero(self, aval: ShapedArray) -> Any:
        """Write a zero of this type into the linear jaxpr."""
        scalar = constant(0, aval.update(shape=()))
        return self.record(broadcast_in_dim_p, [scalar], {"shape": aval.shape, "dims": ()}, [False])[0]

    def is_linear(self, x: Any) -> bool:
        """Tell whether `x` is a linear value of this trace."""
        return type(x) is LinearTracer and x.owner is self

    def atom(self, x: Any) -> Atom:
        """Return the variable or literal that stands for `x` in the linear jaxpr."""
        if type(x) is LinearTracer and x.owner is self:
            return x.variable
        if not isinstance(x, Array) and getattr(x, "ndim", 0) == 0:
            return Literal(x)
        if isinstance(x, Tracer) and not x.owner.alive:
            raise core.leak_error(x)
        found = self._residuals.get(id(x))
        if found is None:
            found = self._residuals[id(x)] = (Var(aval_of(x)), x)
            made = self._structure.of(x)
            if made is not None:
                atoms = [self.atom(y) for y in made.args]
                self._eqns.append(Equation(made.primitive, atoms, made.params, [found[0]], made.source))
        return found[0]

    def finish(
        self, outs: Sequence[Any], name: str = "linear", simplify: Simplify = simplified, given: Sequence[Any] = ()
    ) -> tuple[Jaxpr, list[Any]]:
        """Close the linear jaxpr over its residuals, its first inputs; return it and their values.

        Args:
          given: primal values of which more is known outside of the program, as of the operands of a body: of masks
            among them, which linear values are zero elsewhere.
        """
        outvars = [self.atom(x) for x in outs]
        eqns, _ = passes.live(self._eqns, outvars)
        values = dict(self._residuals.values())
        jaxpr = with_inputs(Jaxpr([], eqns, outvars, name), values, self._inputs)
        masks = [self._residuals[id(x)][0] for x in given if id(x) in self._residuals]
        jaxpr = core.under(self.parent, lambda: hoist_primal_equations(simplify(checked(jaxpr)), values, masks))
        closed = with_inputs(jaxpr, values, self._inputs)
        residuals = [values[v] for v in closed.invars if not v.linear]
        return checked_linear(checked(closed), residuals), residuals


class LinearTracer(WrittenTracer):
    """A linear value: a variable of the linear jaxpr."""

    __slots__ = ()


rules = Rules(
    "partial_eval",
    "rule(trace, args, **params) -> results, some linear: only primitives that carry programs need one",
    absent="the equation is linear, and written into the linear jaxpr as it is",
)


def with_inputs(jaxpr: Jaxpr, values: dict[Var, Any], inputs: Sequence[Var]) -> Jaxpr:
    """Give a program inputs for those of the primal `values` that it reads and does not compute, before `inputs`."""
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    used = passes.used_variables(jaxpr)
    return jaxpr.replace(invars=[*[v for v in values if v in used and v not in computed], *inputs])


def _remembered(
    jaxpr: Jaxpr, linear_in: tuple[bool, ...], policy: Policy, linear_out: tuple[bool, ...], simplify: Simplify
) -> UnzippedJaxpr:
    cache = _unzipped.setdefault(jaxpr, {})
    key = (linear_in, policy, linear_out, simplify)
    if key not in cache:
        halves = _unzip(jaxpr, linear_in, linear_out, simplify)
        cache[key] = halves if policy is save_all else _recomputing(halves, policy)
    return cache[key]


def _unzip(jaxpr: Jaxpr, linear_in: tuple[bool, ...], must: tuple[bool, ...], simplify: Simplify) -> UnzippedJaxpr:
    primal = StagingTrace(core.current_trace(), jaxpr, "linearize")
    trace = UnzipTrace(primal, jaxpr)
    args = [
        trace.input(aval) if linear else primal.input(aval)
        for aval, linear in zip(jaxpr.in_avals, linear_in, strict=True)
    ]
    name = jaxpr.name.removeprefix("jvp_")

    def halves() -> tuple[tuple[bool, ...], Jaxpr, list[Any], list[Any]]:
        outs = eval_jaxpr(jaxpr, args)
        linear_out = tuple([linear or trace.is_linear(x) for linear, x in zip(must, outs, strict=True)])
        pushed = [x if trace.is_linear(x) else trace.zero(aval_of(x)) for x in where_true(linear_out, outs)]
        given = where_false(linear_in, args)
        linear, residuals = trace.finish(pushed, f"linear_{name}", simplify, given)
        return linear_out, linear, residuals, [primal.atom(x) for x in [*where_false(linear_out, outs), *residuals]]

    linear_out, linear, residuals, primal_out = core.under_new(primal, core.under_new, trace, halves)
    program, consts = primal.finish(primal_out, f"primal_{name}")
    if consts:
        raise InternalError(f"the primal half of {jaxpr.name} is not closed: it holds {[aval_of(x) for x in consts]}")
    program, linear, n = rematerialization.without_broadcasts(program, linear, len(residuals))
    return UnzippedJaxpr(program, linear, linear_out, n)


def _recomputing(halves: UnzippedJaxpr, policy: Policy) -> UnzippedJaxpr:
    primal, linear, residuals = rematerialization.by_policy(halves.primal, halves.linear, halves.residuals, policy)
    return UnzippedJaxpr(primal, linear, halves.linear_out, residuals)


_unzipped = core.program_cache()
