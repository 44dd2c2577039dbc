"""Convolutions by their patches: the elements under a kernel, and kernels that differ from place to place."""

import math
from collections.abc import Sequence
from typing import Any

from tapeless.batch.user_reductions import all_windows
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.primitives.contraction import (
    Precision,
    canonical_precision,
    check_padding,
    dot_general,
)
from tapeless.tracer.primitives.dimension_numbers import conv_dimension_numbers
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.shape import reshape
from tapeless.tracer.primitives.windows import window_params
from tapeless.tracer.types import aval_of

Padding = str | Sequence[tuple[int, int]]


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Precision | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """Collect the elements under a kernel, for each of its places.

    Args:
      lhs: batch n, features c, and space, in the order of dimension_numbers.
      filter_shape: the kernel's sizes in space, in the order of the kernel's word of dimension_numbers.
      others: as for `conv_general_dilated`.
    Returns: batch n, features c * size of the kernel, of which the kernel's indices run faster, and space.
    Raises: ValueError if sizes do not fit, for dimension numbers that are no such, or "SAME" with `lhs_dilation`.
    """
    aval, sizes = aval_of(lhs), tuple(filter_shape)
    numbers = conv_dimension_numbers(aval.shape, (1, 1, *sizes), dimension_numbers)
    canonical_precision(precision)  # which is checked; elements that are moved are exact in any
    check_padding("conv_general_dilated_patches", padding, tuple(lhs_dilation or (1,)))
    image = tnp.transpose(lhs, numbers.lhs_spec)
    pairs = padding if isinstance(padding, str) else [(0, 0), (0, 0), *padding]
    per_axis = [None if x is None else (1, 1, *x) for x in (window_strides, lhs_dilation, rhs_dilation)]
    strides, base, gaps = per_axis
    params = window_params("conv_general_dilated_patches", image.shape, (1, 1, *sizes), strides, pairs, base, gaps)
    found, n = all_windows(image, 0, **params), image.ndim
    batch, features, *space = found.shape[:n]
    in_order = tnp.transpose(found, (0, 1, *range(n, 2 * n), *range(2, n)))
    patches = reshape(in_order, (batch, features * math.prod(sizes), *space))
    out = tnp.moveaxis(patches, range(n), numbers.out_spec)
    return out if preferred_element_type is None else convert_element_type(out, preferred_element_type)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Convolve with a kernel of its own at each place.

    Args:
      lhs: batch n, features c, and space, in the order of dimension_numbers.
      rhs: features o, features c * size of the kernel, as of `conv_general_dilated_patches`, and the result's space.
      filter_shape: the kernel's sizes in space, in the order of the kernel's word of dimension_numbers.
      others: as for `conv_general_dilated`.
    Returns: batch n, features o, and space.
    Raises: TypeError if dtypes differ; ValueError if sizes do not fit.
    """
    numbers = conv_dimension_numbers(aval_of(lhs).shape, (1, 1, *filter_shape), dimension_numbers)
    first = None if precision is None else canonical_precision(precision)[0]
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers, first
    )
    _, (_, features, *kernel_space), (batch, channel, *space) = numbers
    places = sorted(zip(space, kernel_space))
    axes = ((channel,), (features,)), ([i for i, _ in places], [j for _, j in places])
    found = dot_general(patches, rhs, axes, precision)
    return tnp.moveaxis(found, (-2, -1), (batch, channel))
