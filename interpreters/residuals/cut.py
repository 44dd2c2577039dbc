"""Choice of the residuals of a jaxpr by minimum cut: save the fewest bytes that the linear half can be computed from.

Search terms: free or repeatable values, recomputable operations, min-cut partitioner. The primal values read by linear
equations are saved, or computed again from saved values by equations that only move, repeat, convert, compare or count
elements (views, broadcasts, iotas, selects, masks), as their index rows tell. Of all sets of values that suffice, the
one with the fewest bytes is saved. Ties prefer inputs and results, which exist anyway, then fewer values, then values
before they are moved. Repeatable equations needed only by the linear half are placed there, which shows how its masks
are made. Left out: arithmetic is never done again.
Source: He & Yu 2023, "Transcending runtime-memory tradeoffs in checkpointing by being fusion aware".
"""

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from tapeless.interpreters import jvp, limits
from tapeless.interpreters.residuals.rematerialization import RematerializationPlan
from tapeless.interpreters.simplifications import licm
from tapeless.interpreters.simplifications.repeatable_equations import may_be_repeated
from tapeless.tracer import dtypes, passes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives import elementwise as e

_VALUES = 1 << 32  # more than the values of a program, so that one byte outweighs all tie-breakers


class Loop(NamedTuple):
    """A scan, for whose body residuals are chosen: its numbers of primal constants, carried values and steps."""

    constants: int
    carries: int
    length: int


def cheapest(program: Jaxpr, n: int, loop: Loop | None = None) -> RematerializationPlan:
    """Choose the values of a primal program to save, and the equations that compute its last `n` results from them.

    Args:
      loop: the scan whose body the program is, so that saved values are stacked unless they are loop-invariant.
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


# ---- repeatable equations ------------------------------------------------------------------------------------


def _repeatable(program: Jaxpr, wanted: Sequence[Atom]) -> list[Equation]:
    """List the repeatable equations that `wanted` values are computed by, back to other values, in program order."""
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
    """Choose the values to save, from which the equations `again` compute the other `wanted` ones."""
    made = {eqn.outvars[0] for eqn in again}
    saved: set[Atom] = {v for v in wanted if type(v) is Var and v not in made}
    left = _not_made_of(saved, again)
    if left:
        wanted_of_these, price = made.intersection(wanted), prices()
        for part in _connected(left):
            saved.update(_cut(part, wanted_of_these, price))
    return saved


def _not_made_of(saved: Collection[Atom], again: Sequence[Equation]) -> list[Equation]:
    """Return the equations that cannot be computed from `saved` values, with only their missing operands."""
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
    """Group equations into connected components: those that share values, directly or through others (union-find)."""
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
    """Return the cheapest values from which `eqns` compute their `wanted` results."""
    values = list(dict.fromkeys([v for eqn in eqns for v in (*eqn.invars, *eqn.outvars)]))
    made = {eqn.outvars[0] for eqn in eqns}
    if limits.CUT.is_passed(len(values)):
        return _cut_of_tree(eqns, wanted, price)
    number = {v: k for k, v in enumerate(values)}
    against = [(number[eqn.outvars[0]], number[x]) for eqn in eqns for x in eqn.invars]
    first, last = [k for v, k in number.items() if v not in made], [k for v, k in number.items() if v in wanted]
    return [values[k] for k in minimum_vertex_cut([price(v) for v in values], against, last, first)]


def _cut_of_tree(eqns: Sequence[Equation], wanted: Collection[Atom], price: Price) -> list[Atom]:
    """Like `_cut`, by comparing each value with its operands: optimal if no value has two readers."""
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
    """Return the price of saving a value: its bytes (of all steps of a loop), and tie-breakers (module docstring).

    Input masks are free, so values computed from them are computed in the linear half. There, simplification after
    another linearization sees their masks.
    """
    consts, carry, length = loop or (len(program.invars), 0, 1)
    results = program.outvars[: len(program.outvars) - n]
    given = {*program.invars[:consts], *program.invars[consts + carry :]}
    there = given.union(results[carry:])
    moved = licm.invariant(program, range(consts), lambda eqn: True) if loop else ()
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


# ---- masks -----------------------------------------------------------------------------------------------------


def save_masked(plan: RematerializationPlan, program: Jaxpr, n: int, loop: Loop | None = None) -> RematerializationPlan:
    """Save values as a mask chooses them, if the linear half reads them by this mask alone, and choose again there.

    A residual has a derivative of its own. Where the mask is false, that may be infinite times a cotangent of 0 unless
    the mask belongs to the residual. So residuals are saved with their mask, with two exceptions. Results exist
    anyway. Multilinear functions of inputs have finite derivatives at finite operands. The linear half
    keeps its mask for tangents that are infinite there.
    """
    results = program.outvars[loop.carries if loop else 0 : len(program.outvars) - n]
    unbounded = _with_unbounded_derivatives(program.eqns).difference(results)
    found = {v: y for v in plan.saved if v in unbounded and (y := _only_choice(plan, v)) is not None}
    price = _prices(program, n, loop) if found else None
    instead: dict[Atom, Var] = {v: y for v, y in found.items() if price and price(y) // _VALUES <= price(v) // _VALUES}
    again: dict[Atom, Var] = {y: Var(y.aval) for y in instead.values()}

    def renamed(eqn: Equation) -> Equation:
        invars = [instead[x] if x in instead else again.get(x, x) for x in eqn.invars]
        return eqn.replace(invars=invars, outvars=[again.get(y, y) for y in eqn.outvars])

    saved = [instead.get(v, v) for v in plan.saved]
    wanted = [again.get(v, v) for v in plan.wanted]
    return plan._replace(saved=tuple(saved), again=tuple(map(renamed, plan.again)), wanted=tuple(wanted))


def _with_unbounded_derivatives(eqns: Sequence[Equation]) -> set[Atom]:
    """Return the values that depend on the result of an equation not linear in each operand."""
    found: set[Atom] = set()
    for eqn in eqns:
        if not _is_linear_in_each(eqn) or not found.isdisjoint(eqn.invars):
            found.update(eqn.outvars)
    return found


def _is_linear_in_each(eqn: Equation) -> bool:
    """Tell whether an equation is linear in each operand; as a quotient is by a number, and not by a variable."""
    if eqn.primitive is e.div_p:
        return type(eqn.invars[1]) is Literal
    return eqn.primitive in jvp.structurally_linear


def _only_choice(plan: RematerializationPlan, v: Atom) -> Var | None:
    """Return a value as a mask chooses it, numbers elsewhere, if the linear half reads it by this mask alone."""
    readers = [eqn for eqn in plan.again if v in eqn.invars]
    if not readers or v in plan.wanted or not all(eqn.primitive is e.select_n_p for eqn in readers):
        return None
    masks = {(eqn.invars[0], tuple([x is v for x in eqn.invars[1:]])) for eqn in readers}
    others = [x for eqn in readers for x in eqn.invars[1:] if x is not v]
    is_one_mask = len(masks) == 1 and readers[0].invars[0] is not v
    return readers[0].outvars[0] if is_one_mask and all(type(x) is Literal for x in others) else None


# ---- minimum cuts --------------------------------------------------------------------------------------------
# Minimum vertex cut (separator) of a directed graph, by maximum flow.
#
# Each vertex becomes an arc of the flow network whose capacity is the vertex's price; flow is augmented along
# shortest paths. Of several minimum cuts the result is the one nearest to the sources. Sources: Ford & Fulkerson 1956;
# Dinic 1970.


_Arc = list[int]  # its head, its residual capacity, and the number of its reverse among the arcs of its head


def minimum_vertex_cut(
    prices: Sequence[int], edges: Sequence[tuple[int, int]], sources: Sequence[int], sinks: Sequence[int]
) -> list[int]:
    """Return the cheapest vertices without which no path leads from a source to a sink.

    Args:
      prices: of the vertices 0, 1, ...; sources and sinks may be among the returned vertices.
      edges: pairs (tail, head).
    """
    n, unlimited = len(prices), sum(prices) + 1
    arcs: list[list[_Arc]] = [[] for _ in range(2 * n + 2)]  # v is entered at 2 v and left at 2 v + 1
    begin, end = 2 * n, 2 * n + 1

    def connect(tail: int, head: int, capacity: int) -> None:
        arcs[tail].append([head, capacity, len(arcs[head])])
        arcs[head].append([tail, 0, len(arcs[tail]) - 1])

    for v, price in enumerate(prices):
        connect(2 * v, 2 * v + 1, price)
    for tail, head in edges:
        connect(2 * tail + 1, 2 * head, unlimited)
    for v in sources:
        connect(begin, 2 * v, unlimited)
    for v in sinks:
        connect(2 * v + 1, end, unlimited)
    while end in (levels := _levels(arcs, begin)):
        _augment(arcs, levels, begin, end)
    return [v for v in range(n) if 2 * v in levels and 2 * v + 1 not in levels]


def _levels(arcs: Sequence[Sequence[_Arc]], begin: int) -> dict[int, int]:
    """Search breadth first from `begin`, along arcs with capacity left: node -> its distance."""
    found = {begin: 0}
    todo = deque([begin])
    while todo:
        tail = todo.popleft()
        for head, capacity, _ in arcs[tail]:
            if capacity and head not in found:
                found[head] = found[tail] + 1
                todo.append(head)
    return found


def _augment(arcs: Sequence[Sequence[_Arc]], levels: dict[int, int], begin: int, end: int) -> None:
    """Augment the flow along shortest paths until none is left; an arc that leads nowhere is tried once."""
    tried = dict.fromkeys(levels, 0)  # node -> the number of its first arc that may lead to `end`
    path: list[_Arc] = []
    while True:
        node = path[-1][0] if path else begin
        if node == end:
            flow = min([capacity for _, capacity, _ in path])
            for arc in path:
                arc[1] -= flow
                arcs[arc[0]][arc[2]][1] += flow
            del path[next(i for i, arc in enumerate(path) if not arc[1]) :]
        elif tried[node] < len(arcs[node]):
            arc = arcs[node][tried[node]]
            if arc[1] and levels.get(arc[0]) == levels[node] + 1:
                path.append(arc)
            else:
                tried[node] += 1
        elif path:
            path.pop()
            tried[path[-1][0] if path else begin] += 1
        else:
            return
