"""Memories of a device (offloading): move results back to device memory before a compiled program ends.

XLA refuses a program with a result outside the device's own memory (error E1200). Such results occur when the two
halves of a derivative are compiled apart, as in eager mode: the primal half offloads its residuals. So they are moved
back at the end of the program, and nothing is gained by offloading them.
A move to the memory where a value is already costs nothing. So it does no harm that the analysis overestimates: it
takes results of any equation that it has no rule for to be where some operand is.
Source: XLA, host_offloader.cc; https://openxla.org/xla/errors/error_1200.
"""

from collections.abc import Sequence

from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives.checkpoint import move_p, optimization_barrier_p

DEVICE = "device"  # XLA's name for a device's own memory
Memory = str | None  # a memory other than the device's own; None: the device's own


def brought_back(jaxpr: Jaxpr) -> Jaxpr:
    """Move the results of a program to the device's own memory, which its inputs are in."""
    if not _has_moves(jaxpr):
        return jaxpr
    places = _of_results(jaxpr, [None] * len(jaxpr.invars))
    moves: dict[Atom, Equation] = {}
    for v, place in zip(jaxpr.outvars, places):
        if place and v not in moves:
            moves[v] = Equation(move_p, [v], {"src": place, "dst": DEVICE}, [Var(v.aval)])
    outvars = [moves[v].outvars[0] if v in moves else v for v in jaxpr.outvars]
    return jaxpr.replace(eqns=[*jaxpr.eqns, *moves.values()], outvars=outvars)


def _has_moves(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive is move_p or any(map(_has_moves, subjaxprs(eqn.params))) for eqn in jaxpr.eqns)


def _of_results(jaxpr: Jaxpr, given: Sequence[Memory]) -> list[Memory]:
    """Infer the memories of a program's results from those of its inputs."""
    places = dict(zip(jaxpr.invars, given, strict=True))
    for eqn in jaxpr.eqns:
        operands = [None if isinstance(v, Literal) else places[v] for v in eqn.invars]
        places.update(zip(eqn.outvars, _of_equation(eqn, operands)))
    return [None if isinstance(v, Literal) else places[v] for v in jaxpr.outvars]


def _of_equation(eqn: Equation, operands: Sequence[Memory]) -> Sequence[Memory]:
    if eqn.primitive is move_p:
        dst = eqn.params["dst"]
        return [None if dst == DEVICE else dst]
    if eqn.primitive is optimization_barrier_p:
        return operands
    inside = [p for p in subjaxprs(eqn.params) if len(p.outvars) == len(eqn.outvars)]
    if inside:  # programs take the last operands, if not all; of branches, one is taken
        found = [_of_results(p, operands[len(operands) - len(p.invars) :]) for p in inside]
        return [next(filter(None, places), None) for places in zip(*found)]
    return [next(filter(None, operands), None)] * len(eqn.outvars)
