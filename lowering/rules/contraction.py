"""How contractions run."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function, Value
from tapeless.tracer.primitives import contraction as c


def _dot_general(f: Function, outs: Any, x: Value, y: Value, *, dims: c.Dims, preferred_element_type: Any) -> Any:
    (cx, cy), (bx, by) = dims
    numbers = (
        f"lhs_batching_dimensions = {list(bx)}, rhs_batching_dimensions = {list(by)}, "
        f"lhs_contracting_dimensions = {list(cx)}, rhs_contracting_dimensions = {list(cy)}"
    )
    precision = "precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"
    return (f.op("dot_general", [x, y], outs[0], f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, {precision}"),)


emit.rules[c.dot_general_p] = _dot_general
