"""Residuals of programs in hand: the cheapest known values that the linear half can be computed from. Minimum cut.

What linear equations read is saved, or made again of what is saved by equations that only move, repeat, compare or
count (views, broadcasts, iotas, choices, masks), as index rows tell. Of all sets of values that suffice the one of the
fewest bytes is saved. Among equals inputs and results come first, which are there anyhow, then fewer values, and values
before they are moved; what only linear equations need is made there, so that they show what their masks are made of.
Left out: arithmetic is never done again.
Source: He & Yu 2023, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware".
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tapeless.interpreters.minimum_cut import minimum_vertex_cut
from tapeless.interpreters.rematerialization import RematerializationPlan
from tapeless.interpreters.simplifications import licm
from tapeless.interpreters.simplifications.repeatable_equations import may_be_repeated
from tapeless.tracer import dtypes, passes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var

LARGEST = 256  # values of one connected part of the graph that the flow is computed of
_VALUES = 1 << 32  # more than there are in a program: a byte outweighs them all


class Loop(NamedTuple):
    """The loop that a program is the body of: its primal constants and carried values, and its steps."""

    n_consts: int
    n_carry: int
    length: int


def cheapest(program: Jaxpr, n: int, loop: Loop | None = None) -> RematerializationPlan:
    """Choose what is saved of a primal program to make its last `n` results from.

    Args:
      loop: if the program is a body, whose saved values are stacked, but for those that no step changes.
    """
    wanted = program.outvars[len(program.outvars) - n :]
    again = _repeatable(program, wanted)
    saved = _saved(again, wanted, lambda: _prices(program, n, loop))
    needed = set(wanted) - saved
    kept: list[Equation] = []
    for eqn in reversed(again):
        if eqn.outvars[0] in needed:
            kept.append(eqn)
            needed.update([v for v in eqn.invars if v not in saved])
    available = [*wanted, *program.invars, *[v for eqn in program.eqns for v in eqn.outvars]]
    ordered = dict.fromkeys([v for v in available if type(v) is Var and v in saved])
    return RematerializationPlan(program.eqns, tuple(ordered), tuple(kept[::-1]), wanted)


# ---- what may be done again ----------------------------------------------------------------------------------


def _repeatable(program: Jaxpr, wanted: Sequence[Atom]) -> list[Equation]:
    """The equations that `wanted` values are made by which may be done again, in order."""
    needed = set(wanted)
    found: list[Equation] = []
    for eqn in reversed(program.eqns):
        if not needed.isdisjoint(eqn.outvars) and may_be_repeated(eqn):
            found.append(eqn)
            needed.update(eqn.invars)
    return found[::-1]


# ---- the cut -------------------------------------------------------------------------------------------------

Price = Callable[[Atom], int]


def _saved(again: Sequence[Equation], wanted: Sequence[Atom], prices: Callable[[], Price]) -> set[Atom]:
    """Choose values from which the equations `again` make those that are wanted."""
    made = {eqn.outvars[0] for eqn in again}
    saved: set[Atom] = {v for v in wanted if type(v) is Var and v not in made}
    left = _not_made_of(saved, again)
    if left:
        wanted_of_these, price = made.intersection(wanted), prices()
        for part in _connected(left):
            saved.update(_cut(part, wanted_of_these, price))
    return saved


def _not_made_of(saved: Collection[Atom], again: Sequence[Equation]) -> list[Equation]:
    """The equations for which what is saved anyhow does not suffice, without operands for which it does."""
    there = set(saved)
    left: list[Equation] = []
    for eqn in again:
        missing = [v for v in dict.fromkeys(eqn.invars) if type(v) is Var and v not in there]
        if missing:
            left.append(eqn.replace(invars=missing))
        else:
            there.update(eqn.outvars)
    return left


def _connected(eqns: Sequence[Equation]) -> list[list[Equation]]:
    """Group equations that share values, directly or through others."""
    above: dict[Atom, Atom] = {}

    def group(v: Atom) -> Atom:
        while v in above:
            if above[v] in above:
                above[v] = above[above[v]]
            v = above[v]
        return v

    for eqn in eqns:
        for x in eqn.invars:
            a, b = group(x), group(eqn.outvars[0])
            if a is not b:
                above[a] = b
    found: dict[Atom, list[Equation]] = {}
    for eqn in eqns:
        found.setdefault(group(eqn.outvars[0]), []).append(eqn)
    return list(found.values())


def _cut(eqns: Sequence[Equation], wanted: Collection[Atom], price: Price) -> list[Atom]:
    """Choose the cheapest values to make those of `wanted` from that the equations compute."""
    values = list(dict.fromkeys([v for eqn in eqns for v in (*eqn.invars, *eqn.outvars)]))
    made = {eqn.outvars[0] for eqn in eqns}
    if len(values) > LARGEST:
        return _cut_of_tree(eqns, wanted, price)
    number = {v: k for k, v in enumerate(values)}
    against = [(number[eqn.outvars[0]], number[x]) for eqn in eqns for x in eqn.invars]
    first, last = [k for v, k in number.items() if v not in made], [k for v, k in number.items() if v in wanted]
    return [values[k] for k in minimum_vertex_cut([price(v) for v in values], against, last, first)]


def _cut_of_tree(eqns: Sequence[Equation], wanted: Collection[Atom], price: Price) -> list[Atom]:
    """Choose between each value and its operands, as if no two values had one in common."""
    least: dict[Atom, int] = {}
    for eqn in eqns:
        operands = sum([least.get(x, price(x)) for x in eqn.invars])
        least[eqn.outvars[0]] = min(price(eqn.outvars[0]), operands)
    needed, saved = least.keys() & wanted, set[Atom]()
    for eqn in reversed(eqns):
        v = eqn.outvars[0]
        if v in needed:
            if least[v] == price(v):
                saved.add(v)
            else:
                needed.update(eqn.invars)
    return [*saved, *[x for x in needed if x not in least]]


def _prices(program: Jaxpr, n: int, loop: Loop | None) -> Price:
    """Price values by their bytes, and among equals by what else saving them means.

    Masks that are given cost nothing: what is made of them is made where it can be seen, so that whoever linearizes
    the linear half again knows what they are good for.
    """
    consts, carry, length = loop or (len(program.invars), 0, 1)
    results = program.outvars[: len(program.outvars) - n]
    given = {*program.invars[:consts], *program.invars[consts + carry :]}
    there = given.union(results[carry:])
    moved = licm.invariant(program, consts, lambda eqn: True) if loop else ()
    fixed = {*program.invars[:consts], *[v for eqn in moved for v in eqn.outvars]}
    masks = {v for v in given if dtypes.is_bool(v.aval.dtype)}
    made = {v: eqn for eqn in program.eqns for v in eqn.outvars}
    _, computed = passes.live(program.eqns, results)

    def price(v: Atom) -> int:
        times = 0 if v in masks else 1 if v in fixed else length
        again = v in made and may_be_repeated(made[v])
        among_equals = 0 if v in there else 1 + again * (1 if v in computed else 3)
        return v.aval.nbytes * times * _VALUES + among_equals

    return price
