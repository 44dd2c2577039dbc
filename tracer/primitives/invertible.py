"""Invertible functions: calls of a program together with that of its inverse; linear loops that go back by inverses."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tapeless.tracer import core, linear_vars, passes
from tapeless.tracer.bodies import Bodies, Description, descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.call import as_called, check_types, result_types
from tapeless.tracer.primitives.control_flow import stacked_type
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray


def invertible(jaxpr: Jaxpr, inverse: Jaxpr, n_args: int, *operands: Any) -> tuple[Any, ...]:
    """Call a program whose last inputs can be computed from its first results.

    Args:
      jaxpr: `n_args` args, xs -> ys, other results. inverse: args, ys -> xs.
      operands: args, xs.
    Raises: TypeError if the types of operands and programs differ.
    """
    return invertible_p.bind(*operands, jaxpr=jaxpr, inverse=inverse, n_args=n_args)


def _invertible_type(*avals: ShapedArray, jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> tuple[ShapedArray, ...]:
    outs, given = result_types("invertible", jaxpr, avals), len(inverse.invars) - n_args
    check_types("invertible: the inverse", "takes", inverse.in_avals, (*avals[:n_args], *outs[:given]))
    check_types("invertible: the inverse", "gives", inverse.out_avals, avals[n_args:])
    return outs


invertible_p: Final = Primitive("invertible", _invertible_type, remember=False)
descriptions[invertible_p] = Description(
    lambda jaxpr, **_: Bodies((as_called(jaxpr),), fixed=True),
    lambda params, bodies: {**params, "jaxpr": bodies[0].jaxpr},
)


def invert(jaxpr: Jaxpr, inverse: Jaxpr, n_args: int) -> dict[str, Any]:
    """Return the params of the inverse function, which is invertible itself: args, ys -> xs."""
    ys = range(len(inverse.invars) - n_args)
    forwards = passes.rearrange_program(jaxpr, range(len(jaxpr.invars)), ys)
    return {"jaxpr": inverse, "inverse": forwards, "n_args": n_args}


# ---- loops ---------------------------------------------------------------------------------------------------
# linear_scan: the linear half of a loop of invertible steps. Its residuals are computed from the last state.


class LinearScanOperands(NamedTuple):
    """The operands of a linear scan, in groups.

    consts: of the step backwards. state: after the last step. xs: elements for the step backwards, [length, ...] each.
    linear_consts, carry, linear_xs: of the linear step.
    """

    consts: Sequence[Any]
    state: Sequence[Any]
    xs: Sequence[Any]
    linear_consts: Sequence[Any]
    carry: Sequence[Any]
    linear_xs: Sequence[Any]


def group_operands(operands: Sequence[Any], counts: tuple[int, ...]) -> LinearScanOperands:
    """Split the operands of a linear scan into groups of these sizes; the others are the last."""
    return LinearScanOperands(*split_list(operands, *counts))


def _linear_scan_type(
    *avals: ShapedArray, back: Jaxpr, linear: Jaxpr, counts: tuple[int, ...], length: int, **_: Any
) -> tuple[ShapedArray, ...]:
    given = group_operands(avals, counts)
    for x in (*given.xs, *given.linear_xs):
        if x.shape[:1] != (length,):
            raise TypeError(f"linear_scan: elements are {x}, but there are {length} steps.")
    xs, linear_xs = [[x.update(shape=x.shape[1:]) for x in group] for group in (given.xs, given.linear_xs)]
    check_types("linear_scan: back", "takes", back.in_avals, [*given.consts, *given.state, *xs])
    check_types("linear_scan: back", "gives", back.out_avals[: len(given.state)], given.state)
    takes = [*back.out_avals[len(given.state) :], *given.linear_consts, *given.carry, *linear_xs]
    check_types("linear_scan: linear", "takes", linear.in_avals, takes)
    n = len(given.carry)
    check_types("linear_scan: linear", "gives", linear.out_avals[:n], given.carry)
    return (*linear.out_avals[:n], *[stacked_type(aval, length) for aval in linear.out_avals[n:]])


def _mark(linear_in: tuple[bool, ...], **params: Any) -> tuple[dict[str, Any], list[bool]]:
    """Mark all results linear; the programs are in two halves already."""
    return params, [True] * len(params["linear"].outvars)


# params: back: constants, state after a step, elements -> state before it, residuals. linear: residuals, linear
# constants, carry, linear elements -> carry, stacked results. counts: of the operands in each group but the last.
# length, reverse, unroll: as of the scan whose linear half it is.
linear_scan_p: Final = Primitive("linear_scan", _linear_scan_type, remember=False)
linear_vars.rules[linear_scan_p] = _mark


def as_program(avals: Sequence[ShapedArray], params: dict[str, Any]) -> Jaxpr:
    """Write a linear scan of operands of these types as a program: a scan backwards that stacks the residuals, and a
    scan of the linear step."""
    how = tuple([(name, x) for name, x in params.items() if name not in ("back", "linear")])
    return _as_program(params["back"], params["linear"], tuple(avals), how)


@core.memoize_by_program
def _as_program(back: Jaxpr, linear: Jaxpr, avals: tuple[ShapedArray, ...], how: tuple[tuple[str, Any], ...]) -> Jaxpr:
    loop = dict(how)
    counts, reverse = loop.pop("counts"), loop.pop("reverse")
    n_residuals, n = len(back.outvars) - counts[1], counts[3]
    order = [*range(n_residuals, n_residuals + n + counts[4]), *range(n_residuals)]
    step = passes.rearrange_program(
        linear, [*order, *range(n_residuals + n + counts[4], len(linear.invars))], range(len(linear.outvars))
    )

    def forwards(*operands: Any) -> Any:
        given = group_operands(operands, counts)
        stacked = c.scan(back, given.consts, given.state, given.xs, reverse=not reverse, **loop)[counts[1] :]
        return c.scan(step, given.linear_consts, given.carry, [*stacked, *given.linear_xs], reverse=reverse, **loop)

    return trace_closed(forwards, avals, what="linearize", function=linear).replace(name=linear.name)
