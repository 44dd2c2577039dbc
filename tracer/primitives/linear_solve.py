"""Solve linear systems whose matrix is given as a function, `matvec(x) = b`, by the user's solver."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tapeless.tracer import linear_vars
from tapeless.tracer.bodies import CONST, VALUE, Bodies, Body, Description, descriptions
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.call import check_types
from tapeless.tracer.types import ShapedArray


class System(NamedTuple):
    """A linear system and its transpose, as programs that take constants first.

    matvec: x -> b. vecmat: b -> x, transposed. solve: b -> (x, auxiliary results). transpose_solve: x -> (b, auxiliary
    results). Both of the transposed system are None if reverse mode is not supported.
    """

    matvec: Jaxpr
    vecmat: Jaxpr | None
    solve: Jaxpr
    transpose_solve: Jaxpr | None


def linear_solve(system: System, consts: Sequence[Sequence[Any]], b: Sequence[Any]) -> tuple[Any, ...]:
    """Solve matvec(x) = b for x, and return the auxiliary results of the solver too.

    Args:
      consts: the constants of each program of the system, in order.
    Raises: TypeError if the types of operands and programs do not fit, or the solution does not have the types of b.
    """
    flat = [x for group in consts for x in group]
    return linear_solve_p.bind(*flat, *b, system=tuple(system), counts=tuple(map(len, consts)))


def _linear_solve_type(
    *avals: ShapedArray, system: tuple[Jaxpr | None, ...], counts: tuple[int, ...]
) -> tuple[ShapedArray, ...]:
    *groups, b = split_list(avals, *counts)
    for name, program, consts in zip(System._fields, system, groups):
        if program is not None:
            check_types(f"linear_solve: {name}", "takes", program.in_avals, (*consts, *b))
            check_types(f"linear_solve: {name}", "gives", program.out_avals[: len(b)], b)
    solve = system[2]
    assert solve is not None
    return solve.out_avals


def _mark(linear_in: tuple[bool, ...], *, system: Any, counts: Any) -> tuple[dict[str, Any], list[bool]]:
    """Mark all results linear, as functions of the right side; the programs take nonlinear values, and stay."""
    return {"system": system, "counts": counts}, [True] * len(system[2].outvars)


def _bodies(system: tuple[Jaxpr | None, ...], counts: tuple[int, ...]) -> Bodies:
    """Describe the solver, the one program that runs; it takes its constants and b."""
    solve, first = system[2], sum(counts[:2])
    assert solve is not None
    n_b = len(solve.invars) - counts[2]
    operands = (*range(first, first + counts[2]), *range(sum(counts), sum(counts) + n_b))
    n = len(solve.outvars)
    body = Body(solve, (CONST,) * len(operands), operands, (VALUE,) * n, tuple(range(n)))
    return Bodies((body,), fixed=True)


def _with_solver(params: dict[str, Any], bodies: Sequence[Body]) -> dict[str, Any]:
    return {**params, "system": (*params["system"][:2], bodies[0].jaxpr, *params["system"][3:])}


linear_solve_p: Final = Primitive("linear_solve", _linear_solve_type, remember=False)
descriptions[linear_solve_p] = Description(_bodies, _with_solver)
linear_vars.rules[linear_solve_p] = _mark
