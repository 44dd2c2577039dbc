"""Check weak integers that a program converts to a narrower dtype, when the program is called and they are known.

A number takes the dtype of an integer array that it is combined with, if it fits. In a program its value is not known;
promotion writes its conversion as one between weak types, which nothing else does, so that a program shows what has to
fit: `{ lambda n:~i32[] .. let m:~i8[] = convert_element_type[dtype=i8, weak_type=True] n ..`. Knowingly left out:
numbers that the program computes from others, and bodies of loops and branches; there they are converted as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.call import jit_p
from tapeless.tracer.primitives.custom import custom_jvp_p, custom_vjp_p
from tapeless.tracer.primitives.elementwise import convert_element_type_p, copy_p, stop_gradient_p
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, reshape_p


class UserLine(Protocol):
    """A line of a user's program, of this process or of the one that a program was loaded from."""

    def describe(self) -> str:
        """Describe the line in a message: `model.py:12, x = y + n`."""
        ...


class IntegerNarrowing(NamedTuple):
    """An input, by its number, or a literal that must fit a dtype, and the line of the user's program that needs it."""

    what: int | Literal
    dtype: np.dtype[Any]
    source: UserLine | None


@core.remembered
def narrowings(jaxpr: Jaxpr) -> tuple[IntegerNarrowing, ...]:
    """Find the inputs and literals of a program that must fit another integer dtype than their own."""
    return tuple(_found(jaxpr))


def check_fits(found: IntegerNarrowing, value: Any, who: Callable[[], str]) -> None:
    """Check that a known `value`, which `who` names, fits. Raises: OverflowError. Waits for arrays on a device."""
    known = known_elements(value)
    low, high = dtypes.limits(found.dtype)
    for extreme in (known.min(), known.max()) if known is not None and known.size else ():
        if not low <= int(extreme) <= high:
            met = f"\n  It meets {found.dtype} at {found.source.describe()}." if found.source else ""
            raise OverflowError(
                f"{who()} is {extreme}, but must fit {found.dtype}, which holds {low} to {high}.{met}\n"
                "  Use an array of a wider dtype, or convert the number with astype, which wraps."
            )


_HANDING_ON = (copy_p, stop_gradient_p, broadcast_in_dim_p, reshape_p)
_CALLS = (jit_p, custom_jvp_p, custom_vjp_p)


def _found(jaxpr: Jaxpr) -> list[IntegerNarrowing]:
    eqns = () if jaxpr.primitives.isdisjoint((convert_element_type_p, *_CALLS)) else jaxpr.eqns
    wanted = [each for eqn in eqns for each in _wanted(eqn)]
    if not wanted:
        return []
    made = {v: eqn for eqn in jaxpr.eqns if eqn.primitive in _HANDING_ON for v in eqn.outvars}
    number = {v: i for i, v in enumerate(jaxpr.invars)}
    found: list[IntegerNarrowing] = []
    for atom, dtype, source in wanted:
        origin = _origin(atom, made)
        what = number.get(origin) if isinstance(origin, Var) else origin
        if what is not None:
            found.append(IntegerNarrowing(what, dtype, source))
    return found


def _wanted(eqn: Equation) -> Sequence[tuple[Atom, np.dtype[Any], UserLine | None]]:
    """List the operands that an equation converts to a narrower dtype."""
    if eqn.primitive is convert_element_type_p:
        (x,), dtype = eqn.invars, eqn.params["dtype"]
        narrows = x.aval.weak_type and eqn.params["weak_type"] and not dtypes.holds(dtype, x.aval.dtype)
        return [(x, dtype, eqn.source)] if narrows else ()
    if eqn.primitive in _CALLS:
        inner = narrowings(eqn.params["jaxpr"])
        return [(eqn.invars[n.what], n.dtype, n.source) for n in inner if isinstance(n.what, int)]
    return ()


def _origin(atom: Atom, made: dict[Var, Equation]) -> Atom:
    """Trace `atom` back to the input or literal that it is a copy of, through copies and broadcasts."""
    while isinstance(atom, Var) and atom in made:
        atom = made[atom].invars[0]
    return atom
