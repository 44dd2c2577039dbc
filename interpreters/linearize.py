"""Linearization: jvp, then unzip. The linear jaxpr is built once and applied often, forwards or transposed.

linearize(f, x) == (f(x), the program of t -> f'(x) t).   Source: Radul et al. 2023.
Primal values are computed at once, for Python may look at them; so residuals are values, and those that are repetitive
or masked are written into the linear jaxpr as the equations that made them (residuals/provenance.py).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.interpreters import transpose
from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.inline import InliningInTurn
from tapeless.interpreters.jvp import JVPTrace, JVPTracer
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.residuals.provenance import ResidualProvenance, hoist_primal_equations
from tapeless.interpreters.simplify import simplified
from tapeless.interpreters.zero import Zero, are_nonzero
from tapeless.tracer import core, dtypes, passes, source
from tapeless.tracer.array import Array, Unplaced
from tapeless.tracer.check import checked
from tapeless.tracer.core import Primitive, Trace, Tracer
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, eval_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of


class LinearizedJaxpr:
    """A linear map between flat lists of tangents: a linear jaxpr with the values of its residuals.

    jaxpr: residuals ; tangents -> those result tangents that are not symbolically zero (`nonzero`).
    """

    def __init__(self, jaxpr: Jaxpr, residuals: Sequence[Any], nonzero: Sequence[bool], outs: Sequence[ShapedArray]):
        self.jaxpr: Final = jaxpr
        self.residuals: Final = list(residuals)
        self.nonzero: Final = tuple(nonzero)
        self.out_avals: Final = tuple(outs)

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the tangents, one for each differentiable input."""
        return tuple([v.aval for v in self.jaxpr.invars if v.linear])

    def at(self, residuals: Sequence[Any]) -> "LinearizedJaxpr":
        """Replace the values of the residuals."""
        return LinearizedJaxpr(self.jaxpr, residuals, self.nonzero, self.out_avals)

    def apply(self, tangents: Sequence[Any]) -> list[Any]:
        """Push tangents forwards; one per differentiable input. Results may be `Zero`."""
        pushed = iter(eval_jaxpr(self.jaxpr, [*self.residuals, *tangents]))
        return [next(pushed) if some else Zero(aval) for some, aval in zip(self.nonzero, self.out_avals)]

    def pull_back(self, cts: Sequence[Any]) -> list[Any]:
        """Pull cotangents back; one per result. Results may be `Zero`."""
        given = [ct for ct, some in zip(cts, self.nonzero, strict=True) if some]
        return transpose.backward(self.jaxpr, self.residuals, given)


def linearize(
    f: Callable[..., Sequence[Any]], primals: Sequence[Any], function: Any = None, what: str = "linearize"
) -> tuple[list[Any], LinearizedJaxpr]:
    """Compute a flat function at `primals`, and its linear jaxpr there; integers among them have no tangent input.

    `function` and `what` are for error messages: what the user wrote, and what it is transformed for.
    """
    unzip = LinearizeTrace(core.current_trace(), function or f)
    trace = JVPTrace(unzip, function or f, what)
    args = [_dual(trace, unzip, x) for x in primals]

    def pushed() -> tuple[list[Any], Jaxpr, list[Any]]:
        outs = [trace.split(x) for x in source.transformed("jvp", f, *args)]
        return outs, *unzip.closed([t for _, t in outs if type(t) is not Zero])

    outs, jaxpr, residuals = core.under_new(unzip, core.under_new, trace, pushed)
    nonzero = are_nonzero(t for _, t in outs)
    values = [p for p, _ in outs]
    return values, LinearizedJaxpr(jaxpr, residuals, nonzero, [aval_of(p).tangent() for p in values])


class LinearizeTrace(UnzipTrace):
    """Unzip while values are computed: the linear jaxpr is closed over values, its residuals."""

    __slots__ = ("_inlining", "_residuals", "_structure")

    def __init__(self, parent: Trace, function: Any) -> None:
        super().__init__(parent, function)
        self._inlining = InliningInTurn()
        self._residuals: dict[int, tuple[Var, Any]] = {}
        self._structure = ResidualProvenance()

    def process_primal(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, ...]:
        outs = self.parent.process(primitive, args, params)
        if len(outs) == 1:
            self._structure.remember(primitive, args, params, outs[0])
        return outs

    def inlined(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._inlining.params(params)

    def primal_atom(self, x: Any) -> Atom:
        if isinstance(x, Unplaced) and not x.aval.shape:
            x = x.host
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

    def closed(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """Close the linear jaxpr over its residuals, its first inputs, and simplify it; return it and their values."""
        written = self.finish(outs)
        values = dict(self._residuals.values())
        jaxpr = with_inputs(written, values, self._inputs)
        jaxpr = core.under(self.parent, lambda: hoist_primal_equations(simplified(checked(jaxpr)), values))
        closed = with_inputs(jaxpr, values, self._inputs)
        residuals = [values[v] for v in closed.invars if not v.linear]
        return checked_linear(checked(closed), residuals), residuals


def with_inputs(jaxpr: Jaxpr, values: dict[Var, Any], inputs: Sequence[Var]) -> Jaxpr:
    """Give a program inputs for those of the primal `values` that it reads and does not compute, before `inputs`."""
    computed = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    used = passes.used_variables(jaxpr)
    return jaxpr.replace(invars=[*[v for v in values if v in used and v not in computed], *inputs])


def _dual(trace: JVPTrace, unzip: UnzipTrace, x: Any) -> Any:
    aval = aval_of(x).tangent()
    return x if aval.dtype == dtypes.float0 else JVPTracer(trace, x, unzip.input(aval))
