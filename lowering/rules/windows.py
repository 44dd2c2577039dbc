"""Lowering of reductions over windows (pooling): StableHLO's reduce_window and select_and_scatter."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.lowering import emit, hlo
from tapeless.lowering.emit import in_float32, in_unsigned
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.reduction import (
    MAX,
    MIN,
    PROD,
    SUM,
    Operation,
    highest,
    lowest,
    window_attributes,
)
from tapeless.tracer.primitives import windows as w


def _windowed(combine: Operation, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(
        f: Function,
        outs: Any,
        x: Value,
        *,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...],
        padding: w.Padding,
        base_dilation: tuple[int, ...],
        window_dilation: tuple[int, ...],
    ) -> Any:
        scalar, out = x.aval.update(shape=()), outs[0]
        x, padding = _cut(f, x, padding, base_dilation)
        dims = [*zip(window_dimensions, window_strides, padding, base_dilation, window_dilation)]
        if _may_pass_for_a_broadcast(x.aval.shape, window_dimensions, window_strides, padding):
            dims.append((1, 2, (0, 0), 1, 1))
            out = out.update(shape=(*out.shape, 1))
            x = f.op("reshape", [x], x.aval.update(shape=(*x.aval.shape, 1)))
        window, strides, pads, of_base, of_window = zip(*dims) if dims else ((),) * 5
        attributes = (
            f"{window_attributes(window, strides, pads)}, "
            f"base_dilations = {hlo.array(of_base)}, window_dilations = {hlo.array(of_window)}"
        )
        region = f.combination(combine, scalar)
        found = f.op("reduce_window", [x, f.constant(initial(scalar.dtype), scalar)], out, attributes, region)
        return (found if out.shape == outs[0].shape else f.op("reshape", [found], outs[0]),)

    return rule


def _may_pass_for_a_broadcast(
    shape: Sequence[int], window: Sequence[int], strides: Sequence[int], padding: w.Padding
) -> bool:
    """Tell whether XLA could take the window for a broadcast of the one element in the middle of a padded axis.

    It ignores the window's own padding then, but never does so if there are strides (docs/xla_defects.md,
    `window_over_one_padded_element`): one more axis, with a stride that has no effect, prevents this.
    """
    if any(n != 1 for n in strides) or not any(map(any, padding)):
        return False
    return any(n % 2 == 1 and n > 1 and size > n // 2 for n, size in zip(shape, window))


def _cut(f: Function, x: Value, padding: w.Padding, dilation: tuple[int, ...]) -> tuple[Value, w.Padding]:
    """Slice off the elements that negative padding removes; return x and the remaining padding.

    XLA's algebraic simplifier ends the process at windows of one element with negative padding (jaxlib 0.10.2).
    """
    pairs = [_cuts(n, pair) if d == 1 else (0, 0) for n, pair, d in zip(x.aval.shape, padding, dilation)]
    if not any(map(any, pairs)):
        return x, padding
    before, after = zip(*pairs)
    rest = f.slice(x, before, [n - k for n, k in zip(x.aval.shape, after)])
    return rest, tuple((lo + a, hi + b) for (lo, hi), (a, b) in zip(padding, pairs))


def _cuts(n: int, pair: tuple[int, int]) -> tuple[int, int]:
    """Count the elements that negative padding cuts off at both ends of an axis of n elements."""
    before, after = max(-pair[0], 0), max(-pair[1], 0)
    return (before, after) if before + after <= n else (0, 0)


emit.rules[w.reduce_window_sum_p] = in_float32(_windowed(*SUM))
emit.rules[w.reduce_window_prod_p] = in_unsigned(in_float32(_windowed(*PROD)))
emit.rules[w.reduce_window_max_p] = _windowed(*MAX)
emit.rules[w.reduce_window_min_p] = _windowed(*MIN)


def _select_and_gather_add(
    f: Function,
    outs: Any,
    tangents: Value,
    x: Value,
    *,
    select: str,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: w.Padding,
) -> Any:
    """Emit one windowed reduction over pairs of operand and tangent, keeping the pair whose operand wins."""
    scalar = x.aval.strong().update(shape=())

    def winner(a: Value, u: Value, b: Value, v: Value) -> list[Value]:
        first = f.compare(a, b, select.upper())
        return [f.op("select", [first, a, b], scalar), f.op("select", [first, u, v], scalar)]

    worst = lowest(scalar.dtype) if select == "ge" else highest(scalar.dtype)
    initial = [f.constant(worst, scalar), f.constant(0, scalar)]
    region = f.block([scalar] * 4, winner)
    attributes = window_attributes(window_dimensions, window_strides, padding)
    return f.ops("reduce_window", [x, tangents, *initial], [outs[0], outs[0]], attributes, region)[1:]


def _select_and_scatter_add(
    f: Function,
    outs: Any,
    source: Value,
    x: Value,
    *,
    select: str,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: w.Padding,
) -> Any:
    if not x.aval.shape:  # one window of one element, at which XLA ends the process, too
        return (source,)
    if not source.aval.size:  # XLA ends the process at windows that are longer than their operand
        return (f.constant(0, outs[0]),)
    scalar = x.aval.strong().update(shape=())
    chosen = f.block([scalar, scalar], lambda a, b: [f.compare(a, b, select.upper())])
    added = f.block([scalar, scalar], lambda a, b: [f.op("add", [a, b], scalar)])
    attributes = window_attributes(window_dimensions, window_strides, padding)
    operands = [x, source, f.constant(0, scalar)]
    return (f.op("select_and_scatter", operands, outs[0], attributes, f"{chosen}, {added}"),)


emit.rules[w.select_and_gather_add_p] = _select_and_gather_add
emit.rules[w.select_and_scatter_add_p] = in_float32(_select_and_scatter_add)
