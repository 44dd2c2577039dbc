"""Discrete Fourier transforms under the names of `numpy.fft`: `tapeless.numpy.fft`.

Along an axis of n elements, with w = exp(-2 pi i / n), `fft` is y[k] = Σ_j x[j] w^jk, and `ifft` its inverse. Integers
become floating point, and 16 bits 32. Transforms of more axes than one primitive takes are done in several steps.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.dtypes import DTypeLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.errors import ConcretizationTypeError
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.arithmetic import conj
from tapeless.tracer.numpy.promotion import cast, number_operand
from tapeless.tracer.numpy.shaping import roll
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives import fourier
from tapeless.tracer.primitives.fourier import FftType
from tapeless.tracer.primitives.operands import argsort, canonical_axis, constant, listed_axes
from tapeless.tracer.primitives.shape import broadcasted_iota, pad, static_ints
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.types import aval_of

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


_Axes = int | Sequence[int] | None
_NORMS: dict[str, float] = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}  # scale n^-power, of the inverse n^power
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

# ---- one axis ------------------------------------------------------------------------------------------------


@one_program
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis of `a` by the discrete Fourier transform (DFT).

    Args:
      a: [.., m, ..], of numbers.
      n: length of the transform: the axis is cut to it, or filled up with zeros; None for m.
      axis: the axis.
      norm: "backward" or None: the inverse is divided by n; "forward": this is; "ortho": both by its square root.
    Returns: [.., n, ..], complex.
    Raises: ValueError if there is no such axis or norm, or n is less than 1; TypeError if a is no array of numbers.
    """
    return _transformed("fft", FftType.FFT, a, _one("fft", n), (axis,), norm)


@one_program
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis of `a` by the inverse of `fft`. Args, Raises: as for `fft`.

    Returns: [.., n, ..], complex.
    """
    return _transformed("ifft", FftType.IFFT, a, _one("ifft", n), (axis,), norm)


@one_program
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis of real numbers: the first half of the bins of `fft`; the others are their conjugates.

    Args:
      a: [.., m, ..], real.
      n, axis, norm: as for `fft`.
    Returns: [.., n // 2 + 1, ..], complex.
    Raises: as `fft`; TypeError if a is complex.
    """
    return _transformed("rfft", FftType.RFFT, a, _one("rfft", n), (axis,), norm)


@one_program
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform frequency bins to real numbers: the inverse of `rfft`.

    Imaginary parts of bin 0, and of bin n / 2 where n is even, are not read.

    Args:
      a: [.., m, ..], of numbers: cut to n // 2 + 1 bins, or filled up with zeros.
      n: length of the axis of the result; None for 2 (m - 1).
      axis, norm: as for `fft`.
    Returns: [.., n, ..], real.
    Raises: as `fft`.
    """
    return _transformed("irfft", FftType.IRFFT, a, _one("irfft", n), (axis,), norm)


@one_program
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform an axis of a signal with Hermitian symmetry, whose spectrum is real.

    Args:
      a: [.., m, ..], of numbers: the signal from time 0 on, cut to n // 2 + 1 elements, or filled up with zeros.
      n, axis: as for `irfft`.
      norm: as for `fft`.
    Returns: [.., n, ..], real.
    Raises: as `fft`.
    """
    x = conj(number_operand("hfft", a))
    return _transformed("hfft", FftType.IRFFT, x, _one("hfft", n), (axis,), _OPPOSITE[_norm("hfft", norm)])


@one_program
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """Transform a real spectrum to half of a signal with Hermitian symmetry: the inverse of `hfft`.

    Args:
      a: [.., m, ..], real.
      n, axis, norm: as for `ifft`.
    Returns: [.., n // 2 + 1, ..], complex.
    Raises: as `fft`; TypeError if a is complex.
    """
    return lax.conj(_transformed("ihfft", FftType.RFFT, a, _one("ihfft", n), (axis,), _OPPOSITE[_norm("ihfft", norm)]))


# ---- several axes --------------------------------------------------------------------------------------------


@one_program
def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Transform axes of `a`, one after the other, by the discrete Fourier transform.

    Args:
      a: [...], of numbers.
      s: lengths of the axes, each as n of `fft`; None for those of a.
      axes: the axes, none of them twice; None for the last ones, one for each length in `s`, or all.
      norm: as for `fft`, n being the product of the lengths.
    Returns: `a` with these lengths, complex.
    Raises: ValueError if there is no such axis or norm, an axis is named twice, there are not as many lengths as axes,
      or one is less than 1; TypeError if a is no array of numbers.
    """
    return _transformed("fftn", FftType.FFT, a, s, axes, norm)


@one_program
def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Transform axes of `a` by the inverse of `fftn`. Args, Returns, Raises: as for `fftn`."""
    return _transformed("ifftn", FftType.IFFT, a, s, axes, norm)


@one_program
def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Transform axes of real numbers: the last of the axes as by `rfft`, then the others as by `fft`.

    Args:
      a: [...], real.
      s, axes, norm: as for `fftn`.
    Returns: `a` with these lengths, n // 2 + 1 for the last length n; complex.
    Raises: as `fftn`; TypeError if a is complex, ValueError if there are no axes.
    """
    return _transformed("rfftn", FftType.RFFT, a, s, axes, norm)


@one_program
def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """Transform frequency bins to real numbers: the inverse of `rfftn`.

    Args:
      a: [...], of numbers: along the last of the axes the bins that `irfft` takes.
      s: lengths of the axes of the result; None for those of a, and 2 (m - 1) for the last, of m bins.
      axes, norm: as for `fftn`.
    Returns: `a` with these lengths, real.
    Raises: as `fftn`; ValueError if there are no axes.
    """
    return _transformed("irfftn", FftType.IRFFT, a, s, axes, norm)


@one_program
def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Transform two axes, by default the last two. Args, Returns, Raises: as for `fftn`."""
    return _transformed("fft2", FftType.FFT, a, s, axes, norm)


@one_program
def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Transform two axes by the inverse of `fft2`, by default the last two. Args, Returns, Raises: as for `ifftn`."""
    return _transformed("ifft2", FftType.IFFT, a, s, axes, norm)


@one_program
def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Transform two axes of real numbers, by default the last two. Args, Returns, Raises: as for `rfftn`."""
    return _transformed("rfft2", FftType.RFFT, a, s, axes, norm)


@one_program
def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """Transform bins of two axes to real numbers, by default the last two. Args, Returns, Raises: as for `irfftn`."""
    return _transformed("irfft2", FftType.IRFFT, a, s, axes, norm)


# ---- frequencies of bins -------------------------------------------------------------------------------------


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the frequencies of the bins of `fft`: 0, 1, .., -2, -1 over n d; for even n, bin n / 2 is negative.

    Args:
      n: length of the transform.
      d: distance of the samples, a real number, known or traced.
      dtype: a floating point type; None for the default, or that of d if wider.
      device: where to put the result, as for `zeros`; the default device if None.
    Returns: [n].
    Raises: ValueError if n is less than 1 or d no scalar; TypeError for types that are not real, or no device.
    """
    n = _length("fftfreq", n)
    turned = lax.rem(lax.add(broadcasted_iota(np.int32, (n,), 0), n // 2), n)
    return _over_time("fftfreq", lax.sub(turned, n // 2), n, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """Return the frequencies of the bins of `rfft`: 0, 1, .., n // 2 over n d.

    Args:
      n, d, dtype, device: as for `fftfreq`.
    Returns: [n // 2 + 1].
    Raises: as `fftfreq`.
    """
    n = _length("rfftfreq", n)
    return _over_time("rfftfreq", broadcasted_iota(np.int32, (n // 2 + 1,), 0), n, d, dtype, device)


@one_program
def fftshift(x: ArrayLike, axes: _Axes = None) -> Array:
    """Move the bin of frequency 0 from the front to the middle, along `axes`, all if None.

    Raises: ValueError if an axis is out of range.
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


@one_program
def ifftshift(x: ArrayLike, axes: _Axes = None) -> Array:
    """Move the bin of frequency 0 from the middle to the front, along `axes`, all if None: the inverse of `fftshift`.

    Raises: ValueError if an axis is out of range.
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))


def _shifted(name: str, x: ArrayLike, axes: _Axes, shift: Any) -> Array:
    moved = number_operand(name, x)
    given = range(moved.ndim) if axes is None else listed_axes(axes)
    places = [canonical_axis(d, moved.ndim, f"{name}: axis") for d in given]
    return roll(moved, [shift(moved.shape[d]) for d in places], places)


def _over_time(name: str, steps: Array, n: int, d: ArrayLike, dtype: Any, device: Any) -> Array:
    given = aval_of(d)
    wide = _wider(given.dtype, dtypes.float_of(given.dtype)) if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_float(wide) or dtypes.is_complex(given.dtype):
        raise TypeError(f"{name}: frequencies are real numbers, and d is {given}, dtype {wide}.")
    if given.shape:
        raise ValueError(f"{name}: d must be a number, not {given}.")
    spacing = cast(d, wide)
    found = lax.div(cast(steps, wide), lax.mul(spacing, constant(n, aval_of(spacing))))
    return core.place_array(found, device)


def _wider(dtype: Any, other: Any) -> Any:
    return dtype if dtypes.is_float(dtype) and dtypes.bits_of(dtype) > dtypes.bits_of(other) else other


# ---- all transforms ------------------------------------------------------------------------------------------


def _transformed(name: str, kind: FftType, a: ArrayLike, s: Any, axes: Any, norm: str | None) -> Array:
    x, power = number_operand(name, a), _NORMS[_norm(name, norm)]
    if kind is FftType.RFFT and dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: the numbers must be real, not {x.aval}. Take their real part, or use fft.")
    places, lengths = _places(name, kind, x, s, axes)
    if not places:
        return fourier.fft(x, kind, ())
    fitted = _fitted(x, places, fourier.axis_lengths(kind, lengths)[0])
    found = _few_at_a_time(fitted, kind, places, lengths)
    if not power:
        return found
    scale = math.prod(lengths) ** (power if kind in (FftType.IFFT, FftType.IRFFT) else -power)
    return lax.mul(found, constant(scale, found.aval))


def _one(name: str, n: int | None) -> tuple[int, ...] | None:
    return None if n is None else (_integer(name, n),)


def _integer(name: str, n: Any) -> int:
    try:
        return operator.index(n)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(f"{name}: n must be an integer, not {n!r}.") from None


def _norm(name: str, norm: str | None) -> str:
    if norm is None:
        return "backward"
    if norm not in _NORMS:
        raise ValueError(f"{name}: norm must be one of {', '.join(map(repr, _NORMS))} or None, not {norm!r}.")
    return norm


def _length(name: str, n: Any) -> int:
    found = _integer(name, n)
    if found < 1:
        raise ValueError(f"{name}: n must be at least 1, not {found}.")
    return found


def _places(name: str, kind: FftType, x: Array, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Check axes and lengths: return the axes counted from the front, in the order given, and the lengths."""
    given = None if s is None else static_ints(s, name, "s")
    if axes is None:
        axes = range(x.ndim) if given is None else range(-len(given), 0)
    axes = static_ints(axes, name, "axes")
    places = tuple([canonical_axis(d, x.ndim, f"{name}: axis") for d in axes])
    if len({*places}) < len(places):
        raise ValueError(f"{name}: axes {axes} of {x.aval} name an axis twice.")
    if given is not None and len(given) != len(places):
        raise ValueError(f"{name}: there must be a length for each axis: s is {given}, axes {axes}.")
    if not places and kind in (FftType.RFFT, FftType.IRFFT):
        raise ValueError(f"{name}: there must be an axis to transform: axes are {axes} of {x.aval}.")
    lengths = _own_lengths(kind, x, places) if given is None else given
    if min(lengths, default=1) < 1:
        raise ValueError(f"{name}: lengths must be at least 1: {lengths} along axes {places} of {x.aval}.")
    return places, lengths


def _own_lengths(kind: FftType, x: Array, places: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths of the transform that uses all elements of these axes."""
    own = tuple([x.shape[d] for d in places])
    return own if kind is not FftType.IRFFT else (*own[:-1], 2 * (own[-1] - 1))


def _fitted(x: Array, places: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Cut axes at their ends to `lengths`, or pad them with zeros."""
    more = [0] * x.ndim
    for d, n in zip(places, lengths, strict=True):
        more[d] = n - x.shape[d]
    return pad(x, constant(0, x.aval), [(0, n, 0) for n in more]) if any(more) else x


def _few_at_a_time(x: Array, kind: FftType, places: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Transform axes in groups of at most MOST_AXES, the last by `kind`, then the others by FFT; IRFFT in reverse."""
    last = max(len(places) - fourier.MOST_AXES, 0)
    parts = [(kind, places[last:], lengths[last:])]
    others = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)
    for end in range(last, 0, -fourier.MOST_AXES):
        part = slice(max(end - fourier.MOST_AXES, 0), end)
        parts.append((others, places[part], lengths[part]))
    for one, axes, n in parts[::-1] if kind is FftType.IRFFT else parts:
        order = [*[d for d in range(x.ndim) if d not in axes], *axes]
        x = permute(fourier.fft(permute(x, order), one, n), argsort(order))
    return x


_complete_namespace(globals())
