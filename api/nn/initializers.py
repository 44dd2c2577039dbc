"""Initializers of weights: the names of `jax.nn.initializers`.

`fan_in` and `fan_out` are the numbers of inputs and outputs that a unit is connected to, where weights have an axis of
inputs, one of outputs and perhaps others: the windows of convolutions. Sources: LeCun et al. 1998, "Efficient
BackProp"; Glorot & Bengio 2010; He et al. 2015; Saxe et al. 2014 (orthogonal); Xiao et al. 2018 (delta orthogonal).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from tapeless.random import orthogonal as random_orthogonal
from tapeless.random import samplers
from tapeless.tracer import dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.keys.prng_keys import shape_of_result, split
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.types import holds_keys

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

_Shape: TypeAlias = Sequence[int]


_Axes = int | Sequence[int]


class Initializer(Protocol):
    """A function that draws an array of a shape and dtype, the default float if None, from a PRNG key."""

    def __call__(self, key: Any, shape: _Shape, dtype: Any = None, out_sharding: None = None) -> Array:
        """Draw an array [*shape]. Raises: NotImplementedError for `out_sharding`."""
        raise NotImplementedError


# ---- constants and plain distributions -----------------------------------------------------------------------


def zeros(key: Any, shape: _Shape, dtype: DTypeLike | None = None, out_sharding: None = None) -> Array:
    """Make an array of zeros [*shape], of the default float if `dtype` is None; the key is not used."""
    return _drawn(lambda key, shape, dtype: tnp.zeros(shape, dtype), key, shape, dtype, out_sharding)


def ones(key: Any, shape: _Shape, dtype: DTypeLike | None = None, out_sharding: None = None) -> Array:
    """Make an array of ones [*shape], of the default float if `dtype` is None; the key is not used."""
    return _drawn(lambda key, shape, dtype: tnp.ones(shape, dtype), key, shape, dtype, out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that fills arrays with `value`, broadcast to them.

    Args:
      dtype: of the arrays if `init` is called without one, here and below; the default float if None.
    """
    return _initializer(lambda key, shape, dtype: tnp.full(shape, value, dtype), dtype)


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws uniformly from [0, scale)."""
    return _initializer(lambda key, shape, dtype: samplers.uniform(key, shape, dtype) * tnp.array(scale, dtype), dtype)


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws normal numbers of standard deviation `stddev`; complex ones for complex dtypes."""
    return _initializer(lambda key, shape, dtype: samplers.normal(key, shape, dtype) * tnp.array(stddev, dtype), dtype)


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Make an initializer that draws standard normal numbers between `lower` and `upper`, multiplied by `stddev`.

    Their standard deviation is less than `stddev`, since the tails are cut off.
    """

    def draw(key: Any, shape: _Shape, dtype: Any) -> Array:
        return samplers.truncated_normal(key, lower, upper, shape, dtype) * tnp.array(stddev, dtype)

    return _initializer(draw, dtype)


# ---- scaled by fan-in and fan-out ----------------------------------------------------------------------------


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: _Axes = -2,
    out_axis: _Axes = -1,
    batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Make an initializer whose variance is `scale` over the fan named by `mode`.

    Args:
      mode: "fan_in", "fan_out", or their mean, "fan_avg", or geometric mean, "fan_geo_avg".
      distribution: "truncated_normal" (within two standard deviations), "normal" or "uniform"; for complex dtypes the
        same on a disk.
      in_axis, out_axis: the axis, or axes, of inputs and outputs.
      batch_axis: axes of independent weights, which count neither as inputs nor as outputs.
      dtype: of the arrays if `init` is called without one; the default float if None.
    Raises: ValueError for another mode or distribution; from `init`, for fewer than two axes.
    """
    if mode not in _DENOMINATORS:
        raise ValueError(f"variance_scaling: mode must be one of {', '.join(map(repr, _DENOMINATORS))}, not {mode!r}.")
    if distribution not in _DISTRIBUTIONS:
        allowed = ", ".join(map(repr, _DISTRIBUTIONS))
        raise ValueError(f"variance_scaling: distribution must be one of {allowed}, not {distribution!r}.")

    def draw(key: Any, shape: _Shape, dtype: Any) -> Array:
        fans = _fans(shape, in_axis, out_axis, batch_axis)
        return _DISTRIBUTIONS[distribution](key, shape, dtype, tnp.array(scale / _DENOMINATORS[mode](*fans), dtype))

    return _initializer(draw, dtype)


def _fans(shape: _Shape, in_axis: _Axes, out_axis: _Axes, batch_axis: _Axes) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a unit (fan-in, fan-out). Raises: ValueError without an axis -2."""
    if isinstance(in_axis, int) and in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"variance_scaling: shape {tuple(shape)} has no axis -2 of inputs. Name the axes, in_axis= and out_axis=."
        )
    n_in, n_out, batch = (_size(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    window = math.prod(shape) / n_in / n_out / batch
    return n_in * window, n_out * window


def _size(shape: _Shape, axes: _Axes) -> int:
    return math.prod(shape[i] for i in ((axes,) if isinstance(axes, int) else axes))


_DENOMINATORS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}


def _scaled_truncated(key: Any, shape: _Shape, dtype: Any, variance: Array) -> Array:
    if dtypes.is_complex(dtype):
        return _truncated_disk(key, shape, dtype) * (tnp.sqrt(variance) / tnp.array(_DISK_DEVIATION, dtype))
    stddev = tnp.sqrt(variance) / tnp.array(_INTERVAL_DEVIATION, dtype)
    return samplers.truncated_normal(key, -2, 2, shape, dtype) * stddev


# Standard deviations of normal numbers cut off at two of their own, on the line and in the complex plane.
_INTERVAL_DEVIATION, _DISK_DEVIATION = 0.87962566103423978, 0.95311164380491208


def _scaled_normal(key: Any, shape: _Shape, dtype: Any, variance: Array) -> Array:
    return samplers.normal(key, shape, dtype) * tnp.sqrt(variance)


def _scaled_uniform(key: Any, shape: _Shape, dtype: Any, variance: Array) -> Array:
    if dtypes.is_complex(dtype):
        return _uniform_disk(key, shape, dtype) * tnp.sqrt(variance)
    return samplers.uniform(key, shape, dtype, -1) * tnp.sqrt(3 * variance)


_DISTRIBUTIONS: dict[str, Callable[[Any, _Shape, Any, Array], Array]] = {
    "truncated_normal": _scaled_truncated,
    "normal": _scaled_normal,
    "uniform": _scaled_uniform,
}


def _uniform_disk(key: Any, shape: _Shape, dtype: Any) -> Array:
    """Draw complex numbers that are uniform on a disk and have variance 1."""
    of_radius, of_angle = split(key)
    real = np.zeros((), dtype).real.dtype
    radius = tnp.sqrt(2 * samplers.uniform(of_radius, shape, real)).astype(dtype)
    return radius * _direction(of_angle, shape, dtype)


def _truncated_disk(key: Any, shape: _Shape, dtype: Any) -> Array:
    """Draw complex normal numbers of modulus at most 2."""
    of_radius, of_angle = split(key)
    real = np.zeros((), dtype).real.dtype
    outside = (1 - tnp.exp(tnp.array(-4, dtype))) * samplers.uniform(of_radius, shape, real).astype(dtype)
    return tnp.sqrt(-tnp.log(1 - outside)) * _direction(of_angle, shape, dtype)


def _direction(key: Any, shape: _Shape, dtype: Any) -> Array:
    """Draw complex numbers of modulus 1."""
    angle = 2 * np.pi * samplers.uniform(key, shape, np.zeros((), dtype).real.dtype).astype(dtype)
    return tnp.exp(1j * angle)


def _scaling(name: str, scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    """Make a function that is `variance_scaling` with its first three arguments given."""

    def scaled(in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    scaled.__name__ = scaled.__qualname__ = name
    scaled.__doc__ = (
        f'Make an initializer `variance_scaling({scale}, "{mode}", "{distribution}")`.\n\n'
        "    Args:\n"
        "      in_axis, out_axis, batch_axis, dtype: as of `variance_scaling`.\n"
        "    Raises: when it is called, ValueError for fewer than two axes.\n"
    )
    return scaled


glorot_uniform: Final = _scaling("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal: Final = _scaling("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform: Final = _scaling("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal: Final = _scaling("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform: Final = _scaling("he_uniform", 2.0, "fan_in", "uniform")
he_normal: Final = _scaling("he_normal", 2.0, "fan_in", "truncated_normal")
xavier_uniform = glorot_uniform
xavier_normal = glorot_normal
kaiming_uniform = he_uniform
kaiming_normal = he_normal


# ---- orthogonal ----------------------------------------------------------------------------------------------


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer of matrices with orthonormal columns, or rows if those are fewer, times `scale`.

    Args:
      column_axis: the axis of columns; all others together are rows.
      dtype: of the arrays if `init` is called without one; the default float if None.
    Raises: from `init`, ValueError for fewer than two axes.
    """

    def draw(key: Any, shape: _Shape, dtype: Any) -> Array:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: a shape of two axes or more is wanted, not {tuple(shape)}.")
        if 0 in shape:
            return tnp.zeros(shape, dtype)
        columns = shape[column_axis]
        others = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        matrix = random_orthogonal(key, math.prod(others), (), dtype, columns)
        return tnp.array(scale, dtype) * tnp.moveaxis(tnp.reshape(matrix, (*others, columns)), -1, column_axis)

    return _initializer(draw, dtype)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer of convolution kernels: an orthogonal matrix in the middle of the window, 0 elsewhere.

    The shape has one to three axes of the window, then inputs, then outputs, which are not fewer.

    Args:
      scale, column_axis, dtype: as for `orthogonal`.
    Raises: from `init`, ValueError for another shape.
    """
    matrix = orthogonal(scale, column_axis, dtype)

    def draw(key: Any, shape: _Shape, dtype: Any) -> Array:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ValueError(
                "delta_orthogonal: a shape of one to three axes of a window, inputs, and no fewer outputs is wanted, "
                f"not {tuple(shape)}."
            )
        middle = tuple([(n - 1) // 2 for n in shape[:-2]])
        return tnp.zeros(shape, dtype).at[middle].set(matrix(key, shape[-2:], dtype))

    return _initializer(draw, dtype)


# ---- common parts --------------------------------------------------------------------------------------------


def _initializer(draw: Callable[[Any, _Shape, Any], Array], default: Any) -> Initializer:
    """Make an initializer that calls `draw`, with dtype `default` if it is called without one."""

    def init(key: Any, shape: _Shape, dtype: Any = default, out_sharding: None = None) -> Array:
        """Draw an array [*shape]."""
        return _drawn(draw, key, shape, dtype, out_sharding)

    return init


def _drawn(draw: Callable[[Any, _Shape, Any], Array], key: Any, shape: Any, dtype: Any, out_sharding: Any) -> Array:
    """Draw an array, of the default float if `dtype` is None. Raises: NotImplementedError for a sharding."""
    if out_sharding is not None:
        raise NotImplementedError(f"initializers: out_sharding={out_sharding!r} is not supported, only None.")
    if isinstance(shape, Array) and holds_keys(shape.aval):
        raise TypeError(
            f"initializer: the key comes first, (key, shape): {shape.aval} stands in the place of the shape."
        )
    exact = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    return draw(key, shape_of_result("initializer", shape), exact)


_complete_namespace(globals())
