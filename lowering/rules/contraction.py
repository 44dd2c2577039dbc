"""Lowering of contractions: `dot_general` and `convolution` of StableHLO, one for one."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from tapeless.lowering import emit, hlo
from tapeless.lowering.composition import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.rules.reduction import padding_attribute
from tapeless.tracer import dtypes
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives import elementwise as e


def _dot_general(
    f: Function,
    outs: Any,
    x: Value,
    y: Value,
    *,
    dimension_numbers: c.Dims,
    precision: c.Precisions,
    preferred_element_type: Any,
) -> Any:
    return (f.op("dot_general", [x, y], outs[0], _dot_attributes(dimension_numbers, precision)),)


@lru_cache(maxsize=1024)
def _dot_attributes(dimension_numbers: c.Dims, precision: c.Precisions) -> str:
    (cx, cy), (bx, by) = dimension_numbers
    numbers = (
        f"lhs_batching_dimensions = {list(bx)}, rhs_batching_dimensions = {list(by)}, "
        f"lhs_contracting_dimensions = {list(cx)}, rhs_contracting_dimensions = {list(cy)}"
    )
    return f"dot_dimension_numbers = #stablehlo.dot<{numbers}>, {_precision(precision)}"


def _conv_general_dilated(f: Function, outs: Any, x: Value, y: Value, **params: Any) -> Any:
    """XLA has convolutions of integers and complex numbers on the CPU only."""
    if f.platform != "cpu" and dtypes.is_complex(outs[0].dtype):
        return write_out(f, partial(_complex_convolution, **params), [x, y])
    if f.platform != "cpu" and not dtypes.is_inexact(x.aval.dtype):
        raise NotImplementedError(
            f"conv_general_dilated: integers are convolved on the CPU only, and this program is for {f.platform}: "
            f"{x.aval} and {y.aval}.\n  Convert to floating point: float64 is exact below 2**53."
        )
    return _convolution(f, outs, x, y, **params)


def _complex_convolution(x: Any, y: Any, *, preferred_element_type: Any, **params: Any) -> Any:
    """(a + ib) * (p + iq) by four real convolutions."""
    dtype = None if preferred_element_type is None else dtypes.real_part_dtype(preferred_element_type)

    def convolved(u: Any, v: Any) -> Any:
        return c.conv_general_dilated_p.bind(u, v, preferred_element_type=dtype, **params)[0]

    (a, b), (p, q) = ((e.real(z), e.imag(z)) for z in (x, y))
    return e.complex(e.sub(convolved(a, p), convolved(b, q)), e.add(convolved(a, q), convolved(b, p)))


def _convolution(
    f: Function,
    outs: Any,
    x: Value,
    y: Value,
    *,
    window_strides: tuple[int, ...],
    padding: Any,
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: c.ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: c.Precisions,
    preferred_element_type: Any,
) -> Any:
    lhs, rhs, out = dimension_numbers
    numbers = f"{_axes('bf', lhs)}x{_axes('oi', rhs)}->{_axes('bf', out)}"
    attributes = ", ".join(
        [
            f"window_strides = {hlo.array(window_strides)}",
            f"padding = {padding_attribute(padding)}",
            f"lhs_dilation = {hlo.array(lhs_dilation)}",
            f"rhs_dilation = {hlo.array(rhs_dilation)}",
            f"dimension_numbers = #stablehlo.conv<{numbers}>",
            f"feature_group_count = {feature_group_count} : i64",
            f"batch_group_count = {batch_group_count} : i64",
            _precision(precision),
        ]
    )
    return (f.op("convolution", [x, y], outs[0], attributes),)


def _axes(heads: str, spec: Sequence[int]) -> str:
    """`[b, 0, 1, f]`: the meaning of each axis."""
    meanings = [*heads, *map(str, range(len(spec) - 2))]
    return f"[{', '.join(m for _, m in sorted(zip(spec, meanings)))}]"


def _precision(precision: c.Precisions) -> str:
    return f"precision_config = [{', '.join(f'#stablehlo<precision {p.name}>' for p in precision)}]"


emit.rules[c.dot_general_p] = _dot_general
emit.rules[c.conv_general_dilated_p] = _conv_general_dilated
