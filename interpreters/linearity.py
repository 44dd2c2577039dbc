"""Whether a program is linear in its linear inputs: transposition takes that for granted, of users it is asked.

Every value is linear, zero or constant. Where operands are linear together (those of add, not of mul), a linear
one beside a constant makes the program affine, and so does a constant result. What is not even affine (products
of linear values, sines) has no transpose rule, and is found by transposing.
"""

from collections.abc import Sequence

import numpy as np

from tapeless.interpreters import jvp, transpose
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var


def check_linear(jaxpr: Jaxpr) -> None:
    """Raises: NotImplementedError naming the equation that makes the program affine, TypeError a constant result."""
    zeros = _zeros(jaxpr, [False] * len(jaxpr.invars))
    for v in jaxpr.outvars:
        if not v.linear and not _is_zero(v, zeros):
            raise TypeError(f"{jaxpr.name} is not linear: its result {v.aval} does not depend on its arguments.")


def _zeros(jaxpr: Jaxpr, zero_in: Sequence[bool]) -> set[Var]:
    """The variables of a program that are zero if some inputs are. Raises: NotImplementedError if it is affine."""
    zeros = {v for v, zero in zip(jaxpr.invars, zero_in, strict=True) if zero}
    for eqn in jaxpr.eqns:
        zero = [_is_zero(v, zeros) for v in eqn.invars]
        inner = eqn.params.get("jaxpr")
        if inner is not None:
            inside = _zeros(inner, zero)
            zeros.update(v for v, w in zip(eqn.outvars, inner.outvars) if _is_zero(w, inside))
        elif eqn.linear:
            _check_equation(eqn, zero)
        elif _gives_zero(eqn, zero):
            zeros.update(eqn.outvars)
    return zeros


def _is_zero(v: Atom, zeros: set[Var]) -> bool:
    return not np.any(v.value) if isinstance(v, Literal) else v in zeros


def _check_equation(eqn: Equation, zero: Sequence[bool]) -> None:
    operands = [(eqn.invars[k], zero[k]) for k in _linear_together(eqn)]
    if any(v.linear for v, _ in operands) and any(not v.linear and not is_zero for v, is_zero in operands):
        raise transpose.not_linear(eqn.primitive, "it combines a linear value with a constant (affine)", eqn)


def _gives_zero(eqn: Equation, zero: Sequence[bool]) -> bool:
    """Of zeros, what is linear in them makes zeros; of several factors, one will do."""
    if eqn.primitive in jvp.separately:
        return any(zero)
    operands = [zero[k] for k in _linear_together(eqn)]
    return bool(operands) and all(operands)


def _linear_together(eqn: Equation) -> Sequence[int]:
    """Positions of the operands that the primitive is linear in jointly."""
    every = range(len(eqn.invars))
    if eqn.primitive in transpose.together:
        return every
    if eqn.primitive in jvp.separately or eqn.primitive not in jvp.structurally_linear:
        return ()
    positions = jvp.structurally_linear[eqn.primitive]
    return every if positions is None else [k for k in positions if k < len(eqn.invars)]
