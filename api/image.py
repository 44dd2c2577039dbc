"""Resampling of images under the names of `jax.image`: `tapeless.image`.

An axis is resampled by a matrix of weights: a kernel at the distances between the positions of old and new elements;
if the axis gets smaller, the kernel is widened (antialiasing). Element i is in the middle of [i, i + 1].
Source: Mitchell & Netravali 1988, "Reconstruction filters in computer graphics"; Keys 1981, "Cubic convolution
interpolation for digital image processing".
"""

import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import array_operand, inexact
from tapeless.tracer.primitives.contraction import Precision

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The interpolation kernel between the elements of an image."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """Return the method of a name. Raises: ValueError if there is none."""
        if s not in _NAMES:
            raise ValueError(f"resize: method must be one of {', '.join(_NAMES)}, not {s!r}.")
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


@one_program
def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Resample an image to another shape.

    Args:
      image: of any numeric dtype.
      shape: of the result, with as many axes as the image.
      method: "nearest"; "linear"; "cubic" by Keys' kernel; "lanczos3", "lanczos5"; "area", the mean over the area of a
        new element; "cubic-pytorch", which without antialiasing repeats the elements at edges; or a ResizeMethod.
      antialias: widen the kernel if an axis gets smaller.
      precision: of the products with matrices of weights, as for `lax.dot_general`.
    Returns: an array of this shape; floating point or complex, or of the dtype of the image if the method is "nearest".
    Raises: ValueError if the numbers of axes differ, a size is negative, or there is no such method.
    """
    x = array_operand("resize", image)
    sizes = _checked_shape("resize", x, shape)
    how = ResizeMethod.from_string(method) if isinstance(method, str) else method
    changed = [d for d in range(x.ndim) if x.shape[d] != sizes[d]]
    if how == ResizeMethod.NEAREST:
        for d in changed:
            places = (2 * np.arange(sizes[d]) + 1) * x.shape[d] // (2 * sizes[d] or 1)
            x = tnp.take(x, places, axis=d)
        return x
    scale = [sizes[d] / x.shape[d] if sizes[d] and x.shape[d] else 1.0 for d in changed]
    return _resampled(inexact("resize", x), sizes, changed, scale, [0.0] * len(changed), how, antialias, precision)


@one_program
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Scale an image, then translate it; outside of it elements are 0.

    Args:
      image: of any numeric dtype.
      shape: of the result, with as many axes as the image; its sizes in the axes that are not resampled.
      spatial_dims: the k axes that are resampled.
      scale, translation: [k], for each of these axes; they may be traced, and have derivatives.
      method, antialias, precision: as for `resize`.
    Returns: an array of this shape, floating point or complex.
    Raises: ValueError if the numbers of axes or of scales differ, for method "nearest", or as `resize`; TypeError for
      complex scales.
    """
    x = inexact("scale_and_translate", array_operand("scale_and_translate", image))
    sizes = _checked_shape("scale_and_translate", x, shape)
    how = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if how == ResizeMethod.NEAREST:
        raise ValueError("scale_and_translate: method 'nearest' is there for resize only.")
    dims = [operator.index(d) % x.ndim if -x.ndim <= d < x.ndim else -1 for d in spatial_dims]
    factors, shifts = (array_operand("scale_and_translate", inexact("scale", v)) for v in (scale, translation))
    if -1 in dims or len(set(dims)) < len(dims) or factors.shape != (len(dims),) or shifts.shape != (len(dims),):
        raise ValueError(
            f"scale_and_translate: scale and translation must have one number for each of the axes "
            f"{tuple(spatial_dims)} of {x.aval}: {factors.aval} and {shifts.aval}."
        )
    if dtypes.is_complex(factors.dtype) or dtypes.is_complex(shifts.dtype):
        raise TypeError(f"scale_and_translate: real numbers, not {factors.aval} and {shifts.aval}.")
    if any(x.shape[d] != sizes[d] for d in range(x.ndim) if d not in dims):
        raise ValueError(f"scale_and_translate: axes that are not resampled keep their size: {x.aval} to {sizes}.")
    each = range(len(dims))
    return _resampled(x, sizes, dims, [factors[i] for i in each], [shifts[i] for i in each], how, antialias, precision)


def _checked_shape(name: str, x: Array, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(map(operator.index, shape))
    if len(sizes) != x.ndim or any(n < 0 for n in sizes):
        raise ValueError(f"{name}: shape must have {x.ndim} sizes, of axes of {x.aval}, not {sizes}.")
    return sizes


def _resampled(
    x: Any,
    shape: tuple[int, ...],
    dims: Sequence[int],
    scale: Sequence[Any],
    translation: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Array:
    real = dtypes.real_part_dtype(x.dtype)
    dtype = real if dtypes.bits_of(real) >= 32 else np.dtype(np.float32)
    for d, s, t in zip(dims, scale, translation, strict=True):
        s, t = (tnp.asarray(v, dtype) for v in (s, t))
        weights = _weights(x.shape[d], shape[d], s, t, method, antialias).astype(x.dtype)
        x = tnp.moveaxis(tnp.tensordot(x, weights, (d, 0), precision=precision), -1, d)
    return x


def _weights(m: int, n: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool) -> Any:
    """Compute the weight of each of m elements in each of n new ones, [m, n]; columns sum to 1, or are 0 outside."""
    inverse = 1 / scale
    centers = (np.arange(n) + 0.5).astype(scale.dtype) * inverse - translation * inverse - 0.5
    repeats_edges = method == ResizeMethod.CUBIC_PYTORCH and not antialias
    margin = 2 if repeats_edges else 0
    places = np.arange(-margin, m + margin)[:, None].astype(scale.dtype)
    if method == ResizeMethod.AREA:
        left = np.arange(n).astype(scale.dtype) * inverse - translation * inverse
        found = tnp.maximum(0, tnp.minimum(left + inverse, places + 1) - tnp.maximum(left, places))
    else:
        width = tnp.maximum(inverse, 1) if antialias else 1
        kernel = _KERNELS[ResizeMethod.CUBIC if antialias and method == ResizeMethod.CUBIC_PYTORCH else method]
        found = kernel(tnp.abs(centers - places) / width)
    if repeats_edges:
        found = _edges_repeated(found, m, margin)
    total = tnp.sum(found, axis=0, keepdims=True)
    there = tnp.abs(total) > 1000 * float(np.finfo(np.float32).eps)
    found = tnp.where(there, found / tnp.where(there, total, 1), 0)
    return found if repeats_edges else tnp.where((centers >= -0.5) & (centers <= m - 0.5), found, 0)


def _edges_repeated(found: Any, m: int, margin: int) -> Any:
    """Add the weights of positions outside to those of the edges."""
    if m < 2:
        return tnp.sum(found, axis=0, keepdims=True)[:m]
    first, last = (tnp.sum(part, axis=0, keepdims=True) for part in (found[: margin + 1], found[m + margin - 1 :]))
    return tnp.concatenate([first, found[margin + 1 : m + margin - 1], last])


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: tnp.where(x > radius, 0, tnp.sinc(x) * tnp.sinc(x / radius))


def _cubic(a: float) -> Callable[[Any], Any]:
    """Make the cubic kernel with slope a at 1. Source: Keys 1981, equation 4 and what follows it."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return tnp.where(x < 1, near, tnp.where(x < 2, far, 0))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: lambda x: tnp.maximum(0, 1 - x),
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _cubic(-0.75),
}


_complete_namespace(globals())
