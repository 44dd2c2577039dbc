"""Memories of a device (offloading): operations compute in device memory, and moves leave branches.

XLA refuses a program with a result outside the device's own memory (error E1200). Such results occur when the two
halves of a derivative are compiled apart, as in eager mode: the primal half offloads its residuals. So they are brought
back at the end of the program, and nothing is gained by offloading them.
XLA (GPU, jaxlib 0.11.2) also refuses moves out of the device's own memory in a branch of a conditional, offloaded
arrays stacked by a loop in a loop, and elements of offloaded arrays that a loop's step does not move back at once. It
runs operations on values in the host's memory on the host, slowly. Such programs occur when a branch offloads its
residuals, and by `vmap`, which selects among offloaded values. So operations read values in the device's own memory,
and loops carry them there; in a branch everything is there, and what it means to offload is moved behind the
conditional, as is what a loop in a loop stacks; elements are brought back as a step begins. Offloaded values wait in
the other memory between calls, behind barriers, and in what an outermost scan stacks.
Source: XLA, host_offloader.cc; https://openxla.org/xla/errors/error_1200.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tapeless.tracer import core, passes
from tapeless.tracer.bodies import CARRY, EACH, TEST, VALUE, Bodies, bodies_of, with_programs
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, map_carried, subjaxprs
from tapeless.tracer.primitives.checkpoint import move_p, optimization_barrier_p
from tapeless.tracer.primitives.shape import reshape_p

DEVICE = "device"  # XLA's name for a device's own memory
Memory = str | None  # a memory other than the device's own; None: the device's own
Memories = tuple[Memory, ...]


def brought_back(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a program on values in the device's own memory: its operations and results are there, too."""
    return _placed(jaxpr, (None,) * len(jaxpr.invars), len(jaxpr.outvars), "")[0]


@core.memoize_by_program
def _placed(jaxpr: Jaxpr, given: Memories, n_here: int, inside: str) -> tuple[Jaxpr, Memories]:
    """Rewrite a program whose inputs are in the memories `given`; return it, and the memories meant for its results.

    The first `n_here` results leave the program in the device's own memory, whatever is meant, and others where they
    are meant to be. Remembered while the program lives.
    inside: "branch" or "loop" if the program is one's body, or called there; a branch's results are all here.
    """
    if not any(given) and not _has_moves(jaxpr):
        return jaxpr, (None,) * len(jaxpr.outvars)
    return _Placement(jaxpr, given, inside).program(n_here)


def _has_moves(jaxpr: Jaxpr) -> bool:
    return any(eqn.primitive is move_p or any(map(_has_moves, subjaxprs(eqn.params))) for eqn in jaxpr.eqns)


class _Placement:
    """A rewriter of one program: its operations read values that are in the device's own memory."""

    def __init__(self, jaxpr: Jaxpr, given: Memories, inside: str) -> None:
        self._inside, self._branched = inside, inside == "branch"  # in a branch, nothing but inputs is away
        self._jaxpr = jaxpr
        self._eqns: list[Equation] = []
        self._meant: dict[Atom, Memory] = dict(zip(jaxpr.invars, given))
        self._here: dict[Atom, Atom] = {v: v for v, place in self._meant.items() if not place}
        self._away: dict[Atom, Atom] = {v: v for v, place in self._meant.items() if place}
        self._before: dict[Atom, Atom] = {}  # what was moved away, for results that are brought back

    def program(self, n_here: int) -> tuple[Jaxpr, Memories]:
        """Rewrite the whole program, see `_placed`."""
        for eqn in self._jaxpr.eqns:
            self._visit(eqn)
        outvars = self._jaxpr.outvars
        results = [*[self._brought(v) for v in outvars[:n_here]], *[self._where_meant(v) for v in outvars[n_here:]]]
        new = self._jaxpr.replace(eqns=self._eqns, outvars=results)
        return passes.dead_code(new), tuple([self._meant.get(v) for v in outvars])

    # ---- values

    def _in_device(self, v: Atom) -> Atom:
        """Return a value in the device's own memory, moved there if it is not yet."""
        if v in self._away and v not in self._here:
            self._here[v] = self._moved(self._away[v], self._meant[v], DEVICE)
        return self._here.get(v, v)

    def _where_meant(self, v: Atom) -> Atom:
        """Return a value in the memory where it is meant to be, moved there if it is not yet."""
        place = self._meant.get(v)
        if not place or self._branched:
            return self._in_device(v)
        if v not in self._away:
            self._away[v] = self._moved(self._here[v], DEVICE, place)
        return self._away[v]

    def _places(self, atoms: Iterable[Atom]) -> Memories:
        """Return the memories that `_where_meant` returns values in."""
        return tuple([None if self._branched else self._meant.get(v) for v in atoms])

    def _brought(self, v: Atom) -> Atom:
        return self._before[v] if v in self._before else self._in_device(v)

    def _moved(self, v: Atom, src: Memory, dst: Memory) -> Var:
        new = Var(v.aval, v.linear)
        self._eqns.append(Equation(move_p, [v], {"src": src, "dst": dst}, [new]))
        return new

    # ---- equations

    def _visit(self, eqn: Equation) -> None:
        params = eqn.params
        if eqn.primitive is move_p:
            self._move(eqn, eqn.invars[0], eqn.outvars[0])
        elif eqn.primitive in (optimization_barrier_p, reshape_p):
            self._write(eqn, map(self._where_meant, eqn.invars), params, map(self._meant.get, eqn.invars), 0)
        elif (bodies := bodies_of(eqn)) is not None:
            self._bodies(eqn, bodies)
        else:
            self._operation(eqn)

    def _write(self, eqn: Equation, operands: Any, params: Any, meant: Iterable[Memory], n_here: int) -> None:
        """Write an equation, whose first `n_here` results are in the device's own memory; if branched, all are."""
        self._eqns.append(eqn.replace(invars=list(operands), params=params))
        for i, (v, place) in enumerate(zip(eqn.outvars, meant, strict=True)):
            self._meant[v] = place
            (self._here if i < n_here or self._branched or not place else self._away)[v] = v

    def _move(self, eqn: Equation, v: Atom, out: Var) -> None:
        """Write a move, unless it is back from where the value never was, or away in a branch."""
        place = None if eqn.params["dst"] == DEVICE else eqn.params["dst"]
        if self._branched or not (place or v in self._away):
            self._meant[out], self._here[out] = place, self._in_device(v)
            return
        self._write(eqn, [self._where_meant(v)], eqn.params, [place], 0)
        if not self._meant.get(v):
            self._before[out] = self._in_device(v)

    def _operation(self, eqn: Equation) -> None:
        """Compute in the device's own memory; if an operand is meant to be away, so are the results."""
        meant = next(filter(None, map(self._meant.get, eqn.invars)), None)
        n = len(eqn.outvars)
        self._write(eqn, map(self._in_device, eqn.invars), map_carried(self._alone, eqn), [meant] * n, n)

    def _alone(self, jaxpr: Jaxpr) -> Jaxpr:
        """Rewrite a program on values in the device's own memory."""
        return _placed(jaxpr, (None,) * len(jaxpr.invars), len(jaxpr.outvars), self._inside)[0]

    def _bodies(self, eqn: Equation, bodies: Bodies) -> None:
        """Write an equation with bodies: what loops carry and branches return is in the device's own memory."""
        carry, n_here, inside = bodies.operands(CARRY), self._results_here(eqn, bodies), self._inside
        if bodies.loops or bodies.selector is not None:
            inside = "branch" if bodies.selector is not None else inside or "loop"
        places = [None if at in carry else place for at, place in enumerate(self._places(eqn.invars))]
        programs = list[Jaxpr]()
        meant: list[Memory] = [None] * len(eqn.outvars)
        for body in bodies.each:
            given = tuple([places[at] for at in body.operands])
            program = _landing(body.jaxpr, given, tuple(body.inputs(EACH)))
            program, found = _placed(program, given, 1 if TEST in body.outs else n_here, inside)
            programs.append(program)
            for k in body.outputs(VALUE, EACH):
                meant[body.results[k]] = meant[body.results[k]] or found[k]
        here = {*carry, bodies.selector}
        operands = [(self._in_device if at in here else self._where_meant)(v) for at, v in enumerate(eqn.invars)]
        self._write(eqn, operands, with_programs(eqn, bodies, programs), meant, n_here)
        if inside != self._inside:
            self._move_away(eqn.outvars)

    def _results_here(self, eqn: Equation, bodies: Bodies) -> int:
        """Return how many of the first results of bodies are in the device's own memory, whatever is meant.

        Steps that are written out are followed by a concatenation. What a loop in a loop stacks must be here.
        """
        if not bodies.loops:
            return 0 if bodies.selector is None else len(eqn.outvars)
        alone = bodies.steps is not None and not self._inside and eqn.params.get("unroll", 1) < len(bodies.steps)
        return len(bodies.operands(CARRY)) if alone else len(eqn.outvars)

    def _move_away(self, results: Sequence[Var]) -> None:
        for v in results:
            self._where_meant(v)


@core.memoize_by_program
def _landing(body: Jaxpr, given: Memories, elements: tuple[int, ...]) -> Jaxpr:
    """Bring the inputs with these numbers, elements of a loop's operands, back as the step begins."""
    away = [bool(place) and i in elements for i, place in enumerate(given)]
    invars = [Var(v.aval, v.linear) if yes else v for v, yes in zip(body.invars, away)]
    pairs = zip(invars, body.invars, given, strict=True)
    moves = [Equation(move_p, [new], {"src": place, "dst": DEVICE}, [v]) for new, v, place in pairs if new is not v]
    return body.replace(invars=invars, eqns=[*moves, *body.eqns]) if moves else body
