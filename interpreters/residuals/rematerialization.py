"""Rematerialization: a policy chooses the residuals to save; the linear half computes the others again.

A policy is `policy(primitive, *operand_avals, **params) -> bool`: may the results of this equation be saved? Other
residuals are computed again, in the linear half, from the saved ones and from the inputs. If a policy returns an
`Offload` instead of True, the primal half moves the results to another memory, where they are saved, and the linear
half moves them back. If a primitive that carries a program has a rule here, the policy decides on each equation of that
program. A `ProgramPolicy` sees the whole program, and chooses among its equations.
Source: Radul et al. 2023, section 5; policies as in JAX (activation checkpointing).
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from tapeless.tracer import passes
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects, map_carried, subjaxprs
from tapeless.tracer.primitives.checkpoint import move_p
from tapeless.tracer.primitives.random import random_unwrap_p
from tapeless.tracer.rules import Rules, Table
from tapeless.tracer.types import ShapedArray


class ProgramPolicy:
    """A policy that sees a whole program, instead of deciding equation by equation."""

    def unzip(self, program: Jaxpr, unzip: Callable[..., Any]) -> Any:
        """Split a program in two halves, by `unzip`, which saves all residuals, or those of a policy it is given."""
        raise NotImplementedError

    def of_halves(self) -> "Policy":
        """Return the policy for derivatives of the halves."""
        return self


Asked = Callable[..., Any]  # policy(primitive, *operand_avals, **params): may its results be saved, or where?
Policy = Asked | ProgramPolicy


class Excluded:
    """The verdict of a policy on a name: save neither the named value nor the value that it names."""

    def __bool__(self) -> bool:
        return False


EXCLUDED = Excluded()


class Offload(NamedTuple):
    """The verdict of a policy: move results from memory `src` of the device to `dst`, and back when they are read."""

    src: str
    dst: str


def save_all(primitive: Primitive, /, *avals: ShapedArray, **params: Any) -> bool:
    """Save all residuals, as ordinary reverse mode does; only data movement, selects and masks are computed again."""
    return True


def save_none(primitive: Primitive, /, *avals: ShapedArray, **params: Any) -> bool:
    """Save only inputs, and results of callbacks; every other residual is computed again."""
    return False


def by_policy(primal: Jaxpr, linear: Jaxpr, n: int, policy: Asked) -> tuple[Jaxpr, Jaxpr, int]:
    """Move the equations of residuals that the policy does not save into the linear half.

    Args:
      primal: primal inputs -> results, n residuals. linear: the residuals ; linear inputs -> linear results.
    Returns: the two programs for the residuals that are saved, and the number of these.
    """
    wanted = primal.outvars[len(primal.outvars) - n :]
    return with_plan(primal, linear, plan_rematerialization(primal, wanted, policy))


def with_plan(primal: Jaxpr, linear: Jaxpr, plan: "RematerializationPlan") -> tuple[Jaxpr, Jaxpr, int]:
    """Apply a plan for the residuals, the last results of `primal`: move equations that compute them again to `linear`.

    The moved equations get new variables. Returns: as `by_policy`.
    """
    results = primal.outvars[: len(primal.outvars) - len(plan.wanted)]
    new_primal = passes.dead_code(primal.replace(eqns=plan.eqns, outvars=[*results, *plan.saved]))
    fresh: dict[Any, Any] = {v: Var(v.aval) for v in [*plan.saved, *[v for eqn in plan.again for v in eqn.outvars]]}
    # The residuals are the first inputs.
    bound: dict[Any, Any] = {r: fresh.get(v, v) for r, v in zip(linear.invars, plan.wanted)}
    eqns = [
        *[_renamed(repeat_equation(eqn), fresh) for eqn in plan.again],
        *[_renamed(eqn, bound) for eqn in linear.eqns],
    ]
    inputs = [*[fresh[v] for v in plan.saved], *linear.invars[len(plan.wanted) :]]
    new_linear = Jaxpr(inputs, eqns, [bound.get(v, v) for v in linear.outvars], linear.name)
    return check_if_configured(new_primal), check_if_configured(new_linear), len(plan.saved)


def repeat_equation(eqn: Equation) -> Equation:
    """Write a rematerialized equation; its programs do without what only observes values.

    It is no further use of its random keys, for `tracer.keys.key_reuse`.
    """
    if eqn.primitive is random_unwrap_p:
        return eqn.replace(params={"spends": False})
    params = map_carried(_repeat_program, eqn)
    return eqn if params is eqn.params else eqn.replace(params=params)


def _repeat_program(jaxpr: Jaxpr) -> Jaxpr:
    eqns = [repeat_equation(eqn) for eqn in jaxpr.eqns if eqn.primitive.effect != "debug"]
    same = len(eqns) == len(jaxpr.eqns) and all(map(operator.is_, eqns, jaxpr.eqns))
    return jaxpr if same else jaxpr.replace(eqns=eqns)


def _renamed(eqn: Equation, new: dict[Any, Any]) -> Equation:
    invars, outvars = ([new.get(v, v) for v in vs] for vs in (eqn.invars, eqn.outvars))
    return eqn.replace(invars=invars, outvars=outvars)


class RematerializationPlan(NamedTuple):
    """The values of a program to save, and the equations that rematerialize the others.

    eqns: the program's equations, some with additional results, and moves of values that are offloaded. saved: inputs
    and results of `eqns` that are kept. again: equations that compute the values `wanted` from `saved`; some wanted
    values are saved themselves.
    """

    eqns: tuple[Equation, ...]
    saved: tuple[Var, ...]
    again: tuple[Equation, ...]
    wanted: tuple[Atom, ...]


def plan_rematerialization(jaxpr: Jaxpr, wanted: Sequence[Atom], policy: Asked) -> RematerializationPlan:
    """Plan how to get `wanted` later: split its equations into those whose results `policy` saves, and others."""
    walk = _Walk(policy, wanted)
    visited = [walk.visit(eqn) for eqn in reversed(jaxpr.eqns)][::-1]
    moved = walk.move_away(visited)
    eqns = [x for eqn in visited for x in (eqn, *[moved[v] for v in eqn.outvars if v in moved])]
    available = [*jaxpr.invars, *[v for eqn in eqns for v in eqn.outvars]]
    saved = [v for v in available if v in walk.needed]  # a value still needed is an input, or not computed again
    return RematerializationPlan(tuple(eqns), tuple(saved), walk.again(), tuple(map(walk.stands_for, wanted)))


rules: Final = Rules(
    "rematerialization",
    "rule(eqn, wanted results, policy) -> the equation, perhaps with more results to be saved; the equation that "
    "computes `wanted` again from those and the operands, or None if all are saved",
    absent="the policy is asked of the whole equation, not of the equations of its programs",
)
names: Table[None] = Table(
    "names",
    "its result is its operand, with a name that policies know",
    absent="its results have no names",
)


class _Walk:
    """The backward pass over equations, deciding for each needed value whether to save it or compute it again.

    Backwards, all readers of a value are known when its equation is visited.
    """

    def __init__(self, policy: Asked, wanted: Sequence[Atom]) -> None:
        self._policy = policy
        self.needed: set[Atom] = set(wanted)
        self._again: list[Equation] = []
        self._named: dict[Atom, Var] = {}  # values -> their named copies, which the policy saves
        self._excluded: set[Atom] = set()
        self._elsewhere: dict[Var, tuple[Equation, Offload]] = {}  # values that may be saved in another memory
        self._stand_ins: dict[Atom, Var] = {}

    def visit(self, eqn: Equation) -> Equation:
        """Decide on an equation; return it, perhaps with additional results to be saved."""
        if eqn.primitive in names:
            self._visit_name(eqn)
            return eqn
        self._use_names(eqn)
        wanted = [v for v in eqn.outvars if v in self.needed]
        if not wanted:
            return eqn
        primal, again = self._decide(eqn, wanted)
        if again is not None:
            self.needed.difference_update(again.outvars)
            self.needed.update(again.invars)
            self._again.append(again)
        return primal

    def move_away(self, eqns: Sequence[Equation]) -> dict[Var, Equation]:
        """Offload values: return the moves that `eqns` lack, by value; move back before all rematerialization."""
        there_already = {(eqn.invars[0], eqn.params["dst"]): eqn for eqn in eqns if eqn.primitive is move_p}
        moved: dict[Var, Equation] = {}
        for v, (eqn, (src, dst)) in self._elsewhere.items():
            if v not in self.needed:
                continue
            to, back = ({"src": a, "dst": b} for a, b in ((src, dst), (dst, src)))
            move = there_already.get((v, dst))
            if move is None or move in self._again:
                move = moved[v] = eqn.replace(primitive=move_p, params=to, invars=[v], outvars=[Var(v.aval)])
            self._again.append(eqn.replace(primitive=move_p, params=back, invars=move.outvars, outvars=[v]))
            self.needed.remove(v)
            self.needed.update(move.outvars)
        return moved

    def again(self) -> tuple[Equation, ...]:
        """List the equations to be computed again, in program order."""
        forwards = reversed(self._again)
        return tuple(eqn.replace(invars=[self.stands_for(v) for v in eqn.invars]) for eqn in forwards)

    def stands_for(self, v: Atom) -> Atom:
        """Return the variable that is saved in the place of `v`, as a name for it; else `v`."""
        return self._stand_ins.get(v, v)

    def _decide(self, eqn: Equation, wanted: list[Var]) -> tuple[Equation, Equation | None]:
        excluded = not self._excluded.isdisjoint(eqn.outvars)
        if eqn.primitive in rules and not excluded:
            return rules[eqn.primitive](eqn, wanted, self._policy)
        if "io" in effects(eqn):
            return eqn, None  # computing it again would repeat the effect
        verdict = False if excluded else _verdict(eqn, self._policy)
        if isinstance(verdict, Offload):
            self._elsewhere.update((v, (eqn, verdict)) for v in wanted)
        return eqn, None if verdict else eqn

    def _visit_name(self, eqn: Equation) -> None:
        (x,), (named,) = eqn.invars, eqn.outvars
        verdict = self._policy(eqn.primitive, x.aval, **eqn.params)
        if verdict:
            self._named[x] = named
            if isinstance(verdict, Offload):
                self._elsewhere[named] = eqn, verdict
            return
        if verdict is EXCLUDED:
            self._excluded.add(x)
        if named in self.needed:
            self.needed.remove(named)
            self.needed.add(x)
            self._again.append(eqn)

    def _use_names(self, eqn: Equation) -> None:
        """Replace needed results by their saved named copies, which are the same arrays."""
        for v in eqn.outvars:
            if v in self.needed and v in self._named:
                self.needed.remove(v)
                self.needed.add(self._named[v])
                self._stand_ins[v] = self._named[v]


def _verdict(eqn: Equation, policy: Asked) -> Any:
    """Return a policy's verdict on an equation: whether, or where, to save it; with bodies, only if all in them is."""
    programs = list(subjaxprs(eqn.params))
    if programs:
        return all(_verdict(inner, policy) for program in programs for inner in program.eqns)
    return policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
