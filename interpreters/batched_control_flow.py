"""Batched control flow: branches and loops whose predicate differs between the examples of a vmap.

Search terms: divergence, predication, if-conversion, stragglers of a while_loop under vmap. There are two strategies.
Select: every branch that some example takes runs on all examples, and results are selected. An example not taking a
branch is given the operands of one that does, so a branch only sees operands it was meant for: it cannot run forever on
others, and no nan of it reaches a derivative. A while loop runs as long as the slowest example.
Loop: a scan runs the examples one after another, each on its own branch. `decide` chooses a strategy by the cost of the
programs; `tl.vmap(..., control_flow=)` overrules it.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits, vmap
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, source
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Equation, Jaxpr, effects_of, eval_jaxpr, subjaxprs
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.elementwise import clamp, eq, select_n
from tapeless.tracer.primitives.indexing import dynamic_slice_in_dim
from tapeless.tracer.primitives.reduction import argmax, reduce_or
from tapeless.tracer.primitives.shape import broadcast_in_dim
from tapeless.tracer.settings.scopes import call_in_scope
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.types import ShapedArray, aval_of

# Elements per example from which a loop over the examples is cheaper than computing every branch for all examples.
# Below, the overhead of the loop's steps is larger. Measured on CPU with matrix products and sines.


class Decision(NamedTuple):
    """The strategy for control flow that differs between examples of a vmap, with its reason."""

    primitive: str
    strategy: str
    examples: int
    cost: int
    reason: str
    place: str

    def __str__(self) -> str:
        where = f" at {self.place}" if self.place else ""
        return f"{self.primitive}{where}, {self.examples} examples: {self.strategy}, because {self.reason}"


def decide(primitive: Any, size: int, programs: Sequence[Jaxpr]) -> str:
    """Choose "select" or "loop" for control flow over `size` examples, by the costliest of its branches or bodies."""
    cost = max(map(_elements, programs))
    strategy, reason = _strategy(programs, cost)
    heard = _heard.get()
    if heard is not None:
        heard.append(Decision(str(primitive), strategy, size, cost, reason, source.describe_here()))
    return strategy


def _strategy(programs: Sequence[Jaxpr], cost: int) -> tuple[str, str]:
    """Choose a strategy for batched control flow; return it with its reason."""
    asked = vmap.control_flow.get()
    effects: frozenset[str] = frozenset().union(*map(effects_of, programs))
    if vmap.uses_collectives(programs):
        return "select", "the examples need one another inside"
    if "io" in effects or (effects and asked == "auto"):
        return "loop", "an example has the effects of what it takes, and no others"
    if asked != "auto":
        return asked, "it was asked for"
    if cost >= limits.COSTLY:
        return "loop", f"an example costs {cost:,} elements, at least {limits.COSTLY:,}"
    return "select", f"an example costs {cost:,} elements, less than {limits.COSTLY:,}"


def heard(f: Callable[[], Any]) -> list[Decision]:
    """Run `f`, and return the decisions about batched control flow that were taken in it."""
    decisions: list[Decision] = []
    call_in_scope(_heard, decisions, f)
    return decisions


_heard: ContextVar[list[Decision] | None] = ContextVar("decisions", default=None)


def select_branches(
    size: int, index: Any, operands: Sequence[Any], mapped: tuple[bool, ...], branches: Sequence[Jaxpr]
) -> tuple[Any, ...]:
    """Compute a batched `switch` by selection: each example gets its own branch's results, mapped axis first.

    Args:
      index: int32 [size], the branch of each example.
      operands: [size, ...] where `mapped`; the others are the same for all examples.
    """
    index = clamp(np.int32(0), index, np.int32(len(branches) - 1))
    results = []
    for k, branch in enumerate(branches):
        taken = eq(index, np.int32(k))
        programs = _if_taken(branch, size, mapped)
        results.append(c.cond(reduce_or(taken, (0,)), [taken, *operands], programs))
    return tuple([select_n(broadcast_in_dim(index, aval_of(ys[0]).shape, (0,)), *ys) for ys in zip(*results)])


def _if_taken(branch: Jaxpr, size: int, mapped: tuple[bool, ...]) -> tuple[Jaxpr, Jaxpr]:
    """Return two programs of `taken` (bool [size]) and the operands, for a branch that no, or some example takes.

    The first returns zeros, the second the branch's results for all examples. Remembered with the batched branch.
    """
    dims = tuple([0 if yes else None for yes in mapped])
    program = vmap.batch_jaxpr(branch, size, dims)
    cache = _if_taken_programs.setdefault(program, {})
    if not cache:
        taken = ShapedArray((size,), np.dtype(bool))
        together = vmap.uses_collectives([branch])  # then every example contributes its own operands

        def safe(taken: Any, *operands: Any) -> Any:
            some = size and not together  # of no examples, none is taken
            given = [_of_those(taken, x, size) if yes and some else x for x, yes in zip(operands, mapped)]
            return eval_jaxpr(program, given)

        def zeros(*_: Any) -> Any:
            return [instantiate(Zero(aval)) for aval in program.out_avals]

        for name, f in (("none", zeros), ("some", safe)):
            made = trace_closed(f, [taken, *program.in_avals], what="vmap", function=branch)
            cache[name] = made.replace(name=f"{name}_{branch.name}")
    return cache["none"], cache["some"]


def _of_those(taken: Any, x: Any, size: int) -> Any:
    """Replace the rows of x [size, ...] whose examples are not `taken` by the first taken row."""
    shape = aval_of(x).shape
    row = dynamic_slice_in_dim(x, argmax(taken, 0), 1)
    rows = broadcast_in_dim(row, shape, range(len(shape)))
    return select_n(broadcast_in_dim(taken, shape, (0,)), rows, x)


def select_while(
    size: int,
    condition: Jaxpr,
    body: Jaxpr,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    saving: c.Saving = c.BY_DEFAULT,
) -> tuple[Any, ...]:
    """Run a batched while loop until all examples are done; examples whose condition is false keep their carry.

    Args:
      condition: constants, carry -> boolean [size].
      body: constants, carry -> carry, each array [size, ...].
    """
    of_condition, of_body = consts
    n = len(of_condition)

    def step(*operands: Any) -> Any:
        before = operands[n + len(of_body) :]
        going = eval_jaxpr(condition, [*operands[:n], *before])[0]
        after = eval_jaxpr(body, [*operands[n : n + len(of_body)], *before])
        return [select_n(broadcast_in_dim(going, aval_of(y).shape, (0,)), x, y) for x, y in zip(before, after)]

    def some(*operands: Any) -> Any:
        return (reduce_or(eval_jaxpr(condition, operands)[0], (0,)),)

    test = trace_closed(some, condition.in_avals, what="vmap", function=condition)
    in_avals = [*condition.in_avals[:n], *body.in_avals]
    program = trace_closed(step, in_avals, what="vmap", function=body)
    return c.while_loop(
        test, program.replace(name=f"select_{body.name}"), (of_condition, [*of_condition, *of_body]), carry, saving
    )


def one_by_one(primitive: Any, size: int, args: Sequence[Any], mapped: Sequence[bool], params: Any) -> tuple[Any, ...]:
    """Apply `primitive` to one example after another by a scan; operands [size, ...] if `mapped`, results always."""
    avals = [aval_of(x) for x in args]
    consts, xs = where_false(mapped, args), where_true(mapped, args)
    n = len(consts)

    def example(*operands: Any) -> Any:
        return primitive.bind(*merge_lists(mapped, operands[n:], operands[:n]), **params)

    in_avals = [*where_false(mapped, avals), *map(c.element_type, where_true(mapped, avals))]
    program = trace_closed(example, in_avals, what="vmap", function=primitive)
    return c.scan(program.replace(name=f"each_{primitive}"), consts, [], xs, length=size)


def _elements(jaxpr: Jaxpr) -> int:
    """Estimate the cost of a program in elements: computed or read ones, and the terms of each contraction's sums."""
    return sum(map(_elements_of, jaxpr.eqns))


def _elements_of(eqn: Equation) -> int:
    inside = max(map(_elements, subjaxprs(eqn.params)), default=0)
    if inside:
        return inside * int(eqn.own_params.get("length", 1))
    made = sum(v.aval.size for v in eqn.outvars)
    read = max((v.aval.size for v in eqn.invars), default=0)
    return max(made, read) if "dimension_numbers" not in eqn.own_params else made * max(1, _terms(eqn))


def _terms(eqn: Equation) -> int:
    """Estimate the terms that a contraction sums for each element: k = sqrt(m k · k n / m n), too many if batched."""
    sizes = [v.aval.size for v in eqn.invars]
    made = max(1, sum(v.aval.size for v in eqn.outvars))
    return int((float(sizes[0]) * float(sizes[-1]) / made) ** 0.5)


_if_taken_programs = core.program_cache()
