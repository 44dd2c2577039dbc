"""Side effects of equations, which must not be dropped, merged, or reordered among each other.

`Primitive.effect` is the side effect of a primitive: "io", which counts as part of the result, or "debug", which only
observes. An equation that carries programs has their effects. Effects run in no particular order, except for those of
equations with the param `ordered` set, which run in the order of the program.
"""

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Equation, Jaxpr, subjaxprs

ORDERED = "ordered"  # among the effects if some of them have an order
Effects = frozenset[str]
_NONE: Effects = frozenset()


def effects(eqn: Equation) -> Effects:
    """Collect the effects of an equation, in programs that it carries too; empty if it is pure."""
    primitive = eqn.primitive
    if primitive.effect is None and not primitive.carries_programs:
        return _NONE
    own = _NONE if primitive.effect is None else _own(primitive.effect, eqn)
    return own.union(*[effects_of(inner) for inner in subjaxprs(eqn.params)])


@core.remembered
def effects_of(jaxpr: Jaxpr) -> Effects:
    """Collect the effects of all equations of a program; cached for as long as it lives."""
    own = any(primitive.effect is not None for primitive in jaxpr.primitives)
    return _NONE.union(*map(effects, jaxpr.eqns if own else jaxpr.carrying))


def _own(effect: str, eqn: Equation) -> Effects:
    return frozenset((effect, ORDERED) if eqn.own_params.get(ORDERED) else (effect,))
