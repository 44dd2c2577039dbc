"""Gradient transformations that bound gradients: element by element, by norms of arrays, by the norm of all."""

from typing import Any

from tapeless.optimizers.moments import global_norm, squared_modulus
from tapeless.optimizers.transformation import (
    GradientTransformation,
    Params,
    Updates,
    check_params,
    map_updates,
    stateless,
)
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike


def clip(max_delta: ArrayLike) -> GradientTransformation:
    """Limit every element of the updates to the range from -max_delta to max_delta."""
    largest: Any = max_delta
    return stateless(lambda updates, params: map_updates(lambda g: tnp.clip(g, -largest, largest), updates))


def clip_by_global_norm(max_norm: ArrayLike) -> GradientTransformation:
    """Scale all updates together so that the norm of all their elements is at most `max_norm`.

    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks".
    """

    def clipped(updates: Updates, params: Params | None) -> Updates:
        norm = global_norm(updates)
        return map_updates(lambda g: tnp.where(norm < max_norm, g, g / norm.astype(g.dtype) * max_norm), updates)

    return stateless(clipped)


def clip_by_block_rms(threshold: ArrayLike) -> GradientTransformation:
    """Scale each array of the updates so that the square root of the mean of its squares is at most `threshold`."""

    def clipped(g: Any) -> Array:
        return g / tnp.maximum(1.0, tnp.sqrt(squared_modulus(g).mean()) / threshold)

    return stateless(lambda updates, params: map_updates(clipped, updates))


def adaptive_grad_clip(
    clipping: ArrayLike, eps: ArrayLike = 1e-3, axis: int | tuple[int, ...] | None = None
) -> GradientTransformation:
    """Scale the gradient of each unit so that its norm is at most `clipping` times that of its parameters.

    Args:
      clipping: the greatest ratio of the norms.
      eps: the least norm that parameters count with.
      axis: axes of a unit; if None, all of vectors, the first of arrays of 2 or 3 axes, all but the last of 4 or 5.
    Raises: ValueError if `update` is not given the parameters, or an array has more than 5 axes and `axis` is None.
    Source: Brock et al. 2021, "High-performance large-scale image recognition without normalization".
    """

    def clipped(g: Any, p: Any) -> Array:
        norm, most = _unit_norm(g, axis), clipping * tnp.maximum(_unit_norm(p, axis), eps)
        return tnp.where(norm < most, g, g * (most / tnp.maximum(norm, 1e-6)))

    return stateless(lambda updates, params: map_updates(clipped, updates, check_params("adaptive_grad_clip", params)))


def _unit_norm(x: Any, axis: int | tuple[int, ...] | None) -> Array:
    """Compute norms of the units of an array, which broadcast with it."""
    x = tnp.asarray(x)
    return tnp.sqrt(squared_modulus(x).sum(axis=_unit_axes(x) if axis is None else axis, keepdims=True))


def _unit_axes(x: Array) -> tuple[int, ...]:
    if tnp.squeeze(x).ndim <= 1:
        return tuple(range(x.ndim))
    if x.ndim > 5:
        raise ValueError(
            f"adaptive_grad_clip: the axes of a unit of {x.aval} are not known, 5 being most. Name them: axis=."
        )
    return (0,) if x.ndim <= 3 else tuple(range(x.ndim - 1))
