"""Products of matrices in numbers of 4 or 8 bits, of which each block along the rows has a scale.

Source: OCP Microscaling Formats (MX) Specification 1.0, for mxfp8; NVIDIA's nvfp4 has blocks of 16 numbers of 4 bits,
scales of 8 bits and one scale more for the whole. They are computed by definition, in float32, on every platform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tapeless.custom.vjp import custom_vjp
from tapeless.lax.scaled_contraction import repeat_scale
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.primitives.bits import bitcast_convert_type
from tapeless.tracer.primitives.contraction import batch_matmul, dot_general
from tapeless.tracer.primitives.operands import canonical_axes, without
from tapeless.tracer.types import ShapedArray, aval_of

# ---- of numbers that are scaled ------------------------------------------------------------------------------


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: Any = np.float32,
) -> Array:
    """Multiply batches of matrices whose rows have a scale for each block: (lhs * scales) @ (rhs * scales)^T.

    Args:
      lhs: [b, m, k], usually of 4 or 8 bits.
      rhs: [b, n, k].
      lhs_scales: [b, m, s], of blocks of k / s elements.
      rhs_scales: [b, n, s].
      preferred_element_type: dtype of the result; sums are of float32.
    Returns: [b, m, n].
    Raises: ValueError naming the shapes if they do not fit.

    >>> import tapeless.numpy as tnp
    >>> a, b = tnp.array([[[1.0, 2, 3]]]), tnp.array([[[4.0, 5, 6]]])
    >>> scaled_matmul(a, b, tnp.array([[[0.5]]]), tnp.array([[[0.5]]]))
    Array([[[8.]]], dtype=float32)
    """
    avals = [aval_of(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    _check_shapes(*avals)
    wide = [tnp.asarray(x).astype(np.float32) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    left, right = (x * repeat_scale(scales, x.shape) for x, scales in zip(wide[:2], wide[2:], strict=True))
    found = dot_general(left, right, (((2,), (2,)), ((0,), (0,))), "highest")
    return found.astype(dtypes.canonical(preferred_element_type))


def _check_shapes(a: ShapedArray, b: ShapedArray, a_scales: ShapedArray, b_scales: ShapedArray) -> None:
    given = f"{a} and {b}, scales {a_scales} and {b_scales}"
    if {x.ndim for x in (a, b, a_scales, b_scales)} != {3}:
        raise ValueError(f"scaled_matmul: all operands must have 3 axes: {given}.")
    fits = len({x.shape[0] for x in (a, b, a_scales, b_scales)}) == 1 and a.shape[2] == b.shape[2]
    rows = (a.shape[1], b.shape[1]) == (a_scales.shape[1], b_scales.shape[1])
    blocks = a_scales.shape[2]
    if not (fits and rows and blocks == b_scales.shape[2] and blocks and a.shape[2] % blocks == 0):
        raise ValueError(f"scaled_matmul: it takes [b, m, k] and [b, n, k], scales [b, m, s] and [b, n, s]: {given}.")


# ---- of numbers that are to be scaled ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """Configuration of an operand that is quantized: blocks of numbers of `data_type`, scales of `scale_type`.

    global_scale: a scale of the whole operand, float32[1], of mode "nvfp4"; None of "mxfp8". infer_only: unused.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """Make the configuration of an operand of `scaled_dot_general`.

    Args:
      mode: "mxfp8", blocks of 32 numbers float8_e4m3fn with scales float8_e8m0fnu, powers of 2; or "nvfp4", of 16
        numbers float4_e2m1fn with scales float8_e4m3fn.
      global_scale: float32[1], a scale of the whole operand, of "nvfp4" only; 1 if None.
    Raises: ValueError for another mode.
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False)
    if mode == "nvfp4":
        whole = tnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, whole, False)
    raise ValueError(f"get_scaled_dot_general_config: the mode is 'mxfp8' or 'nvfp4', not {mode!r}.")


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: None = None,
) -> Array:
    """Contract some axes of two arrays, batch others, in numbers of 4 or 8 bits to which they are quantized.

    The contracted axes are taken as one, in their order; its blocks are scaled. The derivative is that of
    the product, quantized like it: of "mxfp8" the cotangent and the other operand are quantized along the axes that are
    contracted then; of "nvfp4" neither is, and it is zero where an operand was beyond the greatest number. It has no
    forward mode.

    Args:
      lhs, rhs, dimension_numbers: as of `dot_general`, floating point.
      preferred_element_type: float32, bfloat16 or float16, the dtype of the result.
      configs: of lhs, of rhs and of cotangents, by `get_scaled_dot_general_config`; if None, it is `dot_general`.
      implementation: None.
    Returns: as of `dot_general`.
    Raises: TypeError for another dtype of the result; ValueError if an axis is not a multiple of the size of blocks;
      NotImplementedError for an implementation.
    """
    if implementation is not None:
        raise NotImplementedError(f"scaled_dot_general: implementation={implementation!r} is not supported, only None.")
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    dtype = dtypes.canonical(preferred_element_type)
    if dtype not in _RESULTS:
        raise TypeError(f"scaled_dot_general: the result is of {', '.join(map(str, _RESULTS))}, not of {dtype}.")
    x, y = tnp.asarray(lhs), tnp.asarray(rhs)
    (cx, cy), (bx, by) = dimension_numbers
    left, right = _rows(x, cx, bx), _rows(y, cy, by)
    of_left, of_right = _scales(configs)
    found = _product(left, right, of_left, of_right, _Modes(configs[0], configs[1], configs[2], dtype))
    batch = [x.shape[d] for d in canonical_axes(bx, x.ndim)]
    return found.reshape(*batch, *_kept(x, cx, bx), *_kept(y, cy, by))


_RESULTS = tuple(map(np.dtype, (np.float32, ml_dtypes.bfloat16, np.float16)))


def _rows(x: Any, contracted: Any, batch: Any) -> Any:
    """Reshape x to [b, m, k]: axes of the batch, others, and those that are contracted."""
    c, b = canonical_axes(contracted, x.ndim), canonical_axes(batch, x.ndim)
    others = without(range(x.ndim), (*c, *b))
    n, m, k = (int(np.prod([x.shape[d] for d in axes])) for axes in (b, others, c))
    return tnp.transpose(x, (*b, *others, *c)).reshape(n, m, k)


def _kept(x: Any, contracted: Any, batch: Any) -> tuple[int, ...]:
    return without(x.shape, (*canonical_axes(contracted, x.ndim), *canonical_axes(batch, x.ndim)))


def _scales(configs: Sequence[BlockScaleConfig]) -> list[Any]:
    """Return the scales of the whole operands."""
    return [1.0 if c.global_scale is None else tnp.asarray(c.global_scale) for c in configs[:2]]


@dataclass(frozen=True, eq=False)
class _Modes:
    """Configurations of lhs, rhs and cotangents, and the dtype of the result."""

    lhs: BlockScaleConfig
    rhs: BlockScaleConfig
    cotangents: BlockScaleConfig
    dtype: Any


def _multiplied(x: Any, y: Any, scale_x: Any, scale_y: Any, how: _Modes) -> Any:
    """Multiply x [b, m, k] by y [b, n, k], quantized along k."""
    left, right = _quantized(x, how.lhs, scale_x), _quantized(y, how.rhs, scale_y)
    found = scaled_matmul(left[0], right[0], left[1], right[1])
    return (found * (scale_x * scale_y)).astype(how.dtype)


_product = custom_vjp(_multiplied, nondiff_argnums=(4,))


def _product_fwd(x: Any, y: Any, scale_x: Any, scale_y: Any, how: _Modes) -> Any:
    return _multiplied(x, y, scale_x, scale_y, how), (x, y, scale_x, scale_y)


def _product_bwd(how: _Modes, saved: Any, ct: Any) -> Any:
    x, y, scale_x, scale_y = saved
    turned = tnp.matrix_transpose(ct)
    to_x = _pulled(ct, tnp.matrix_transpose(y), how.cotangents, how.rhs, scale_y)
    to_y = _pulled(turned, tnp.matrix_transpose(x), how.cotangents, how.lhs, scale_x)
    if how.cotangents.mode == "nvfp4":
        to_x, to_y = _where_not_clipped(x, to_x, how.lhs, scale_x), _where_not_clipped(y, to_y, how.rhs, scale_y)
    return to_x.astype(x.dtype), to_y.astype(y.dtype), tnp.zeros_like(scale_x), tnp.zeros_like(scale_y)


_product.defvjp(_product_fwd, _product_bwd, check_linear=False)  # cotangents are quantized, too


def _pulled(ct: Any, other: Any, of_ct: BlockScaleConfig, of_other: BlockScaleConfig, scale: Any) -> Any:
    """Multiply ct [b, m, n] by the other operand [b, k, n]."""
    if of_ct.mode == "nvfp4":
        return batch_matmul(ct.astype(np.float32), tnp.matrix_transpose(other).astype(np.float32), "highest")
    (p, of_p), (q, of_q) = _quantized(ct, of_ct, 1.0), _quantized(other, of_other, scale)
    return scaled_matmul(p, q, of_p, of_q)


def _where_not_clipped(x: Any, ct: Any, config: BlockScaleConfig, scale: Any) -> Any:
    most = scale * float(ml_dtypes.finfo(config.data_type).max) * float(ml_dtypes.finfo(config.scale_type).max)
    return tnp.where(tnp.abs(x) <= most, ct, 0)


# ---- quantization --------------------------------------------------------------------------------------------


def _quantized(x: Any, config: BlockScaleConfig, whole: Any) -> tuple[Any, Any]:
    """Quantize to few bits [b, m, k] with scales [b, m, s]. Raises: ValueError unless k is a multiple of blocks."""
    b, m, k = x.shape
    size = config.block_size
    if k == 0 or k % size:
        raise ValueError(f"scaled_dot_general: {config.mode} has blocks of {size}, the axes contracted {k} elements.")
    blocks = x.astype(np.float32).reshape(b, m, k // size, size) / whole
    most = float(ml_dtypes.finfo(config.data_type).max)
    wanted = tnp.max(tnp.abs(blocks), axis=-1) / most
    if config.mode == "mxfp8":
        scales = _powers_above(wanted)
    else:
        scales = tnp.clip(wanted, 0, float(ml_dtypes.finfo(config.scale_type).max)).astype(config.scale_type)
    divisors = scales.astype(np.float32)[..., None]
    scaled = tnp.where(divisors == 0, 0, blocks / tnp.where(divisors == 0, 1, divisors))
    return tnp.clip(scaled, -most, most).astype(config.data_type).reshape(b, m, k), scales


def _powers_above(x: Any) -> Any:
    """Find the least powers of 2 not less than x, as float8_e8m0fnu, whose bits are the exponent of float32."""
    bits = bitcast_convert_type(x, np.uint32)
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    tiny = (exponent == 0) & (mantissa <= 0x400000)
    up = (mantissa > 0) & (exponent != 0xFE) & ~tiny
    return bitcast_convert_type((exponent + up.astype(np.uint32)).astype(np.uint8), ml_dtypes.float8_e8m0fnu)
