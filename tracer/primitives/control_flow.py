"""Control flow: branches, loops and scans, whose bodies are jaxprs, and the number of the platform.

Bodies are closed jaxprs, given as params; operands are in the order in which the bodies take them. The versions for
Python functions and pytrees are in `tapeless.lax`. Source: the StableHLO specification, `case` and `while`.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer.array import Array
from tapeless.tracer.bodies import (
    CARRY,
    CONST,
    EACH,
    TEST,
    Bodies,
    Body,
    Description,
    bodies_of,
    describe_bodies,
    descriptions,
    in_groups,
    rebuild_equation,
)
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives.call import check_takes, check_types
from tapeless.tracer.types import ShapedArray


def cond(index: Any, operands: Sequence[Any], branches: Sequence[Jaxpr]) -> tuple[Any, ...]:
    """Run one of several programs, which take and give the same types, and return its results.

    Args:
      index: number of the branch, int32 [], clamped to those there are; or boolean [], for two: if false, if true.
    Raises: TypeError if `index` is not such a scalar, or a program does not take the operands or give what the
      first gives.
    """
    return cond_p.bind(index, *operands, branches=tuple(branches))


def _cond_type(index: ShapedArray, *operands: ShapedArray, branches: tuple[Jaxpr, ...]) -> tuple[ShapedArray, ...]:
    if index.shape or index.dtype not in (np.dtype(np.int32), np.dtype(bool)):
        raise TypeError(f"cond: the index must be a scalar of int32 or bool, not {index}.")
    if index.dtype == np.dtype(bool) and len(branches) != 2:
        raise TypeError(f"cond: a boolean chooses between two branches, not {len(branches)}: {index}.")
    for branch in branches:
        check_takes("cond", branch, operands)
        _check_gives("cond", branch, branches[0].out_avals)
    return branches[0].out_avals


cond_p: Final = Primitive("cond", _cond_type, remember=False)


class Saving(NamedTuple):
    """The number of states that reverse mode saves of a while loop, and the number of steps, if it is known.

    slots: the states; by default, of up to 528 steps each is computed again once at most. trips: the steps. mean: about
    how many steps the loop makes each time, if that is planned, for counts of operations.
    """

    slots: int = 32
    trips: int | None = None
    mean: int = 1


BY_DEFAULT: Final = Saving()


def while_loop(
    condition: Jaxpr,
    body: Jaxpr,
    consts: tuple[Sequence[Any], Sequence[Any]],
    carry: Sequence[Any],
    saving: Saving = BY_DEFAULT,
) -> tuple[Any, ...]:
    """Apply `body` to the carry while `condition` holds, and return the last carry.

    Args:
      condition: constants, carry -> boolean [].
      body: constants, carry -> carry.
      consts: constants of the condition, constants of the body.
      saving: the number of states that reverse mode saves.
    Raises: TypeError if the types of operands, inputs and results do not fit.
    """
    of_condition, of_body = consts
    return while_p.bind(
        *of_condition,
        *of_body,
        *carry,
        condition=condition,
        body=body,
        n_condition=len(of_condition),
        n_body=len(of_body),
        **({} if saving == BY_DEFAULT else {"saving": saving}),
    )


def _while_type(
    *avals: ShapedArray, condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int, saving: Saving = BY_DEFAULT
) -> tuple[ShapedArray, ...]:
    of_condition, of_body = avals[:n_condition], avals[n_condition : n_condition + n_body]
    carry = avals[n_condition + n_body :]
    check_takes("while", condition, (*of_condition, *carry))
    _check_gives("while", condition, (ShapedArray((), np.dtype(bool)),))
    check_takes("while", body, (*of_body, *carry))
    _check_gives("while", body, carry)
    return body.out_avals


while_p: Final = Primitive("while", _while_type, remember=False)


def scan(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    *,
    length: int,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, ...]:
    """Run a jaxpr `length` times; return the last carry, and the other results of all steps, stacked.

    Args:
      jaxpr: constants, carry, one element of each of xs -> carry, one element of each result.
      xs: arrays whose axis 0 is `length`.
      reverse: run from the last element to the first; results are stacked at the positions of their elements.
      unroll: steps that the compiled loop takes at once.
    Raises: TypeError if the types of operands, inputs and results do not fit.
    """
    return scan_p.bind(
        *consts,
        *carry,
        *xs,
        jaxpr=jaxpr,
        n_consts=len(consts),
        n_carry=len(carry),
        length=length,
        reverse=reverse,
        unroll=unroll,
    )


def _scan_type(
    *avals: ShapedArray, jaxpr: Jaxpr, n_consts: int, n_carry: int, length: int, reverse: bool, unroll: int
) -> tuple[ShapedArray, ...]:
    before = n_consts + n_carry
    for x in avals[before:]:
        if not x.shape or x.shape[0] != length:
            raise TypeError(f"scan: {x} has no axis 0 of {length} elements.")
    check_takes("scan", jaxpr, (*avals[:before], *[element_type(x) for x in avals[before:]]))
    _check_gives("scan", jaxpr, (*avals[n_consts:before], *jaxpr.out_avals[n_carry:]))
    return (*jaxpr.out_avals[:n_carry], *[stacked_type(y, length) for y in jaxpr.out_avals[n_carry:]])


def element_type(x: ShapedArray) -> ShapedArray:
    """Return the type of one element along axis 0."""
    return x.update(shape=x.shape[1:])


def stacked_type(x: ShapedArray, length: int) -> ShapedArray:
    """Return the type of `length` values of this type, stacked along a new axis 0."""
    return x.update(shape=(length, *x.shape))


scan_p: Final = Primitive("scan", _scan_type, remember=False)


def _check_gives(who: str, jaxpr: Jaxpr, wanted: Sequence[ShapedArray]) -> None:
    check_types(f"{who}: {jaxpr.name}", "gives", jaxpr.out_avals, wanted)


# ---- bodies --------------------------------------------------------------------------------------------------


def _cond_bodies(branches: tuple[Jaxpr, ...]) -> Bodies:
    return Bodies(tuple([call.as_called(branch, first=1) for branch in branches]), selector=0)


def _scan_bodies(jaxpr: Jaxpr, n_consts: int, n_carry: int, length: int, reverse: bool, unroll: int) -> Bodies:
    n_elements, n_stacked = len(jaxpr.invars) - n_consts - n_carry, len(jaxpr.outvars) - n_carry
    groups = [(CONST, n_consts), (CARRY, n_carry), (EACH, n_elements)]
    body = in_groups(jaxpr, groups, [(CARRY, n_carry), (EACH, n_stacked)])
    return Bodies((body,), range(length)[::-1] if reverse else range(length))


def _while_bodies(condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int, saving: Saving = BY_DEFAULT) -> Bodies:
    n_carry = len(body.outvars)
    carry = range(n_condition + n_body, n_condition + n_body + n_carry)
    ins = (*[CONST] * n_condition, *[CARRY] * n_carry)
    test = Body(condition, ins, (*range(n_condition), *carry), (TEST,), (-1,))
    step = in_groups(body, [(CONST, n_body), (CARRY, n_carry)], [(CARRY, n_carry)], n_condition)
    return Bodies((test, step), None, assumed=max(saving.trips or saving.mean, 1))


def _scan_with(params: dict[str, Any], bodies: Sequence[Body]) -> dict[str, Any]:
    (body,) = bodies
    return {**params, "jaxpr": body.jaxpr, "n_consts": body.number_of(CONST), "n_carry": body.number_of(CARRY)}


def _while_with(params: dict[str, Any], bodies: Sequence[Body]) -> dict[str, Any]:
    test, body = bodies
    return {
        **params,
        "condition": test.jaxpr,
        "body": body.jaxpr,
        "n_condition": test.number_of(CONST),
        "n_body": body.number_of(CONST),
    }


descriptions[cond_p] = Description(_cond_bodies, lambda params, bodies: {"branches": tuple([b.jaxpr for b in bodies])})
descriptions[scan_p] = Description(_scan_bodies, _scan_with)
descriptions[while_p] = Description(_while_bodies, _while_with)


def as_scan_params(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """Return the params, as a scan, of a primitive that describes one body and a known number of steps."""
    if primitive is scan_p:
        return params
    found = describe_bodies(primitive, params)
    if found is None or found.steps is None or len(found.each) != 1:
        raise InternalError(f"{primitive} is not described as a loop of one body and a known number of steps")
    return scan_params(found.each[0], found.steps)


def as_scan(eqn: Equation) -> Equation:
    """Write a loop of one body, whose number of steps is known, as a scan; other equations stay as they are."""
    found = bodies_of(eqn)
    body = None if found is None else found.loop_body
    if eqn.primitive is scan_p or found is None or body is None or found.steps is None:
        return eqn
    return scan_of(eqn, body, found.steps, eqn.invars, eqn.outvars)


def scan_of(eqn: Equation, body: Body, steps: range, operands: Sequence[Atom], outvars: Sequence[Var]) -> Equation:
    """Write a scan of this body in the place of an equation."""
    return rebuild_equation(eqn.replace(primitive=scan_p, params=scan_params(body, steps)), [body], operands, outvars)


def scan_params(body: Body, steps: range) -> dict[str, Any]:
    """Return the params of a scan of a body, whose constants, carries and elements come in this order."""
    return _scan_with({"length": len(steps), "reverse": steps.step < 0, "unroll": 1}, [body])


# ---- the platform --------------------------------------------------------------------------------------------
# It is not known while tracing for which platform a program is compiled.

Platforms = tuple[tuple[str, ...] | None, ...]


def platform_index(platforms: Platforms) -> Array:
    """Return the number, int32[], of the first group of names that has the compilation platform; None has all.

    Raises: when the program is compiled, NotImplementedError if the platform is in no group.
    """
    return platform_index_p.bind(platforms=platforms)[0]


def _platform_index_type(*, platforms: Platforms) -> tuple[ShapedArray, ...]:
    return (ShapedArray((), np.dtype(np.int32)),)


platform_index_p: Final = Primitive("platform_index", _platform_index_type)
