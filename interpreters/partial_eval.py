"""Unzipping: split a computation into what is known now and what is linear and waits.

Under an `UnzipTrace` everything that does not touch a linear value is done in the parent's name, at once;
what does is written into a linear program, whose coefficients, the residuals, are known values. Of a program
in hand (`unzip_jaxpr`) a policy says which residuals are saved; the others are computed again from those
that are. Source: Radul et al. 2023, section 5; partial evaluation as in Jones, Gomard & Sestoft 1993.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tapeless.tracer import core, passes, source
from tapeless.tracer.array import Array
from tapeless.tracer.check import checked
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, eval_jaxpr
from tapeless.tracer.rules import Rules
from tapeless.tracer.staging import StagingTrace
from tapeless.tracer.types import ShapedArray, aval_of

Policy = Callable[..., bool]  # policy(primitive, *operand_avals, **params): may its results be saved?


def save_all(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """The policy of ordinary reverse mode: every residual is saved, nothing is computed twice."""
    return True


def save_none(primitive: Primitive, *avals: ShapedArray, **params: Any) -> bool:
    """Only the inputs are kept; every residual is computed again."""
    return False


class Unzipped(NamedTuple):
    """A program in two halves.

    known: known inputs -> known results, residuals. linear: residuals ; linear inputs -> linear results.
    linear_out: which results of the whole are linear. residuals: how many of known's results are.
    """

    known: Jaxpr
    linear: Jaxpr
    linear_out: tuple[bool, ...]
    residuals: int


def unzip_jaxpr(jaxpr: Jaxpr, linear_in: tuple[bool, ...], policy: Policy = save_all) -> Unzipped:
    """Split a program by which of its inputs wait. Remembered for as long as `jaxpr` lives."""
    cache = _unzipped.setdefault(jaxpr, {})
    key = (linear_in, policy)
    if key not in cache:
        whole = _unzip(jaxpr, linear_in)
        cache[key] = whole if policy is save_all else _recompute(whole, policy)
    return cache[key]


class UnzipTrace(Trace):
    """Applying a primitive to known values is the parent's business; to linear ones, it is written down."""

    __slots__ = ("_eqns", "_inputs", "_residuals")
    what = "linearize"

    def __init__(self, parent: Trace, function: Any = None) -> None:
        super().__init__(parent, function)
        self._inputs: list[Var] = []
        self._eqns: list[Equation] = []
        self._residuals: dict[int, tuple[Var, Any]] = {}

    def input(self, aval: ShapedArray) -> "LinearTracer":
        """A new linear input."""
        var = Var(aval, True)
        self._inputs.append(var)
        return LinearTracer(self, var)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        for x in args:
            if type(x) is LinearTracer and x.trace is self:
                break
        else:
            return self.parent.process(primitive, args, params)
        rule = rules.get(primitive)
        if rule is None:
            return self.record(primitive, args, params)
        with core.under(self.parent):
            return rule(self, args, **params)

    def record(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Write down an equation of the linear program."""
        atoms = [self.atom(x) for x in args]
        avals = primitive.type(tuple([a.aval for a in atoms]), params)
        outvars = [Var(aval, True) for aval in avals]
        self._eqns.append(Equation(primitive, atoms, params, outvars, source.current()))
        return tuple([LinearTracer(self, v) for v in outvars])

    def is_linear(self, x: Any) -> bool:
        """Whether `x` waits in this trace."""
        return type(x) is LinearTracer and x.trace is self

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for `x` in the linear program."""
        if type(x) is LinearTracer and x.trace is self:
            return x.var
        if not isinstance(x, Array) and getattr(x, "ndim", 0) == 0:
            return Literal(x)
        if isinstance(x, Tracer) and not x.trace.alive:
            raise core.leak_error(x)
        found = self._residuals.get(id(x))
        if found is None:
            found = self._residuals[id(x)] = (Var(aval_of(x)), x)
        return found[0]

    def equation_of(self, var: Var) -> Equation | None:
        """The equation that computes a variable; None for an input or a residual."""
        return next((eqn for eqn in self._eqns if var in eqn.outvars), None)

    def finish(self, outs: Sequence[Any], name: str = "linear") -> tuple[Jaxpr, list[Any]]:
        """The linear program, residuals first, and the values of the residuals it needs."""
        outvars = [self.atom(x) for x in outs]
        jaxpr = passes.dead_code(Jaxpr([], self._eqns, outvars, name))
        used = passes.used_variables(jaxpr)
        kept = [(v, x) for v, x in self._residuals.values() if v in used]
        return checked(jaxpr.replace(invars=[v for v, _ in kept] + self._inputs)), [x for _, x in kept]


class LinearTracer(Tracer):
    """A linear value that waits."""

    __slots__ = ("aval", "var")

    def __init__(self, trace: UnzipTrace, var: Var) -> None:
        self.trace, self.var, self.aval = trace, var, var.aval

    def where(self) -> str:
        trace = self.trace
        assert isinstance(trace, UnzipTrace)
        made = trace.equation_of(self.var)
        return made.source.describe() if made and made.source else ""


rules = Rules("partial_eval")  # only for primitives that carry programs: rule(trace, args, **params)


def _unzip(jaxpr: Jaxpr, linear_in: tuple[bool, ...]) -> Unzipped:
    known = StagingTrace(core.current_trace(), jaxpr, "linearize")
    trace = UnzipTrace(known, jaxpr)
    args = [
        trace.input(aval) if linear else known.input(aval)
        for aval, linear in zip(jaxpr.in_avals, linear_in, strict=True)
    ]
    with core.new_trace(known), core.new_trace(trace):
        outs = eval_jaxpr(jaxpr, args)
        linear_out = tuple(trace.is_linear(x) for x in outs)
        name = jaxpr.name.removeprefix("jvp_")
        linear, residuals = trace.finish([x for x, waits in zip(outs, linear_out) if waits], f"linear_{name}")
        results = [x for x, waits in zip(outs, linear_out) if not waits]
        known_out = [known.atom(x) for x in [*results, *residuals]]
    program, consts = known.finish(known_out, f"primal_{name}")
    if consts:
        raise InternalError(f"the known half of {jaxpr.name} is not closed: it holds {[aval_of(x) for x in consts]}")
    return Unzipped(program, linear, linear_out, len(residuals))


def _recompute(whole: Unzipped, policy: Policy) -> Unzipped:
    """Move the equations of residuals that the policy does not save into the linear half."""
    known, linear, linear_out, n = whole
    results, residuals = known.outvars[: len(known.outvars) - n], known.outvars[len(known.outvars) - n :]
    made = {v: eqn for eqn in known.eqns for v in eqn.outvars}
    saved: dict[Var, None] = {}
    again: set[Equation] = set()

    def need(v: Atom) -> None:
        if isinstance(v, Literal) or v in saved:
            return
        eqn = made.get(v)
        if eqn is None or policy(eqn.primitive, *(x.aval for x in eqn.invars), **eqn.params):
            saved[v] = None
        elif eqn not in again:
            again.add(eqn)
            for x in eqn.invars:
                need(x)

    for r in residuals:
        need(r)
    keep = list(saved)
    moved = [eqn for eqn in known.eqns if eqn in again]
    new_known = passes.dead_code(known.replace(outvars=[*results, *keep]))
    new_linear = checked(_with_prologue(linear, residuals, keep, moved))
    return Unzipped(checked(new_known), new_linear, linear_out, len(keep))


def _with_prologue(linear: Jaxpr, residuals: Sequence[Atom], keep: list[Var], moved: list[Equation]) -> Jaxpr:
    """`linear` with its residuals computed by `moved` from `keep`; variables are renamed, being of another program."""
    fresh = {v: Var(v.aval) for v in keep}
    for eqn in moved:
        fresh.update((v, Var(v.aval)) for v in eqn.outvars)

    def rename(v: Atom) -> Atom:
        return fresh[v] if isinstance(v, Var) else v

    prologue = [
        eqn.replace(invars=[rename(v) for v in eqn.invars], outvars=[fresh[v] for v in eqn.outvars]) for eqn in moved
    ]
    bound = dict(zip(linear.invars, (rename(r) for r in residuals)))

    def rebind(v: Atom) -> Atom:
        return bound.get(v, v) if isinstance(v, Var) else v

    body = [eqn.replace(invars=[rebind(v) for v in eqn.invars]) for eqn in linear.eqns]
    inputs = [fresh[v] for v in keep] + [v for v in linear.invars if v.linear]
    return Jaxpr(inputs, prologue + body, [rebind(v) for v in linear.outvars], linear.name)


_unzipped = core.program_cache()
