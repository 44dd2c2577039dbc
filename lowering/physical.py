"""Physical types: rewrite a program on keys of random numbers to one on their words, as XLA has no keys.

`types.physical` is the type of the words: uint32, with one more axis, the last. Operations that move keys move their
words, with one more axis, added by their rules here; calls, branches and loops carry words instead of keys. Equations
without keys stay as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import core
from tapeless.tracer.check import check_if_configured
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var, map_subjaxprs
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.types import holds_keys, physical

rules: Final = Rules(
    "physical",
    "rule(w: WordWriter, *operands, **params) -> atoms: words where operands and results were keys",
    absent="it takes no keys of random numbers",
)


@core.memoize_by_program
def program(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite a program to words in the place of keys; return the same object if it has no keys.

    Remembered for as long as `jaxpr` lives.
    Raises: NotImplementedError if a primitive that takes keys has no rule.
    """
    return jaxpr if _is_plain(jaxpr) else WordWriter(jaxpr).rewritten()


def _is_plain(jaxpr: Jaxpr) -> bool:
    """Tell whether a program has neither bodies nor keys, by one look at each distinct type: there are few."""
    if jaxpr.carrying:
        return False
    types = {v.aval for eqn in jaxpr.eqns for v in (*eqn.invars, *eqn.outvars)}
    return not any(map(holds_keys, types.union(jaxpr.in_avals, jaxpr.out_avals)))


class WordWriter:
    """A rewriter of a program on keys to one on words."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self._jaxpr = jaxpr
        self._eqns: list[Equation] = []
        self._now: dict[Atom, Atom] = {v: Var(physical(v.aval)) for v in jaxpr.invars if holds_keys(v.aval)}
        self._changed = bool(self._now)
        self.eqn: Equation  # the equation on keys that a rule is rewriting

    def rewritten(self) -> Jaxpr:
        """Rewrite the whole program; return the same object if nothing changes."""
        for eqn in self._jaxpr.eqns:
            self._visit(eqn)
        if not self._changed:
            return self._jaxpr
        invars = [v for v in map(self._atom, self._jaxpr.invars) if isinstance(v, Var)]
        outvars = [self._atom(v) for v in self._jaxpr.outvars]
        return check_if_configured(self._jaxpr.replace(invars=invars, eqns=self._eqns, outvars=outvars))

    def write(self, primitive: Primitive, /, *operands: Atom, **params: Any) -> tuple[Var, ...]:
        """Append an equation, and return its results."""
        linear = any(v.linear for v in operands)
        outvars = [Var(aval, linear) for aval in primitive.type(tuple([v.aval for v in operands]), params)]
        self._eqns.append(Equation(primitive, operands, params, outvars, self.eqn.source))
        return tuple(outvars)

    def spread(self, x: Atom, shape: tuple[int, ...], dims: Sequence[int]) -> Atom:
        """Broadcast an operand to `shape`, its axes at `dims`; unchanged if it has that shape."""
        return x if x.aval.shape == shape else self.write(broadcast_in_dim_p, x, shape=shape, dims=tuple(dims))[0]

    def _visit(self, eqn: Equation) -> None:
        has_keys = any(holds_keys(v.aval) for v in (*eqn.invars, *eqn.outvars))
        if has_keys and (eqn.primitive in rules or not eqn.primitive.carries_programs):
            self.eqn, self._changed = eqn, True
            found = rules[eqn.primitive](self, *map(self._atom, eqn.invars), **eqn.params)
            self._now.update(zip(eqn.outvars, found, strict=True))
        elif eqn.primitive.carries_programs:
            self._carry(eqn)
        else:
            self._eqns.append(self._renamed(eqn))

    def _carry(self, eqn: Equation) -> None:
        """Append an equation that carries programs, with its programs, operands and results rewritten to words."""
        keys = [v for v in eqn.outvars if holds_keys(v.aval)]
        self._now.update((v, Var(physical(v.aval), v.linear)) for v in keys)
        params = map_subjaxprs(program, eqn.params)
        self._changed |= bool(keys) or params is not eqn.params
        outvars = [v for v in map(self._atom, eqn.outvars) if isinstance(v, Var)]
        self._eqns.append(self._renamed(eqn).replace(params=params, outvars=outvars))

    def _renamed(self, eqn: Equation) -> Equation:
        if not self._now:
            return eqn
        invars = [self._atom(v) for v in eqn.invars]
        return eqn.replace(invars=invars) if any(now is not v for now, v in zip(invars, eqn.invars)) else eqn

    def _atom(self, v: Atom) -> Atom:
        """Translate a variable or literal of the old program to the new one."""
        if isinstance(v, Literal) and holds_keys(v.aval):
            return Literal(np.asarray(v.value.words), physical(v.aval))
        return self._now.get(v, v) if self._now else v


def moves(primitive: Primitive, /, **params_of_words: Callable[[Any, int], Any]) -> None:
    """Register the rule of a primitive that moves words as it moves keys, with params `param=lambda value, n: ...`.

    n is the number of words of a key.
    """

    def rule(w: WordWriter, /, *words: Atom, **params: Any) -> Any:
        n = words[0].aval.shape[-1]
        changed = {name: of_words(params[name], n) for name, of_words in params_of_words.items()}
        return w.write(primitive, *words, **{**params, **changed})

    rules[primitive] = rule


def and_then(item: int) -> Callable[[tuple[int, ...], int], tuple[int, ...]]:
    """Return the function that appends `item`, for the axis of words, to a parameter with an item for each axis."""
    return lambda items, _: (*items, item)


def and_words(items: tuple[int, ...], n: int) -> tuple[int, ...]:
    """Append the number of words to a parameter with a size for each axis."""
    return (*items, n)
