"""Rules of primitives that libraries define: their own, by JAX's conventions.

Tangents and cotangents are `Zero` where they are zero, linear operands of a transpose rule are `Linear`, as everywhere
here; a primitive with one result has bare arrays in the place of tuples.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, zero_of
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.types import aval_of
from tapeless.tracer.user_primitives import DEFINED_BY, UserPrimitive, check_types


def install(primitive: UserPrimitive) -> None:
    """Put a primitive into the tables: its rules are looked up when they are needed."""
    jvp.rules[primitive] = partial(_jvp, primitive)
    transpose.rules[primitive] = partial(_transpose, primitive)
    vmap.rules[primitive] = partial(_vmap, primitive)
    linearity.rules[primitive] = _linear


def defined() -> list[UserPrimitive]:
    """The primitives that were installed."""
    return [p for p in vmap.rules if isinstance(p, UserPrimitive)]


def _jvp(primitive: UserPrimitive, primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> Any:
    given = tuple(as_arguments(primals)), tuple(as_arguments(tangents))
    values, pushed = primitive.rule("jvp")(*given, **params)
    outs, out_tangents = primitive.flat("jvp", values), primitive.flat("jvp", pushed)
    ts = [t if type(t) is Zero else _tangent(y, t) for y, t in zip(outs, out_tangents, strict=True)]
    have = [t.aval if type(t) is Zero else aval_of(t) for t in ts]
    check_types(primitive, "jvp", "as tangents of", have, [aval_of(y).tangent() for y in outs])
    return outs, tuple(ts)


def _tangent(y: Any, t: Any) -> Any:
    """A tangent that a rule gives: that of an integer is zero."""
    return zero_of(y) if aval_of(y).tangent().dtype == dtypes.float0 else t


def _transpose(primitive: UserPrimitive, cts: Sequence[Any], /, *args: Any, **params: Any) -> Any:
    if "transpose" not in primitive.rules:
        why = f"it has none. Define it by {DEFINED_BY['transpose']}"
        raise transpose.not_linear(primitive, why)
    rule = primitive.rule("transpose")
    given = as_arguments(cts)
    pulled = rule(given if primitive.several else given[0], *as_arguments(args), **params)
    if pulled is Zero:  # the class stands for zeros of all operands
        pulled = [None] * len(args)
    if not isinstance(pulled, (tuple, list)) or len(pulled) != len(args):
        raise TypeError(f"{primitive}: its transpose rule gave {pulled!r}, not one cotangent for each operand.")
    cotangents = [_cotangent(x, ct) for x, ct in zip(args, pulled)]
    given = [(aval_of(ct), x.aval) for x, ct in zip(args, cotangents) if ct is not None and type(ct) is not Zero]
    check_types(primitive, "transpose", "as cotangents of", [a for a, _ in given], [a for _, a in given])
    return tuple(cotangents)


def _cotangent(x: Any, ct: Any) -> Any:
    if not is_linear(x):
        return None
    return Zero(x.aval) if ct is None or type(ct) is Zero else ct


def _vmap(primitive: UserPrimitive, size: int, args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
    given = tuple(as_arguments(args))
    outs, out_dims = primitive.rule("batching")(size, vmap.axis_name(), given, tuple(dims), **params)
    values, places = primitive.flat("batching", outs), primitive.flat("batching", out_dims)
    if len(values) != len(places):
        raise TypeError(f"{primitive}: its batching rule gave {len(values)} results, and axes of {len(places)}.")
    return values, [_place(primitive, x, d, size) for x, d in zip(values, places)]


def _place(primitive: UserPrimitive, x: Any, d: Any, size: int) -> int | None:
    """Count the position of a mapped axis from the front. Raises: TypeError if there is no axis of that size."""
    if d is None:
        return None
    shape = aval_of(x).shape
    if not isinstance(d, int) or not -len(shape) <= d < len(shape) or shape[d] != size:
        raise TypeError(f"{primitive}: its batching rule says that {size} examples are along axis {d!r} of {shape}.")
    return d % len(shape)


def _linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    """Check a primitive of a library: it is linear in the operands that it says, and else in none.

    In a program that a transform built it is linear in the operands that are marked: its rules applied it to tangents.
    """
    primitive = eqn.primitive
    assert isinstance(primitive, UserPrimitive)
    sets = primitive.linear_in(len(eqn.invars))
    if check.trusting and sets is None:
        marked = [i for i, v in enumerate(eqn.invars) if v.linear]
        return (check.jointly(eqn, facts, marked),) * len(eqn.outvars)
    advice = f"\n  If it is linear in some operands, say so by {DEFINED_BY['linear']}." if sets is None else ""
    return (check.of_sets(eqn, facts, sets or (), advice),) * len(eqn.outvars)
