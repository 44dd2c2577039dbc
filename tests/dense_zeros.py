"""A checker of gradient programs: no dense zeros that are only added to something, no one-hot that is only contracted.

Every linear jaxpr that is transposed, or made by transposing, while tests run is given to `check`.
- Zeros are dense if they are an array, filled with the number 0, or such an array with more zeros written into it. They
  are a fault if all that reads them adds them to something or subtracts them.
- A one-hot is a comparison of positions (iota) with something as a number, a choice of something and zeros by such a
  comparison, or ones written into zeros. It is a fault if all that reads it contracts it.
What is no fault: zeros that a loop starts its sums from (they are the first value of a carry, which the loop reads
and writes), zeros that are written into (what a scatter of updates needs, if nothing was there to add to), zeros that
are a result or an operand of a program that is called, and scalars.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p

ADDING = (e.add_p, e.sub_p)
WRITING = (i.dynamic_update_slice_p, i.scatter_p, i.scatter_add_p)
MOVING = (s.reshape_p, s.transpose_p, s.broadcast_in_dim_p, e.convert_element_type_p)


def check(jaxpr: Jaxpr) -> Jaxpr:
    """The program. Raises: AssertionError naming the equations at fault, with the user's lines."""
    found = list(faults(jaxpr))
    if found:
        raise AssertionError("\n".join([*found, f"in {jaxpr}"]))
    return jaxpr


def faults(jaxpr: Jaxpr) -> Iterator[str]:
    """What is wrong with a program, and those inside it, an equation at a time."""
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    readers = _readers(jaxpr)
    for eqn in jaxpr.eqns:
        read = readers.get(eqn.outvars[0], []) if len(eqn.outvars) == 1 else []
        if _is_dense(eqn.outvars, made) and read and all(r in ADDING for r in read):
            yield f"zeros that are only added: {eqn}{_place(eqn)}"
        if read and all(r is dot_general_p for r in read) and _is_one_hot(eqn, made):
            yield f"a one-hot that is only contracted: {eqn}{_place(eqn)}"
        for inner in subjaxprs(eqn.params):
            yield from faults(inner)


def _place(eqn: Equation) -> str:
    return f" at {eqn.source.describe()}" if eqn.source else ""


def _readers(jaxpr: Jaxpr) -> dict[Any, list[Any]]:
    """The primitives that read each variable; None for being a result."""
    found: dict[Any, list[Any]] = {}
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            found.setdefault(v, []).append(eqn.primitive)
    for v in jaxpr.outvars:
        found.setdefault(v, []).append(None)
    return found


def _is_dense(outvars: Any, made: dict[Any, Equation]) -> bool:
    return len(outvars) == 1 and outvars[0].aval.size > 1 and _is_zero(outvars[0], made)


def _is_zero(v: Any, made: dict[Any, Equation]) -> bool:
    if type(v) is Literal:
        return not np.any(v.value)
    eqn = made.get(v)
    if eqn is None:
        return False
    if eqn.primitive in MOVING:
        return _is_zero(eqn.invars[0], made)
    if eqn.primitive is s.pad_p or eqn.primitive is i.dynamic_update_slice_p:
        return all(_is_zero(x, made) for x in eqn.invars[:2])
    return eqn.primitive in WRITING and _is_zero(eqn.invars[0], made) and _is_zero(eqn.invars[2], made)


def _is_one_hot(eqn: Equation, made: dict[Any, Equation]) -> bool:
    if eqn.primitive is e.convert_element_type_p:
        return _is_of_positions(eqn.invars[0], made)
    if eqn.primitive is e.select_n_p:
        return _is_of_positions(eqn.invars[0], made) and any(_is_zero(x, made) for x in eqn.invars[1:])
    if eqn.primitive in WRITING:
        update = eqn.invars[1] if eqn.primitive is i.dynamic_update_slice_p else eqn.invars[2]
        return _is_zero(eqn.invars[0], made) and _is_one(update, made)
    return False


def _is_of_positions(v: Any, made: dict[Any, Equation]) -> bool:
    """Whether a value compares positions with something."""
    eqn = made.get(v)
    if eqn is None or eqn.primitive is not e.eq_p:
        return False
    return any(_is_positions(x, made) for x in eqn.invars)


def _is_positions(v: Any, made: dict[Any, Equation]) -> bool:
    eqn = made.get(v) if type(v) is Var else None
    while eqn is not None and (
        eqn.primitive in MOVING or (eqn.primitive is e.add_p and type(eqn.invars[1]) is Literal)
    ):
        eqn = made.get(eqn.invars[0])
    return eqn is not None and eqn.primitive is s.iota_p


def _is_one(v: Any, made: dict[Any, Equation]) -> bool:
    eqn = made.get(v)
    if eqn is not None and eqn.primitive in MOVING:
        return _is_one(eqn.invars[0], made)
    return type(v) is Literal and bool(np.all(v.value == 1))
