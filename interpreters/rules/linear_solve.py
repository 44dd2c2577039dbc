"""Rules of custom_linear_solve: implicit differentiation, by another solve, never through the solver.

A x = b gives A ẋ = ḃ - Ȧ x, and backwards a system with the transposed matrix. Source: Giles 2008, section 2.3.
"""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, instantiate, zeros_of
from tapeless.tracer.flags import split_list
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import linear_solve as c
from tapeless.tracer.primitives.elementwise import sub


def _jvp(primals: Any, tangents: Any, *, system: Any, counts: Any) -> Any:
    outs = c.linear_solve_p.bind(*primals, system=system, counts=counts)
    of_matvec, *_, of_b = split_list(tangents, *counts)
    zeros = zeros_of(outs)
    if all(type(t) is Zero for t in (*of_matvec, *of_b)):
        return outs, zeros
    *consts, b = split_list(primals, *counts)
    n = len(b)
    moved = _moved(system[0], consts[0], of_matvec, outs[:n])
    solved = c.linear_solve(c.System(*system), consts, [_difference(t, m) for t, m in zip(of_b, moved)])
    return outs, [*solved[:n], *zeros[n:]]


def _moved(matvec: Jaxpr, consts: Sequence[Any], tangents: Sequence[Any], x: Sequence[Any]) -> list[Any]:
    """Compute the tangent of `matvec(x)` by its constants."""
    fixed = zeros_of(x)
    return jvp.jvp(lambda *xs: eval_jaxpr(matvec, xs), [*consts, *x], [*tangents, *fixed], matvec)[1]


def _difference(t: Any, moved: Any) -> Any:
    return instantiate(t) if type(moved) is Zero else sub(instantiate(t), moved)


def _partial_eval(trace: UnzipTrace, args: Any, *, system: Any, counts: Any) -> Any:
    """Stage the whole solve in the linear jaxpr: only the right-hand sides may be linear."""
    return trace.record(c.linear_solve_p, args, {"system": system, "counts": counts})


def _transpose(cts: Any, *args: Any, system: Any, counts: Any) -> tuple[Any, ...]:
    """Solve the transposed system for the cotangents. Raises: NotImplementedError if there is no solver for it."""
    *consts, b = split_list(args, *counts)
    matvec, vecmat, solve, transpose_solve = system
    if vecmat is None:
        raise NotImplementedError(
            "custom_linear_solve: reverse mode solves the transposed system, and no solver is given for it.\n"
            "  Give transpose_solve, or symmetric=True if the matrix is."
        )
    transposed = c.System(vecmat, matvec, transpose_solve, solve)
    right = [instantiate(ct) for ct in cts[: len(b)]]
    solved = c.linear_solve(transposed, [consts[1], consts[0], consts[3], consts[2]], right)
    return (*[None] * sum(counts), *[ct if is_linear(x) else None for ct, x in zip(solved, b)])


def _vmap(size: int, args: Any, dims: Any, *, system: Any, counts: Any) -> Any:
    """Batch a solve: batch each of its programs; right-hand sides are always mapped."""
    before = sum(counts)
    mapped = [d is not None or i >= before for i, d in enumerate(dims)]
    given = [vmap.move_mapped_axis_first(x, d, size) if yes else x for x, d, yes in zip(args, dims, mapped)]
    *groups, of_b = split_list([0 if yes else None for yes in mapped], *counts)
    programs = [p and vmap.batch_jaxpr(p, size, (*dims_of, *of_b)) for p, dims_of in zip(system, groups)]
    *consts, b = split_list(given, *counts)
    outs = c.linear_solve(c.System(*programs), consts, b)
    return outs, [0] * len(outs)


jvp.rules[c.linear_solve_p] = _jvp
partial_eval.rules[c.linear_solve_p] = _partial_eval
transpose.rules[c.linear_solve_p] = _transpose
vmap.rules[c.linear_solve_p] = _vmap


def _linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    n = sum(eqn.params["counts"])
    return (check.jointly(eqn, facts, range(n, len(facts))),) * len(eqn.outvars)


linearity.rules[c.linear_solve_p] = _linear

# ---- index rows ----------------------------------------------------------------------------------------------

without_row("its program for solving has equations, which have rows", c.linear_solve_p)
