"""Linearization: jvp, then unzip. The linear jaxpr is built once and applied often, forwards or transposed.

linearize(f, x) == (f(x), the program of t -> f'(x) t).   Source: Radul et al. 2023.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.interpreters import transpose
from tapeless.interpreters.inline import InliningInTurn
from tapeless.interpreters.jvp import JVPTrace, JVPTracer
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.zero import Zero, are_nonzero
from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of


class LinearizedJaxpr:
    """A linear map between flat lists of tangents: a linear jaxpr with the values of its residuals.

    jaxpr: residuals ; tangents -> those result tangents that are not symbolically zero (`nonzero`).
    """

    def __init__(self, jaxpr: Jaxpr, residuals: Sequence[Any], nonzero: Sequence[bool], outs: Sequence[ShapedArray]):
        self.jaxpr, self.residuals, self.nonzero = jaxpr, list(residuals), tuple(nonzero)
        self.out_avals = tuple(outs)

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
    unzip = UnzipTrace(core.current_trace(), function or f, InliningInTurn())
    trace = JVPTrace(unzip, function or f, what)
    args = [_dual(trace, unzip, x) for x in primals]

    def pushed() -> tuple[list[Any], Jaxpr, list[Any]]:
        outs = [trace.split(x) for x in f(*args)]
        return outs, *unzip.finish([t for _, t in outs if type(t) is not Zero])

    outs, jaxpr, residuals = core.under_new(unzip, core.under_new, trace, pushed)
    nonzero = are_nonzero(t for _, t in outs)
    values = [p for p, _ in outs]
    return values, LinearizedJaxpr(jaxpr, residuals, nonzero, [aval_of(p).tangent() for p in values])


def _dual(trace: JVPTrace, unzip: UnzipTrace, x: Any) -> Any:
    aval = aval_of(x).tangent()
    return x if aval.dtype == dtypes.float0 else JVPTracer(trace, x, unzip.input(aval))
