"""How reductions run: StableHLO's reduce with the operation in its region."""

from collections.abc import Callable, Sequence
from typing import Any

from tapeless.lowering import emit, hlo
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import reduction as r
from tapeless.tracer.types import ShapedArray


def reduce(f: Function, x: Value, operation: str, initial: Any, axes: Sequence[int], out: ShapedArray) -> Value:
    """x reduced over `axes` by an operation of StableHLO, from `initial`."""
    scalar = x.aval.update(shape=())
    region = f.block([scalar, scalar], lambda a, b: [f.op(operation, [a, b], scalar)])
    return f.op("reduce", [x, f.constant(initial, scalar)], out, f"dimensions = {hlo.array(axes)}", region)


def _reduction(operation: str, initial: Callable[[Any], Any]) -> Callable[..., Any]:
    def rule(f: Function, outs: Any, x: Value, *, axes: tuple[int, ...]) -> Any:
        return (reduce(f, x, operation, initial(x.aval.dtype), axes, outs[0]),)

    return rule


emit.rules[r.reduce_sum_p] = _reduction("add", lambda dtype: 0)
