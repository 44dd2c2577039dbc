"""Memories of a device (offloading): move results back to device memory before a compiled program ends.

The results of a compiled program are in the device's own memory. XLA refuses a program of which one would end in
another (error E1200), which happens when the two halves of a derivative are compiled apart, as eagerly they are: the
first moves away what it saves. So that is moved back there and then, and nothing is gained by it.
A move to where a value is already costs nothing, so it does no harm that some values are only thought to be away: those
that are computed, by equations that are not known here, from values that are.
Source: XLA, host_offloader.cc; https://openxla.org/xla/errors/error_1200.
"""

from collections.abc import Sequence

from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives.checkpoint import move_p, optimization_barrier_p

DEVICE = "device"  # XLA's name for a device's own memory
Memory = str | None  # another one; None: the device's own


def brought_back(jaxpr: Jaxpr) -> Jaxpr:
    """A program whose results are in the device's own memory, if its inputs are."""
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
