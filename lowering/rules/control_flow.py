"""Lowering of control flow to StableHLO's case, if and while.

Regions capture the values around them, so constants of a loop are not carried. A scan is a loop over a counter that
reads one element of every sequence and writes one of every result, in place: XLA shares the buffers of a carry.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tapeless.lowering import dispatch, emit, hlo
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.xla_workarounds import in_place_loops
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import control_flow as c
from tapeless.tracer.primitives.control_flow import Platforms, platform_index_p
from tapeless.tracer.types import ShapedArray, aval_of

# ---- branches ------------------------------------------------------------------------------------------------


def _cond(f: Function, outs: Any, index: Value, *operands: Value, branches: tuple[Jaxpr, ...]) -> Sequence[Value]:
    """Emit case or if; a negative index is clamped, as StableHLO takes the last branch for any index outside.

    If the index is constant, only its branch is emitted; branches that update a loop's arrays become loops.
    """
    known = 0 if len(branches) == 1 else f.number(index)
    if known is not None:
        return emit.apply(f, branches[min(max(int(known), 0), len(branches) - 1)], operands)
    homes = in_place_loops.homes(branches) if f.looping and f.settles else []
    if any(p is not None and operands[p].name in f.overwritten for p in homes):
        return _in_place(f, outs, index, operands, branches, homes)
    name, order = "if", branches[::-1]
    if index.aval.dtype == np.dtype(np.int32):
        name, order = "case", branches
        index = f.op("maximum", [index, f.constant(0, index.aval)], index.aval)
    regions = [f.block((), partial(emit.apply, f, branch, operands)) for branch in order]
    return f.ops(name, [index], outs, region=", ".join(regions))


def _in_place(
    f: Function,
    outs: Sequence[ShapedArray],
    index: Value,
    operands: Sequence[Value],
    branches: Sequence[Jaxpr],
    homes: Sequence[int | None],
) -> Sequence[Value]:
    """Emit branches that update arrays as loops of one step or none: XLA copies the results of branches.

    The results are carried from loop to loop; `homes` has the operand that a result begins as, or None.
    """
    state: Sequence[Value] = [f.constant(0, out) if p is None else operands[p] for out, p in zip(outs, homes)]
    for k, branch in enumerate(branches):

        def step(*now: Value, branch: Jaxpr = branch) -> Sequence[Value]:
            renamed = {operands[p].name: x for x, p in zip(now, homes) if p is not None}
            f.overwritten.update([x.name for old, x in renamed.items() if old in f.overwritten])
            return emit.apply(f, branch, [renamed.get(x.name, x) for x in operands])

        if not _gives_back(branch, homes):
            state = in_place_loops.one_step(f, _chosen(f, index, k, len(branches)), state, step)
    return state


def _gives_back(branch: Jaxpr, homes: Sequence[int | None]) -> bool:
    """Tell whether every result of a branch is the operand that it begins as, by `homes`: then it changes nothing."""
    return all(p is not None and v is branch.invars[p] for v, p in zip(branch.outvars, homes))


def _chosen(f: Function, index: Value, k: int, n: int) -> Value:
    """Emit the predicate that the index selects branch k of n; indices outside select the first or the last."""
    if index.aval.dtype == np.dtype(bool):
        return index if k else f.op("not", [index], index.aval)
    direction = "LE" if k == 0 else "GE" if k == n - 1 else "EQ"
    return f.compare(index, f.constant(k, index.aval), direction)


# ---- loops ---------------------------------------------------------------------------------------------------


def _while(
    f: Function, outs: Any, *operands: Value, condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int, **_: Any
) -> Sequence[Value]:
    before = n_condition + n_body
    of_condition, of_body, carry = operands[:n_condition], operands[n_condition:before], operands[before:]
    return _loop(
        f,
        carry,
        lambda *now: emit.apply(f, condition, [*of_condition, *now]),
        lambda *now: emit.apply(f, body, [*of_body, *now]),
    )


def _loop(f: Function, carry: Sequence[Value], condition: Any, body: Any) -> list[Value]:
    avals, around = [x.aval for x in carry], f.looping
    f.looping = True
    region = f"{f.block(avals, condition)}, {f.block(avals, body)}"
    f.looping = around
    return f.ops("while", carry, avals, region=region)


def _scan(
    f: Function,
    outs: Sequence[ShapedArray],
    *operands: Value,
    jaxpr: Jaxpr,
    n_consts: int,
    n_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> Sequence[Value]:
    before = n_consts + n_carry
    steps = _Steps(f, jaxpr, operands[:n_consts], operands[before:], n_carry, length if reverse else None)
    carry, stacked = operands[n_consts:before], outs[n_carry:]
    if unroll >= length:
        return steps.written_out(carry, length, stacked)
    return steps.looped(carry, length, max(unroll, 1), stacked)


class _Steps:
    """Emission of the steps of one scan; `end` is the length of a reverse one, else None."""

    def __init__(
        self, f: Function, jaxpr: Jaxpr, consts: Sequence[Value], xs: Sequence[Value], n_carry: int, end: int | None
    ) -> None:
        self._f, self._jaxpr, self._consts, self._xs = f, jaxpr, consts, xs
        self._n_carry, self._end = n_carry, end

    def written_out(self, carry: Sequence[Value], length: int, outs: Sequence[ShapedArray]) -> list[Value]:
        """Emit all steps one after another, without a loop (unrolled)."""
        rows: list[Sequence[Value]] = []
        for i in range(length):
            k = i if self._end is None else length - 1 - i
            carry, ys = self._step(carry, [_element(self._f, x, k) for x in self._xs])
            rows.append(ys)
        in_order = rows if self._end is None else rows[::-1]
        return [*carry, *[_stacked(self._f, [ys[j] for ys in in_order], out) for j, out in enumerate(outs)]]

    def looped(self, carry: Sequence[Value], length: int, unroll: int, outs: Sequence[ShapedArray]) -> list[Value]:
        """Emit a loop that takes `unroll` steps at once, and the remaining steps behind it."""
        f = self._f
        counter = ShapedArray((), np.dtype(np.int32 if length <= np.iinfo(np.int32).max else np.int64))
        in_loop = length - length % unroll

        def more(i: Value, *_: Value) -> list[Value]:
            return [f.compare(i, f.constant(in_loop, counter), "LT")]

        def body(i: Value, *state: Value) -> list[Value]:
            for k in range(unroll):
                state = self._at(_plus(f, i, k), state)
            return [_plus(f, i, unroll), *state]

        buffers = [f.constant(0, out) for out in outs]
        state = tuple(_loop(f, [f.constant(0, counter), *carry, *buffers], more, body)[1:])
        for k in range(in_loop, length):
            state = self._at(f.constant(k, counter), state)
        return list(state)

    def _at(self, i: Value, state: Sequence[Value]) -> tuple[Value, ...]:
        """Emit step `i` on the carry and the buffers of results; return both after it."""
        f, n = self._f, self._n_carry
        if self._end is not None:
            i = f.op("subtract", [f.constant(self._end - 1, i.aval), i], i.aval)
        carry, ys = self._step(state[:n], [_element_at(f, x, i) for x in self._xs])
        return (*carry, *[_updated(f, buffer, y, i) for buffer, y in zip(state[n:], ys, strict=True)])

    def _step(self, carry: Sequence[Value], elements: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        results = list(emit.apply(self._f, self._jaxpr, [*self._consts, *carry, *elements]))
        return results[: self._n_carry], results[self._n_carry :]


def _plus(f: Function, i: Value, k: int) -> Value:
    return f.op("add", [i, f.constant(k, i.aval)], i.aval) if k else i


def _element(f: Function, x: Value, k: int) -> Value:
    """Slice element k along axis 0."""
    rest = x.aval.shape[1:]
    row = f.slice(x, (k, *[0] * len(rest)), (k + 1, *rest))
    return f.op("reshape", [row], x.aval.update(shape=rest))


def _element_at(f: Function, x: Value, i: Value) -> Value:
    """Slice element i along axis 0."""
    sizes = (1, *x.aval.shape[1:])
    row = f.op("dynamic_slice", [x, *_start(f, x, i)], x.aval.update(shape=sizes), f"slice_sizes = {hlo.array(sizes)}")
    return f.op("reshape", [row], x.aval.update(shape=sizes[1:]))


def _updated(f: Function, buffer: Value, y: Value, i: Value) -> Value:
    """Replace element i along axis 0 of a buffer."""
    return f.op("dynamic_update_slice", [buffer, _row(f, y), *_start(f, buffer, i)], buffer.aval)


def _start(f: Function, x: Value, i: Value) -> list[Value]:
    return [i, *[f.constant(0, i.aval)] * (x.aval.ndim - 1)]


def _stacked(f: Function, ys: Sequence[Value], out: ShapedArray) -> Value:
    if not ys:
        return f.constant(0, out)
    rows = [_row(f, y) for y in ys]
    return rows[0] if len(rows) == 1 else f.op("concatenate", rows, out, "dimension = 0 : i64")


def _row(f: Function, y: Value) -> Value:
    return f.op("reshape", [y], y.aval.update(shape=(1, *y.aval.shape)))


emit.rules[c.cond_p] = _cond
emit.rules[c.while_p] = _while

# ---- eager mode ----------------------------------------------------------------------------------------------


def _run_cond(index: Any, *operands: Any, branches: tuple[Jaxpr, ...]) -> Any:
    """Run the selected branch, and no other."""
    c.cond_p.type((aval_of(index), *map(aval_of, operands)), {"branches": branches})
    outs = dispatch.run(branches[min(max(int(index), 0), len(branches) - 1)], operands, "'cond'")
    if dispatch.are_watched():
        dispatch.check_finite(c.cond_p, outs, operands)
    return outs


def _run_while(*operands: Any, body: Jaxpr, **params: Any) -> Any:
    outs = dispatch.apply(c.while_p, operands, {"body": body, **params}, body)
    if dispatch.are_watched() and dispatch.nonfinite_in(outs):
        _step_through_while(operands, body=body, **params)
        dispatch.check_finite(c.while_p, outs, operands)
    return outs


def _run_scan(*operands: Any, jaxpr: Jaxpr, **params: Any) -> Any:
    outs = dispatch.apply(c.scan_p, operands, {"jaxpr": jaxpr, **params}, jaxpr)
    if dispatch.are_watched() and dispatch.nonfinite_in(outs):
        _step_through_scan(operands, jaxpr, **params)
        dispatch.check_finite(c.scan_p, outs, operands)  # the body gives constants
    return outs


def _step_through_while(operands: Any, condition: Jaxpr, body: Jaxpr, n_condition: int, n_body: int, **_: Any) -> None:
    """Run the loop again, an equation at a time, to raise at the one that gives the first nan."""
    before = n_condition + n_body
    of_condition, of_body, carry = operands[:n_condition], operands[n_condition:before], operands[before:]
    while eval_jaxpr(condition, [*of_condition, *carry])[0]:
        carry = eval_jaxpr(body, [*of_body, *carry])


def _step_through_scan(
    operands: Any, jaxpr: Jaxpr, n_consts: int, n_carry: int, length: int, reverse: bool, unroll: int
) -> None:
    consts, carry = operands[:n_consts], operands[n_consts : n_consts + n_carry]
    xs = [np.asarray(x) for x in operands[n_consts + n_carry :]]
    for k in range(length)[:: -1 if reverse else 1]:
        carry = eval_jaxpr(jaxpr, [*consts, *carry, *[x[k] for x in xs]])[:n_carry]


dispatch.inline[c.cond_p] = _run_cond
dispatch.inline[c.while_p] = _run_while


def enter_loop(primitive: Primitive) -> None:
    """Enter the rules of a primitive that describes one body and a known number of steps: those of such a scan."""

    def emitted(f: Function, outs: Any, *operands: Value, **params: Any) -> Sequence[Value]:
        return _scan(f, outs, *operands, **c.as_scan_params(primitive, params))

    def run(*operands: Any, **params: Any) -> Any:
        primitive.type(tuple(map(aval_of, operands)), params)  # its own checks, and its name in their errors
        return _run_scan(*operands, **c.as_scan_params(primitive, params))

    emit.rules[primitive] = emitted
    dispatch.inline[primitive] = run


enter_loop(c.scan_p)

# ---- the platform --------------------------------------------------------------------------------------------
# A constant, as the platform is known here.

_NAMES = {"gpu": "cuda"}  # the only kind of GPU there is a plugin of


def _platform_index(f: Function, outs: Any, *, platforms: Platforms) -> Any:
    name = _NAMES.get(f.platform, f.platform)
    for i, group in enumerate(platforms):
        if group is None or name in group:
            return (f.constant(i, outs[0]),)
    known = ", ".join(p for group in platforms for p in group or ())
    raise NotImplementedError(
        f"platform_dependent: there is no function for {name}, only for {known}.\n  Add {name}=, or default=."
    )


emit.rules[platform_index_p] = _platform_index
