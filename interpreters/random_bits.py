"""Recognise random values: each element is one function of random bits of its own, and of scalars.

No element of a random mask differs from others but by chance. So wherever the mask is reduced by `or`, it is taken to
hold somewhere: it does, but for a chance that falls exponentially with the elements that are reduced. A mask that never
holds, as of `bernoulli(key, 0.0)`, is taken so, too: docs/guarantees.md names this limitation.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import is_elementwise, rows
from tapeless.tracer import core
from tapeless.tracer.bodies import CARRY, EACH, VALUE, bodies_of, describe_bodies
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from tapeless.tracer.primitives.random import GENERATORS
from tapeless.tracer.types import aval_of

# Random inputs of linear programs, whose bits were drawn by another program. Other programs never change them.
_inputs: Final[weakref.WeakSet[Var]] = weakref.WeakSet()


class RandomVariables:
    """The random variables of one program, found by what computes them.

    definition: returns the equation that computes a variable, None for inputs and literals.
    """

    def __init__(self, definition: Callable[[Atom], Equation | None]) -> None:
        self._definition = definition
        self._known: dict[Atom, bool] = {}
        self._depth = 0

    def __contains__(self, x: Atom) -> bool:
        if x not in self._known:
            self._known[x] = self._is_random(x)
        return self._known[x]

    def _is_random(self, x: Atom) -> bool:
        eqn = self._definition(x)
        if eqn is None or limits.PROVENANCE.is_passed(self._depth, eqn.source):
            return eqn is None and x in _inputs
        self._depth += 1
        found = _are_random(eqn.primitive, eqn.params, eqn.invars, self.__contains__, len(eqn.outvars))
        self._depth -= 1
        return found[eqn.outvars.index(x)]


class RandomValues:
    """The random values of one trace, for as long as they live."""

    def __init__(self) -> None:
        self._found: dict[int, weakref.ref[Any]] = {}

    def __contains__(self, x: Any) -> bool:
        found = self._found.get(id(x))
        return found is not None and found() is x

    def note(self, primitive: Primitive, params: dict[str, Any], args: Sequence[Any], outs: Sequence[Any]) -> None:
        """Record those results of an operation that are random."""
        for x, yes in zip(outs, _are_random(primitive, params, args, self.__contains__, len(outs))):
            if yes:
                self._found[id(x)] = weakref.ref(x)


def note_input(v: Var) -> None:
    """Record an input of a linear program that is random."""
    _inputs.add(v)


def note_residuals(residuals: Sequence[Var], primal: Jaxpr) -> None:
    """Record those residuals, inputs of a linear half, that are random as the last results of the primal half."""
    results = _random_results(primal)[len(primal.outvars) - len(residuals) :]
    _inputs.update(v for v, yes in zip(residuals, results, strict=True) if yes)


def note_operands(eqn: Equation) -> None:
    """Record those operands of an equation that are random inputs of a body, all or an element of them."""
    bodies = bodies_of(eqn) if _inputs else None
    for body in () if bodies is None else bodies.each:
        taken = zip(body.ins, body.jaxpr.invars, body.operands, strict=True)
        operands = [eqn.invars[at] for role, v, at in taken if v in _inputs and role is not CARRY]
        _inputs.update(v for v in operands if isinstance(v, Var))


@core.memoize_by_program
def may_be_random(program: Jaxpr) -> bool:
    """Tell whether a program, or one in it, draws random bits: most do not."""
    return not GENERATORS.isdisjoint(program.primitives) or any(map(may_be_random, program.programs))


def _are_random(
    primitive: Primitive, params: dict[str, Any], operands: Sequence[Any], known: Callable[[Any], bool], n: int
) -> Sequence[bool]:
    """Tell which of n results are random: bits of a generator, or elementwise functions of random arrays and scalars.

    Args:
      operands: anything that has a type.
      known: whether an operand is random.
    """
    if primitive in GENERATORS:
        return (True,) * n
    if primitive.carries_programs:
        return _of_body(primitive, params, n)
    avals = list(map(aval_of, operands))
    arrays = [x for x, aval in zip(operands, avals) if aval.shape]
    if not arrays or not all(map(known, arrays)):
        return (False,) * n
    row = rows.get(primitive)
    found = None if row is None else row(params, avals)
    return (found is not None and all(map(is_elementwise, found.results)),) * n


def _of_body(primitive: Primitive, params: dict[str, Any], n: int) -> Sequence[bool]:
    """Tell which results are random values of the only body, in each step if they are stacked."""
    found = [False] * n
    if next(subjaxprs(params), None) is None:
        return found  # a function with rules of its own that is no program yet
    bodies = describe_bodies(primitive, params)
    if bodies is not None and len(bodies.each) == 1:
        (body,) = bodies.each
        inside = _random_results(body.jaxpr)
        for k in body.outputs(VALUE, EACH):
            found[body.results[k]] = inside[k]
    return found


@core.memoize_by_program
def _random_results(jaxpr: Jaxpr) -> tuple[bool, ...]:
    if not may_be_random(jaxpr):
        return (False,) * len(jaxpr.outvars)
    known = RandomVariables({v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}.get)  # type: ignore[arg-type]
    return tuple([v in known for v in jaxpr.outvars])
