"""Forward mode, Taylor mode and batching of bodies: the transformed bodies run in the same kind of equation.

If a body gives a value with a tangent (coefficients, a mapped axis), the next step of a loop takes it so, and so do the
results of other branches: such values are found by iteration to a fixed point. Bodies are known by their description.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from tapeless.interpreters import vmap
from tapeless.interpreters.zero import instantiate, zero_of
from tapeless.tracer.bodies import CARRY, CONST, EACH, TEST, Bodies, Body, Role, apply_with_bodies, describe_bodies
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import InternalError
from tapeless.tracer.flags import Flags, fixed_point
from tapeless.tracer.jaxpr import Jaxpr

# push(program, which inputs have terms, which results must have some) -> the program, its constants, which results have
Push = Callable[[Jaxpr, Flags, Flags], tuple[Jaxpr, Sequence[Any], Flags]]
Terms = Sequence[Any] | None  # a tangent, or Taylor coefficients; None for zeros


def push_terms(
    primitive: Primitive, params: dict[str, Any], primals: Sequence[Any], terms: Sequence[Terms], order: int, push: Push
) -> tuple[list[Any], list[Terms]]:
    """Apply a primitive with bodies to primals and `order` terms of each, by the bodies that `push` makes.

    Returns: the results, and the terms of each, None for those that have none.
    """
    bodies = _described(primitive, params)
    some = [t is not None for t in terms]
    found, flags = _pushed_bodies(bodies, some, push)
    values, after, n = list(primals), list[Body](), len(flags)
    of_result = dict(zip([at for at, yes in enumerate(flags) if yes], count(n, order)))
    of_operand: dict[int, Sequence[int]] = {}
    for body, made in zip(bodies.each, found):
        if made is None:
            after.append(body)
            continue
        consts = _appended(values, made.consts)
        for at in [at for at, yes in zip(body.operands, made.some) if yes and at not in of_operand]:
            of_operand[at] = _appended(values, map(instantiate, terms[at] or [zero_of(primals[at])] * order))
        after.append(_with_terms(body, made, consts, of_operand, of_result, order))
    outs = apply_with_bodies(primitive, params, after, values)
    left = iter(outs[n:])
    return outs[:n], [[next(left) for _ in range(order)] if yes else None for yes in flags]


class _PushedBody(NamedTuple):
    """A body with terms: the program, its constants, which of the old inputs and results have terms."""

    program: Jaxpr
    consts: Sequence[Any]
    some: Flags
    out_some: Flags


def _pushed_bodies(bodies: Bodies, some: Sequence[bool], push: Push) -> tuple[list[_PushedBody | None], list[bool]]:
    """Push all bodies but tests; return them, None for tests, and which results of the equation have terms."""

    def transform(body: Body, flags: Flags, must: Flags) -> tuple[_PushedBody, Flags]:
        program, consts, outs = push(body.jaxpr, flags, must)
        return _PushedBody(program, consts, flags, outs), outs

    return _iterated(bodies, some, transform)


def _iterated(
    bodies: Bodies, some: Sequence[bool], transform: Callable[[Body, Flags, Flags], tuple[Any, Flags]]
) -> tuple[list[Any], list[bool]]:
    """Transform all bodies but tests by flags of their inputs and results, iterated to a fixed point.

    Args:
      transform: maps a body, flags of its inputs, and those that its results must have, to what is made of it and the
        flags of its results.
    """
    each = [body for body in bodies.each if TEST not in body.outs]
    begun = {out: at for body in each for at, out in body.carries()}  # of the results that are carries
    n = 1 + max([at for body in each for at in body.results], default=-1)

    def step(flags: Flags) -> tuple[tuple[list[Any], Flags], Flags]:
        now = {begun[out]: flags[out] for out in begun}
        made, outs = list[Any](), [False] * n
        for body in bodies.each:
            if TEST in body.outs:
                made.append(None)
                continue
            given = tuple([now.get(at, some[at]) for at in body.operands])
            must = tuple([(role is CARRY or len(each) > 1) and flags[at] for role, at in zip(body.outs, body.results)])
            new, found = transform(body, given, must)
            made.append(new)
            for at, yes in zip(body.results, found, strict=True):
                outs[at] |= yes
        followed = tuple([yes and (at in begun or len(each) > 1) for at, yes in enumerate(outs)])
        return (made, tuple(outs)), followed

    (made, outs), _ = fixed_point([out in begun and some[begun[out]] for out in range(n)], step)
    return made, list(outs)


def _with_terms(
    body: Body,
    made: _PushedBody,
    consts: Sequence[int],
    of_operand: Mapping[int, Sequence[int]],
    of_result: Mapping[int, int],
    order: int,
) -> Body:
    """Describe a body with terms: constants, primals, terms -> results, terms."""
    moving = [(role, at) for role, at, yes in zip(body.ins, body.operands, made.some) if yes]
    out_moving = [(role, at) for role, at, yes in zip(body.outs, body.results, made.out_some) if yes]
    ins: list[tuple[Role, int]] = [(CONST, at) for at in consts]
    ins += [*zip(body.ins, body.operands), *[(role, k) for role, at in moving for k in of_operand[at]]]
    outs = [*zip(body.outs, body.results)]
    outs += [(role, of_result[at] + k) for role, at in out_moving for k in range(order)]
    return _body(made.program, ins, outs)


def _body(program: Jaxpr, ins: Sequence[tuple[Role, int]], outs: Sequence[tuple[Role, int]]) -> Body:
    (roles, operands), (out_roles, results) = [tuple(zip(*pairs)) or ((), ()) for pairs in (ins, outs)]
    return Body(program, roles, operands, out_roles, results)


def _appended(values: list[Any], new: Any) -> range:
    """Append values to a list; return their positions."""
    first = len(values)
    values += new
    return range(first, len(values))


def _described(primitive: Primitive, params: dict[str, Any]) -> Bodies:
    bodies = describe_bodies(primitive, params)
    if bodies is None:
        raise InternalError(f"the bodies of {primitive} are not described")
    return bodies


# ---- vmap ----------------------------------------------------------------------------------------------------


class BatchedBodies(NamedTuple):
    """BatchedBodies bodies: the bodies, the values that they take, and the mapped axis of each result.

    differs: whether the value by which a loop goes on is mapped, so that examples take steps of their own.
    """

    bodies: list[Body]
    operands: list[Any]
    dims: list[int | None]
    differs: bool


def batch_bodies(
    primitive: Primitive, params: dict[str, Any], size: int, args: Sequence[Any], dims: Sequence[Any]
) -> BatchedBodies:
    """Batch the bodies of a primitive; the mapped axis of sequences, and of stacked results, is axis 1, of others 0."""
    bodies = _described(primitive, params)
    mapped = [d is not None for d in dims]

    def transform(body: Body, flags: Flags, must: Flags) -> tuple[Body, Flags]:
        program, outs = vmap.batch_where_needed(body.jaxpr, size, dims_of(flags), must)
        return body._replace(jaxpr=program), outs

    found, out_mapped = _iterated(bodies, mapped, transform)
    for body in bodies.each:
        for at, out in body.carries():
            mapped[at] = mapped[at] or out_mapped[out]
    after, differs = list[Body](), False
    for body, made in zip(bodies.each, found):
        if made is None:
            flags = tuple([mapped[at] for at in body.operands])
            test, outs = vmap.batch_where_needed(body.jaxpr, size, dims_of(flags), (False,))
            made, differs = body._replace(jaxpr=test), differs or outs[0]
        after.append(made)
    scanned, stacked = bodies.operands(EACH), {at for body in bodies.each for at in body.stacked()}
    places = [1 if at in scanned else 0 for at in range(len(args))]
    operands = [
        vmap.move_mapped_axis(x, d, place, size) if yes else x
        for x, d, place, yes in zip(args, dims, places, mapped, strict=True)
    ]
    axes = [(1 if at in stacked else 0) if yes else None for at, yes in enumerate(out_mapped)]
    return BatchedBodies(after, operands, axes, differs)


def dims_of(flags: Sequence[bool]) -> tuple[Any, ...]:
    """Return the mapped axis, the first one, of what is flagged."""
    return tuple([0 if yes else None for yes in flags])
