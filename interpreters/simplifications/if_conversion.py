"""Conversion of cheap conditionals to selects (if-conversion): branches that return scalars, or scale one linear value.

The select is among literals and operands of the conditional only, so no equation of a branch that is not taken runs. A
conditional with a literal predicate is inlined; literal operands are propagated into the branches.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import simplify, writer
from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.control_flow import cond_p
from tapeless.tracer.primitives.elementwise import mul_p, neg_p, select_n_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p


class Scaled(NamedTuple):
    """A result of a branch: `coefficient` times operand number `of`, or `coefficient` itself if `of` is None."""

    coefficient: Atom | float
    of: int | None


def _cond(w: Writer, index: Atom, *operands: Atom, branches: tuple[Jaxpr, ...]) -> Sequence[Atom] | None:
    if index.aval.dtype != np.dtype(bool):
        return None
    if type(index) is Literal:
        return w.inlined(branches[int(index.value)], operands)
    known = any(type(x) is Literal for x in operands) and not any(x.linear for x in operands)
    if known:
        branches = tuple([simplify.simplify_program(_given(branch, operands)) for branch in branches])
        operands = tuple([x for x in operands if type(x) is not Literal])
    scalars = all(v.aval.size == 1 for v in branches[0].outvars)
    if scalars or (len(branches[0].outvars) == 1 and branches[0].outvars[0].linear):
        found = [_scaled(branch, operands) for branch in branches]
        outs = [_chosen(w, index, aval, cases, operands) for aval, cases in zip(branches[0].out_avals, zip(*found))]
        chosen = [x for x in outs if x is not None]
        if len(chosen) == len(outs):
            return chosen
    return _written(w, index, operands, branches) if known else None


def _given(branch: Jaxpr, operands: Sequence[Atom]) -> Jaxpr:
    """Substitute literal operands for the inputs of a branch without linear values; the other inputs are left."""
    literals = {v: x for v, x in zip(branch.invars, operands) if type(x) is Literal}

    def now(v: Any) -> Any:
        return literals.get(v, v) if type(v) is Var else v

    eqns = [eqn.replace(invars=[now(v) for v in eqn.invars]) for eqn in branch.eqns]
    left = [v for v in branch.invars if v not in literals]
    given = branch.replace(invars=left, eqns=eqns, outvars=[now(v) for v in branch.outvars])
    return mark_linear(given, [False] * len(left))


def _written(w: Writer, index: Atom, operands: Sequence[Atom], branches: tuple[Jaxpr, ...]) -> Sequence[Atom]:
    outs = [Var(v.aval) for v in branches[0].outvars]
    w.keep(Equation(cond_p, (index, *operands), {"branches": branches}, outs, w.source))
    return outs


def _scaled(branch: Jaxpr, operands: Sequence[Atom]) -> list[Scaled | None]:
    """Match each result of a branch with a scaled operand, a literal or an operand; None for other results."""
    given = dict(zip(branch.invars, operands, strict=True))
    made = {eqn.outvars[0]: eqn for eqn in branch.eqns if len(eqn.outvars) == 1}
    return [_one(v, given, made, branch.invars) for v in branch.outvars]


def _one(v: Atom, given: dict[Var, Atom], made: dict[Var, Equation], invars: Sequence[Var]) -> Scaled | None:
    if type(v) is Literal:
        return Scaled(v, None)
    if v in given:
        return Scaled(1.0, invars.index(v)) if v.linear else Scaled(given[v], None)  # type: ignore[index,arg-type]
    eqn = made.get(v)  # type: ignore[arg-type]
    if eqn is None:  # one of several results
        return None
    if eqn.primitive is broadcast_in_dim_p and type(eqn.invars[0]) is Literal:
        return Scaled(eqn.invars[0], None)
    (x, y) = (eqn.invars[0], eqn.invars[-1]) if eqn.primitive in (mul_p, neg_p) else (None, None)
    if eqn.primitive is neg_p and x in given and x.linear:
        return Scaled(-1.0, invars.index(x))  # type: ignore[arg-type]
    for a, b in ((x, y), (y, x)) if eqn.primitive is mul_p else ():
        if b in given and b.linear and b.aval.shape == v.aval.shape and (type(a) is Literal or a in given):
            return Scaled(given.get(a, a), invars.index(b))  # type: ignore[arg-type]
    return None


def _chosen(w: Writer, index: Atom, aval: Any, cases: Sequence[Scaled | None], operands: Sequence[Atom]) -> Atom | None:
    """Write one result of a conditional as a select among its `cases`, one for each branch; None if that fails.

    The cases that scale an operand must scale the same one, the others then be 0, and all dtypes must agree.
    """
    found = [case for case in cases if case is not None]
    scaled = {case.of for case in found if case.of is not None}
    rest = [case.coefficient for case in found if case.of is None]
    if len(found) < len(cases) or len(scaled) > 1 or (scaled and not all(map(_is_zero, rest))):
        return None
    x = operands[scaled.pop()] if scaled else None
    kind = aval if x is None else x.aval
    factors = [
        literal(c.coefficient, kind) if isinstance(c.coefficient, (int, float)) else c.coefficient for c in found
    ]
    if any(f.aval.dtype != kind.dtype for f in factors):
        return None
    factor = w.write(select_n_p, index, *factors)
    if x is not None:
        return w.write(mul_p, factor, x)
    return factor if factor.aval.shape == aval.shape else w.write(broadcast_in_dim_p, factor, shape=aval.shape, dims=())


def _is_zero(x: Atom | float) -> bool:
    return type(x) is Literal and not np.any(x.value)


writer.rules[cond_p] = writer.Simplification(_cond)
