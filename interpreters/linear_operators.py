"""Algebra of linear maps: the transpose, adjoint, composition, sum and multiple of linear jaxprs, as linear jaxprs.

Each function stages one new linear jaxpr. Its residuals are those of the given ones that it reads, or computed from
these.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.interpreters.analysis.linearity import checked_linear
from tapeless.interpreters.linearize import LinearizedJaxpr, hoist_primal_equations, with_inputs
from tapeless.interpreters.partial_eval import with_linear_equations
from tapeless.interpreters.simplify import simplify_program
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate
from tapeless.tracer import dtypes
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs
from tapeless.tracer.numpy import arithmetic
from tapeless.tracer.primitives.elementwise import conj, conj_p, convert_element_type_p, imag_p, real_p
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

Values = Sequence[Any]


def transpose_map(f: LinearizedJaxpr) -> LinearizedJaxpr:
    """Transpose a map: cotangents of its results -> cotangents of its inputs."""
    return _written(lambda residuals, cts: f.at(residuals).pull_back(cts), f.residuals, f.out_avals)


def adjoint(f: LinearizedJaxpr) -> LinearizedJaxpr:
    """Transpose and conjugate a map: <y, f(x)> = <adjoint(y), x> for the inner product sum(conj(y) x)."""

    def pulled(residuals: Values, cts: Values) -> list[Any]:
        return [*map(conjugate, f.at(residuals).pull_back([*map(conjugate, cts)]))]

    return _written(pulled, f.residuals, f.out_avals)


def product(f: LinearizedJaxpr, g: LinearizedJaxpr) -> LinearizedJaxpr:
    """Compose two maps: x -> f(g(x))."""
    n = len(f.residuals)

    def composed(residuals: Values, xs: Values) -> list[Any]:
        between = g.at(residuals[n:]).apply(xs)
        return f.at(residuals[:n]).apply([*map(instantiate, between)])

    return _written(composed, [*f.residuals, *g.residuals], g.in_avals)


def plus(f: LinearizedJaxpr, g: LinearizedJaxpr) -> LinearizedJaxpr:
    """Add two maps of the same inputs: x -> f(x) + g(x). Results are promoted as by numpy.add."""
    n = len(f.residuals)

    def added(residuals: Values, xs: Values) -> list[Any]:
        return [*map(_sum, f.at(residuals[:n]).apply(xs), g.at(residuals[n:]).apply(xs))]

    return _written(added, [*f.residuals, *g.residuals], f.in_avals)


def scale_map(operation: Callable[[Any, Any], Any], f: LinearizedJaxpr, number: Any) -> LinearizedJaxpr:
    """Multiply or divide a map by a scalar array; `operation`, of `tapeless.numpy`, promotes the dtypes of results."""

    def multiplied(residuals: Values, xs: Values) -> list[Any]:
        return [_scaled(operation, y, residuals[0]) for y in f.at(residuals[1:]).apply(xs)]

    return _written(multiplied, [number, *f.residuals], f.in_avals)


def is_complex_linear(jaxpr: Jaxpr) -> bool:
    """Tell whether a linear jaxpr is complex linear: it takes no real or imaginary part or conjugate of linear values.

    Search term: C-linear, as opposed to R-linear.
    """
    return not any(map(_takes_parts, jaxpr.eqns))


def _takes_parts(eqn: Equation) -> bool:
    if not eqn.linear:
        return False
    if eqn.primitive is convert_element_type_p:
        before, after = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
        return dtypes.is_complex(before) and not dtypes.is_complex(after)
    return eqn.primitive in (real_p, imag_p, conj_p) or not all(map(is_complex_linear, subjaxprs(eqn.params)))


def conjugate(x: Any) -> Any:
    """Conjugate a tangent or cotangent, which may be `Zero`."""
    return conj(x) if type(x) is not Zero and dtypes.is_complex(aval_of(x).dtype) else x


def _sum(x: Any, y: Any) -> Any:
    if type(x) is Zero and type(y) is Zero:
        return Zero(aval_of(x).update(dtype=dtypes.result_type(x, y)[0]))
    return arithmetic.add(instantiate(x), instantiate(y))


def _scaled(operation: Callable[[Any, Any], Any], x: Any, number: Any) -> Any:
    if type(x) is Zero:
        return Zero(x.aval.update(dtype=dtypes.result_type(x, number)[0]))
    return operation(x, number)


def _written(
    operator: Callable[[Values, Values], Sequence[Any]], residuals: Values, in_avals: Sequence[ShapedArray]
) -> LinearizedJaxpr:
    """Stage `operator(residuals, inputs)`, linear in the inputs and with results that may be `Zero`, and simplify."""
    n = len(residuals)
    results: Sequence[Any] = ()

    def flat(*xs: Any) -> list[Any]:
        nonlocal results
        results = operator(xs[:n], xs[n:])
        return [y for y in results if type(y) is not Zero]

    traced = trace_closed(flat, [*map(aval_of, residuals), *in_avals], what="linearize")
    jaxpr = simplify_program(with_linear_equations(traced, (*[False] * n, *[True] * len(in_avals)), all_linear=True))
    values = dict(zip(jaxpr.invars, residuals))
    closed = with_inputs(hoist_primal_equations(jaxpr, values), values, jaxpr.invars[n:]).replace(name="linear")
    needed = [values[v] for v in closed.invars if not v.linear]
    out_avals = [aval_of(y) for y in results]
    return LinearizedJaxpr(checked_linear(check_if_configured(closed), needed), needed, are_nonzero(results), out_avals)
