"""Forwarding: branches and loops without the values that their programs only pass on.

What a body leaves as it is becomes a constant, which is not carried, saved for a derivative, or mapped; results that
are operands, or the sequence itself, are not computed.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.control_flow.body_tracing import TracedBody
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.numpy import asarray
from tapeless.tracer.passes import forwarded_inputs, rearrange_program
from tapeless.tracer.primitives import control_flow as primitives


def cond(index: Any, operands: Sequence[Any], branches: Sequence[Jaxpr]) -> list[Any]:
    """Bind `cond` without the results that every branch forwards from the same operand."""
    forwards = [xs[0] if len(set(xs)) == 1 else None for xs in zip(*map(forwarded_inputs, branches), strict=True)]
    computed = [i for i, source in enumerate(forwards) if source is None]
    programs = [rearrange_program(branch, range(len(operands)), computed) for branch in branches]
    outs = iter(primitives.cond(index, operands, programs))
    return [next(outs) if source is None else asarray(operands[source]) for source in forwards]


def while_loop(
    condition: TracedBody,
    body: TracedBody,
    carry: Sequence[Any],
    loop: Callable[..., tuple[Any, ...]] = primitives.while_loop,
) -> tuple[Any, ...]:
    """Bind `while` without the parts of the carry that its body returns unchanged: they become constants."""
    constant = _constant(body, len(carry))
    constants, carried = where_true(constant, carry), where_false(constant, carry)
    consts = (*condition.consts, *constants), (*body.consts, *constants)
    changed = where_false(constant, range(len(carry)))
    test, step = _constants_first(condition, constant, [0]), _constants_first(body, constant, changed)
    outs = loop(test, step, consts, carried)
    return merge_lists(constant, map(asarray, constants), outs)


def scan(
    body: TracedBody,
    carry: Sequence[Any],
    xs: Sequence[Any],
    /,
    loop: Callable[..., tuple[Any, ...]] = primitives.scan,
    **params: Any,
) -> tuple[Any, ...]:
    """Bind `scan` with unchanged parts of the carry as constants, and without results that copy one of xs.

    loop: takes the arguments of the primitive's function, which it stands for.
    """
    first, n = len(body.consts) + len(carry), len(carry)
    constant = _constant(body, n)
    copied = [None if k is None or k < first else k - first for k in forwarded_inputs(body.jaxpr)[n:]]
    is_copy = [k is not None for k in copied]
    computed = where_false([*constant, *is_copy], range(n + len(copied)))
    jaxpr = _constants_first(body, constant, computed)
    constants, carried = where_true(constant, carry), where_false(constant, carry)
    outs = loop(jaxpr, [*body.consts, *constants], carried, xs, **params)
    ends, ys = outs[: len(carried)], outs[len(carried) :]
    copies = [asarray(xs[k]) for k in copied if k is not None]
    return merge_lists(constant, map(asarray, constants), ends) + merge_lists(is_copy, copies, ys)


def _constant(body: TracedBody, n: int) -> list[bool]:
    """Flag the parts of the carry that the body returns unchanged."""
    first = len(body.consts)
    return [k == first + i for i, k in enumerate(forwarded_inputs(body.jaxpr)[:n])]


def _constants_first(body: TracedBody, constant: Sequence[bool], outs: Sequence[int]) -> Jaxpr:
    """Move the unchanged parts of the carry among the constants of a body, and keep only the results `outs`."""
    first, end = len(body.consts), len(body.jaxpr.invars)
    carry = range(first, first + len(constant))
    ins = [*range(first), *where_true(constant, carry), *where_false(constant, carry), *range(carry.stop, end)]
    return rearrange_program(body.jaxpr, ins, outs)
