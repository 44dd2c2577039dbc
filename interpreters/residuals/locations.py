"""Placement of residuals: which residuals of a scan are stacked, and how branches share slots for residuals.

A scan's loop-invariant residual is computed once, before the loop; one that is an element of an operand or result is
read from there; others are stacked. Branches, of which one runs, store residuals of the same type in common slots.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tapeless.interpreters.partial_eval import UnzippedJaxpr
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, passes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, eval_jaxpr, map_carried
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray

if TYPE_CHECKING:
    from tapeless.interpreters.simplifications import licm
else:
    licm = LateModule("tapeless.interpreters.simplifications.licm")


class ResidualLocation(NamedTuple):
    """The source of a scan's residual, and its number there.

    kind: "const", loop-invariant values and then constants; "element" of xs; "result"; or "stacked" by the scan.
    """

    kind: str
    number: int


class ScanBody(NamedTuple):
    """The primal half of a scan's body.

    before: constants -> loop-invariant values. jaxpr: the `used` ones of loop-invariant values and constants, carry,
    xs -> results, stacked residuals. results: the number of results. residuals: the location of each.
    """

    before: Jaxpr
    jaxpr: Jaxpr
    used: tuple[int, ...]
    results: int
    residuals: tuple[ResidualLocation, ...]


def scan_body(halves: UnzippedJaxpr, n_constants: int, n_carry: int) -> ScanBody:
    """Place the residuals of a body with these numbers of primal constants and carried values. Remembered with it."""
    cache = _scan_bodies.setdefault(halves.primal, {})
    key = (n_constants, n_carry, halves.residuals)
    if key not in cache:
        cache[key] = _scan_body(*key, halves.primal)
    return cache[key]


@core.memoize_by_program
def apart(jaxpr: Jaxpr) -> Jaxpr:
    """Remove the barriers of a linear body's checkpoints: it runs in another loop than the primal body.

    A barrier holds the running cotangents too, and the loop would copy them at every step.
    """
    eqns = [_apart(eqn) for eqn in jaxpr.eqns]
    return jaxpr.replace(eqns=eqns) if any(new is not eqn for new, eqn in zip(eqns, jaxpr.eqns)) else jaxpr


def _apart(eqn: Equation) -> Equation:
    params = map_carried(apart, eqn)
    if eqn.own_params.get("prevent_cse"):
        params = {**params, "prevent_cse": False}
    return eqn if params is eqn.params else eqn.replace(params=params)


class Branches(NamedTuple):
    """The halves of branches that agree on their residuals.

    primal: primal operands -> primal results, slots. linear: `operands`, slots ; linear operands -> linear results.
    operands: positions of the primal operands that are residuals of some branch.
    """

    primal: tuple[Jaxpr, ...]
    linear: tuple[Jaxpr, ...]
    operands: tuple[int, ...]


def branches(halves: Sequence[UnzippedJaxpr]) -> Branches:
    """Rewrite the halves of branches so that all return and take the same residuals: operands, and typed slots."""
    sources = [_forwarded(h) for h in halves]
    operands = sorted({i for found in sources for i in found if i is not None})
    slots: list[ShapedArray] = []
    used = [_slots(h, found, slots) for h, found in zip(halves, sources)]
    primal = [_filled(h, mine, tuple(slots)) for h, mine in zip(halves, used)]
    linear = []
    for h, found, mine in zip(halves, sources, used):
        of_operand = {i: k for k, i in enumerate(found) if i is not None}
        avals = h.primal.in_avals
        ins = [of_operand.get(i, avals[i]) for i in operands]
        ins += [mine.get(k, aval) for k, aval in enumerate(slots)]
        ins += range(h.residuals, len(h.linear.invars))
        linear.append(passes.rearrange_program(h.linear, ins, range(len(h.linear.outvars))))
    return Branches(tuple(primal), tuple(linear), tuple(operands))


# ---- scans


def _scan_body(n_constants: int, n_carry: int, n_residuals: int, primal: Jaxpr) -> ScanBody:
    n = len(primal.outvars) - n_residuals
    inputs, residuals = primal.invars, primal.outvars[n:]
    moved = licm.needed_for(licm.invariant(primal, range(n_constants), lambda eqn: True), residuals)
    rest, shared = licm.without(primal, moved)
    before = primal.replace(invars=inputs[:n_constants], eqns=moved, outvars=shared)
    consts = [*shared, *inputs[:n_constants]]
    elements = inputs[n_constants + n_carry :]
    stacked: list[Atom] = []
    kept = {"const": consts, "element": elements, "result": [*[None] * n_carry, *primal.outvars[n_carry:n]]}
    places = [_place(r, kept, stacked) for r in residuals]
    body = rest.replace(outvars=[*primal.outvars[:n], *stacked])
    read = passes.used_variables(body)
    used = tuple(k for k, v in enumerate(consts) if v in read)
    body = body.replace(invars=[*[consts[k] for k in used], *inputs[n_constants:]])
    return ScanBody(before, body, used, n, tuple(places))


def _place(r: Atom, kept: Mapping[str, Sequence[Atom | None]], stacked: list[Atom]) -> ResidualLocation:
    """Find a residual among `kept` values by kind; else append it to `stacked`."""
    for kind, values in kept.items():
        if r in values:
            return ResidualLocation(kind, values.index(r))
    stacked.append(r)
    return ResidualLocation("stacked", len(stacked) - 1)


# ---- branches


def _forwarded(halves: UnzippedJaxpr) -> list[int | None]:
    """Return for each residual the number of the operand that it is; None if it is computed."""
    primal = halves.primal
    return list(passes.forwarded_inputs(primal)[len(primal.outvars) - halves.residuals :])


def _slots(halves: UnzippedJaxpr, found: Sequence[int | None], slots: list[ShapedArray]) -> dict[int, int]:
    """Map slots to the residuals that are no operands, by type; append a slot to `slots` where none is free."""
    primal = halves.primal
    avals = primal.out_avals[len(primal.outvars) - halves.residuals :]
    mine: dict[int, int] = {}
    for k, (aval, i) in enumerate(zip(avals, found)):
        if i is None:
            free = [s for s, have in enumerate(slots) if have == aval and s not in mine]
            if not free:
                slots.append(aval)
            mine[free[0] if free else len(slots) - 1] = k
    return mine


def _filled(halves: UnzippedJaxpr, mine: dict[int, int], slots: tuple[ShapedArray, ...]) -> Jaxpr:
    """Return the primal half with a result for every slot; zeros for slots that are not among `mine`."""
    primal, n = halves.primal, len(halves.primal.outvars) - halves.residuals
    cache = _filled_programs.setdefault(primal, {})
    key = (tuple(mine.items()), slots)

    def filled(*xs: Any) -> list[Any]:
        outs = eval_jaxpr(primal, xs)
        return [*outs[:n], *[outs[n + mine[s]] if s in mine else instantiate(Zero(a)) for s, a in enumerate(slots)]]

    if key not in cache:
        program = trace_closed(filled, primal.in_avals, what="linearize", function=primal)
        cache[key] = program.replace(name=primal.name)
    return cache[key]


_scan_bodies = core.program_cache()
_filled_programs = core.program_cache()
