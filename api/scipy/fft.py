"""Cosine transforms under the names of `scipy.fft`: `tapeless.scipy.fft`.

Source: Makhoul 1980, "A fast cosine transform in one and two dimensions"; scipy.fft.dct for the scales.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeless.numpy import fft
from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import array_operand, inexact
from tapeless.tracer.primitives.elementwise import complex as complex_of

__all__ = ["dct", "dctn", "idct", "idctn"]


_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis by the discrete cosine transform.

    Args:
      x: real or complex numbers; the real and imaginary parts of these are transformed each.
      type: 1 to 4: 2 Σ_i x[i] cos(..) of pi i k / (n - 1), with half of both ends; pi (i + 1/2) k / n;
        pi i (k + 1/2) / n, with half of x[0]; or pi (i + 1/2) (k + 1/2) / n.
      n: length, to which the axis is cut or filled up with 0; that of the axis if None.
      norm: None or "backward" scale nothing, "forward" divides by 2 n, or 2 (n - 1) for type 1; "ortho" makes the
        transform orthogonal.
    Returns: floating point or complex, the shape of x with n elements along the axis.
    Raises: ValueError for another type or norm, an axis out of range or of too few elements: 2 for type 1, else 1.
    """
    return _along("dct", x, type, n, axis, norm, "forward")


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis by the inverse of `dct` of this type. Args, Returns, Raises: as for `dct`."""
    return _along("idct", x, _INVERSE.get(type, type), n, axis, norm, "backward")


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | int | None = None,
    axes: Sequence[int] | int | None = None,
    norm: str | None = None,
) -> Array:
    """Transform axes by the discrete cosine transform, one after the other.

    Args:
      s: length of each axis; as they are if None.
      axes: if None the last ones, one for each length in s, or all.
      x, type, norm: as for `dct`.
    Returns: floating point or complex, the shape of x with these lengths.
    Raises: ValueError if s and axes differ in number or an axis is named twice, or as `dct`.
    """
    return _along_all("dctn", dct, x, type, s, axes, norm)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | int | None = None,
    axes: Sequence[int] | int | None = None,
    norm: str | None = None,
) -> Array:
    """Transform axes by the inverse of `dctn`. Args, Returns, Raises: as for `dctn`."""
    return _along_all("idctn", idct, x, type, s, axes, norm)


def _along_all(name: str, transform: Callable[..., Array], x: Any, type: int, s: Any, axes: Any, norm: Any) -> Array:
    found = array_operand(name, inexact(name, x))
    lengths = None if s is None else [operator.index(n) for n in (s if isinstance(s, Sequence) else [s])]
    if axes is None:
        count = found.ndim if lengths is None else len(lengths)
        if count > found.ndim:
            raise ValueError(f"{name}: {count} lengths for {found.aval}, which has {found.ndim} axes.")
        places = list(range(found.ndim - count, found.ndim))
    else:
        places = [operator.index(a) for a in (axes if isinstance(axes, Sequence) else [axes])]
    if lengths is not None and len(lengths) != len(places):
        raise ValueError(f"{name}: {len(lengths)} lengths for {len(places)} axes.")
    if len({a % max(found.ndim, 1) for a in places}) < len(places):
        raise ValueError(f"{name}: axes {tuple(places)} of {found.aval} are not distinct.")
    for i, a in enumerate(places):
        found = transform(found, type, None if lengths is None else lengths[i], a, norm)
    return found


def _along(name: str, x: Any, type: int, n: int | None, axis: int, norm: Any, divided: str) -> Array:
    """Transform an axis by a type; `divided` is the norm under which this direction is divided by the length."""
    found = array_operand(name, inexact(name, x))
    if type not in _INVERSE:
        raise ValueError(f"{name}: type must be 1, 2, 3 or 4, not {type!r}.")
    if norm not in (None, "forward", "backward", "ortho"):
        raise ValueError(f"{name}: norm must be 'forward', 'backward', 'ortho' or None, not {norm!r}.")
    if not -found.ndim <= axis < found.ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for {found.aval}.")
    size, least = found.shape[axis] if n is None else operator.index(n), 2 if type == 1 else 1
    if size < least:
        raise ValueError(f"{name}: {size} elements along axis {axis} of {found.aval}: at least {least} for this type.")
    moved = tnp.moveaxis(found, axis, -1)[..., :size]
    moved = tnp.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, size - moved.shape[-1])])
    scale = "ortho" if norm == "ortho" else "divided" if (norm or "backward") == divided else "none"
    return tnp.moveaxis(_transformed(moved, type=type, scale=scale), -1, axis)


@core.compound
def _transformed(x: Any, *, type: int, scale: str) -> Any:
    if dtypes.is_complex(x.dtype):
        return complex_of(*(_scaled(part, type, scale) for part in (tnp.real(x), tnp.imag(x))))
    return _scaled(x, type, scale)


def _scaled(x: Any, type: int, scale: str) -> Any:
    n = x.shape[-1]
    span = 2 * (n - 1) if type == 1 else 2 * n
    ends = np.ones(n)
    if type == 1:
        ends[[0, -1]] = math.sqrt(0.5)
    elif type in (2, 3):
        ends[0] = math.sqrt(0.5)
    if scale != "ortho":
        return _SUMS[type](x) * (1 / span if scale == "divided" else 1)
    before = (1 / ends if type in (1, 3) else np.ones(n)).astype(x.dtype)
    after = ((ends if type in (1, 2) else np.ones(n)) / math.sqrt(span)).astype(x.dtype)
    return _SUMS[type](x * before) * after


def _type_1(x: Any) -> Any:
    return tnp.real(fft.rfft(tnp.concatenate([x, x[..., -2:0:-1]], -1)))


def _type_2(x: Any) -> Any:
    """Compute type 2 as the real part of a rotated FFT of the even elements, then the odd ones reversed (Makhoul)."""
    n = x.shape[-1]
    ordered = tnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    return 2 * tnp.real(fft.fft(ordered) * _turns(x, np.arange(n) / (4 * n)))


def _type_3(x: Any) -> Any:
    """Compute type 3, the transpose of type 2, except that the first element is halved."""
    n = x.shape[-1]
    halved = x * np.where(np.arange(n) == 0, 0.5, 1).astype(x.dtype)
    ordered = 2 * tnp.real(fft.fft(_turned(halved, np.arange(n) / (4 * n))))
    places = np.where(np.arange(n) % 2, n - 1 - np.arange(n) // 2, np.arange(n) // 2)
    return ordered[..., places]


def _type_4(x: Any) -> Any:
    n = x.shape[-1]
    found = fft.fft(_turned(x, np.arange(n) / (4 * n)), 2 * n)[..., :n]
    return 2 * tnp.real(found * _turns(x, (2 * np.arange(n) + 1) / (8 * n)))


def _turned(x: Array, turns: Any) -> Array:
    """Multiply real numbers by exp(-2 pi i turns), which strict promotion allows only between complex ones."""
    factors = _turns(x, turns)
    return x.astype(factors.dtype) * factors


def _turns(x: Any, turns: np.ndarray[Any, Any]) -> Any:
    return np.exp(-2j * np.pi * turns).astype(dtypes.complex_of(x.dtype))


_SUMS = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}


_complete_namespace(globals())
