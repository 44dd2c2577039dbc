"""Memory budget for residuals (checkpointing as a knapsack): save at most `nbytes`, sparing the most work.

The program becomes a graph of its equations, including those of bodies, in which each equation points to those it
reads; the root reads the wanted values. Saving a value spares the work of all nodes that it dominates, those needed
only for it. This work per byte is the value's density. Chains of values are built greedily, densest first, from values
up to some size, so that a large value that does not fit does not keep out small ones. Chains do not depend on the
budget; it chooses the prefix of a chain that fits and leaves the least work; so more bytes never leave more work,
before the program is simplified.
Left out: the optimum, which is a knapsack problem; the work of all branches counts, though only one runs.
Sources: Dantzig 1957 for the order; Cooper, Harvey & Kennedy 2001, "A simple, fast dominance algorithm".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tapeless.interpreters.residuals import rematerialization
from tapeless.interpreters.residuals.rematerialization import Asked, ProgramPolicy, SavedEquations, save_all, save_none
from tapeless.tracer.bodies import CARRY, bodies_of
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.rules import Rules
from tapeless.tracer.types import ShapedArray

if TYPE_CHECKING:
    from tapeless.interpreters.analysis import cost
else:
    cost = LateModule("tapeless.interpreters.analysis.cost")


@dataclass(frozen=True)
class Budget(ProgramPolicy):
    """The policy that saves at most `nbytes` of a program."""

    nbytes: int

    def of(self, program: Jaxpr, wanted: Sequence[Atom]) -> Asked:
        """Choose the equations of a program whose results are saved, within the budget."""
        made = set(wanted).difference(program.invars)
        if not self.nbytes:
            return save_none
        if _bytes(v.aval for v in made if isinstance(v, Var)) <= self.nbytes:
            return save_all
        for point in sorted(_points(_root(program, wanted))):
            saving = _saving(point.chain[: point.length])
            if point.nbytes <= self.nbytes and saved_bytes(program, wanted, saving) <= self.nbytes:
                return saving
        return save_none

    def __repr__(self) -> str:
        return f"budget({self.nbytes})"


def saved_bytes(program: Jaxpr, wanted: Sequence[Atom], policy: Asked) -> int:
    """Count the bytes that a policy saves, inputs excluded."""
    plan = rematerialization.plan_rematerialization(program, wanted, policy)
    return _bytes(v.aval for v in set(plan.saved).difference(program.invars))


def _bytes(avals: Iterable[ShapedArray]) -> int:
    return sum(aval.nbytes for aval in avals)


# ---- the graph -----------------------------------------------------------------------------------------------

Path = tuple[Equation, ...]


class _CostNode:
    """A node of the graph: an equation in the bodies of the equations `path`; or, without one, a join, which is free.

    reads: the nodes whose results it needs. work, nbytes: operations, and bytes of results, of all of its runs.
    """

    __slots__ = ("eqn", "nbytes", "path", "reads", "work")

    def __init__(self, reads: Iterable["_CostNode | None"], eqn: Equation | None = None, path: Path = ()) -> None:
        self.reads = [x for x in reads if x]
        self.eqn, self.path, self.work, self.nbytes = eqn, path, 0, 0


Values = list[_CostNode | None]  # None: an input or the result of an effect, which costs nothing


def _root(program: Jaxpr, wanted: Sequence[Atom]) -> _CostNode:
    """Build the graph of a program; return its root, a node that reads all `wanted` values."""
    return _CostNode(_results(program.replace(outvars=wanted), [None] * len(program.invars), (), 1))


def _results(program: Jaxpr, operands: Values, path: Path, times: int) -> Values:
    """Build the nodes of a program that runs `times` times; return those of its results."""
    env: dict[Atom, _CostNode | None] = dict(zip(program.invars, operands, strict=True))
    for eqn in program.eqns:
        reads = [env.get(v) for v in eqn.invars]
        env.update(zip(eqn.outvars, _results_of(eqn, reads, path, times)))
    return [env.get(v) for v in program.outvars]


def _results_of(eqn: Equation, reads: Values, path: Path, times: int) -> Values:
    if eqn.primitive in rematerialization.names:
        return reads
    if eqn.primitive in rules:
        return rules[eqn.primitive](eqn, reads, (*path, eqn), times)
    if "io" in effects(eqn):
        return [None] * len(eqn.outvars)  # saved in any case
    node = _CostNode(reads, eqn, path)
    alone = Jaxpr(list(dict.fromkeys(v for v in eqn.invars if isinstance(v, Var))), [eqn], eqn.outvars)
    node.work, node.nbytes = times * cost.work(alone), times * _bytes(alone.out_avals)
    return [node] * len(eqn.outvars)


rules: Final = Rules(
    "budget",
    "rule(eqn, values of its operands, path of the programs inside, times it runs) -> values of its results",
    absent="it is one node of the graph, saved or computed again as a whole",
)


def call(eqn: Equation, reads: Values, path: Path, times: int) -> Values:
    """Build the nodes of a call of the param `jaxpr`; return those of its results."""
    return _results(eqn.params["jaxpr"], reads, path, times)


def loop(eqn: Equation, reads: Values, path: Path, times: int) -> Values:
    """Build the nodes of a loop; return those of its results. A carry joins its start and the body's result (cycle)."""
    bodies = bodies_of(eqn)
    assert bodies is not None
    (body,), steps = bodies.each, bodies.steps
    carry = {at: _CostNode([reads[at]]) for at in bodies.operands(CARRY)}
    given = [carry.get(at, reads[at]) for at in body.operands]
    outs = _results(body.jaxpr, given, path, times * len(steps or ()))
    for (at, _), k in zip(body.carries(), body.outputs(CARRY)):
        node = outs[k]
        carry[at].reads += [node] if node else []
    return outs


def choice(eqn: Equation, reads: Values, path: Path, times: int) -> Values:
    """Build the nodes of all `branches`; return a node for each result, which joins the index and all branches."""
    outs = [_results(branch, reads[1:], path, times) for branch in eqn.params["branches"]]
    return [_CostNode([reads[0], *values]) for values in zip(*outs)]


# ---- chains --------------------------------------------------------------------------------------------------


class _ChainPrefix(NamedTuple):
    """A prefix of a chain: the work left if it is saved, and its bytes. Tuples compare in order of preference."""

    work: int
    nbytes: int
    bits: int  # one chain for each, so that comparison never reaches `chain`
    length: int
    chain: list[_CostNode]


def _points(root: _CostNode) -> list[_ChainPrefix]:
    """List the prefixes of all chains: one chain for each power of 2 that bounds the bytes of its values."""
    sizes = {x.nbytes.bit_length() for x in _Need(root, set()).order if x.nbytes}
    return [point for bits in sorted(sizes) for point in _chain(root, bits)]


def _chain(root: _CostNode, bits: int) -> list[_ChainPrefix]:
    """Build a chain greedily, and return its prefixes; each round adds values about as dense as the densest."""
    chain: list[_CostNode] = []
    points: list[_ChainPrefix] = []
    while True:
        need = _Need(root, set(chain))
        left, kept = need.gain[root], sum(x.nbytes for x in need.order if x in need.saved)
        points.append(_ChainPrefix(left, kept, bits, len(chain), chain))
        taken = need.densest(bits)
        if not taken:
            return points
        for x in taken:
            left, kept = left - need.gain[x], kept + x.nbytes
            chain.append(x)
            points.append(_ChainPrefix(left, kept, bits, len(chain), chain))


class _Need:
    """The nodes needed when `saved` are saved, and the work that saving each of them would spare.

    order: nodes, the root first, each after one that reads it. above: the immediate dominator of each node. gain: the
    work of a node and of all nodes that it dominates, those needed only for it; 0 for the saved ones themselves.
    """

    def __init__(self, root: _CostNode, saved: set[_CostNode]) -> None:
        self.saved = saved
        self.order = _from(root, saved)
        self.above = _dominators(self.order, saved)
        self.gain = {x: 0 if x in saved else x.work for x in self.order}
        for x in reversed(self.order[1:]):
            self.gain[self.above[x]] += self.gain[x]

    def densest(self, bits: int) -> list[_CostNode]:
        """List values of fewer than 2 ** bits bytes with at least half the greatest density, none dominating another.

        Several at a time, as each list costs a pass over the graph.
        """
        able = [x for x in self.order if x.nbytes and x.nbytes.bit_length() <= bits and self.gain[x]]
        able.sort(key=self._density, reverse=True)
        taken: dict[_CostNode, None] = {}
        above_taken: set[_CostNode] = set()
        for x in able:
            if 2 * self._density(x) < self._density(able[0]):
                break
            ways = self._ways(x)
            if x not in above_taken and taken.keys().isdisjoint(ways):
                taken[x] = None
                above_taken.update(ways)
        return list(taken)

    def _density(self, x: _CostNode) -> float:
        return self.gain[x] / x.nbytes

    def _ways(self, x: _CostNode) -> list[_CostNode]:
        """List the dominators of a node."""
        found = []
        while x is not self.order[0]:
            found.append(x := self.above[x])
        return found


def _from(root: _CostNode, saved: set[_CostNode]) -> list[_CostNode]:
    """List the nodes that a node depends on, depth first, in topological order."""
    order: list[_CostNode] = []
    seen = {root}
    stack = [(root, iter(root.reads))]
    while stack:
        node, reads = stack[-1]
        found = next((x for x in reads if x not in seen), None)
        if found is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(found)
            stack.append((found, iter(() if found in saved else found.reads)))
    return order[::-1]


def _dominators(order: Sequence[_CostNode], saved: set[_CostNode]) -> dict[_CostNode, _CostNode]:
    """Compute the immediate dominator of every node (Cooper, Harvey & Kennedy 2001)."""
    place = {x: i for i, x in enumerate(order)}
    readers: dict[_CostNode, list[_CostNode]] = {x: [] for x in order}
    for x in order:
        for y in () if x in saved else x.reads:
            readers[y].append(x)
    above = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for x in order[1:]:
            found = _common([y for y in readers[x] if y in above], above, place)
            changed |= above.get(x) is not found
            above[x] = found
    return above


def _common(nodes: Sequence[_CostNode], above: dict[_CostNode, _CostNode], place: dict[_CostNode, int]) -> _CostNode:
    """Return the nearest common dominator of nodes."""
    x = nodes[0]
    for y in nodes[1:]:
        while x is not y:
            if place[x] > place[y]:
                x = above[x]
            else:
                y = above[y]
    return x


# ---- the choice ----------------------------------------------------------------------------------------------


def _saving(nodes: Sequence[_CostNode], depth: int = 0) -> SavedEquations:
    """Return the policy that saves the results of these nodes, for the program at this depth of their paths."""
    inside: dict[Equation, list[_CostNode]] = {}
    for x in nodes:
        if len(x.path) > depth:
            inside.setdefault(x.path[depth], []).append(x)
    here = frozenset(x.eqn for x in nodes if x.eqn and len(x.path) == depth)
    return SavedEquations(here, frozenset((eqn, _saving(xs, depth + 1)) for eqn, xs in inside.items()))
