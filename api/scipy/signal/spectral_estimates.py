"""Spectral estimates from overlapping segments of signals (STFT, Welch), and detrending, as in `scipy.signal`.

Source: Welch 1967, "The use of fast Fourier transform for the estimation of power spectra"; Griffin & Lim 1984, "Signal
estimation from modified short-time Fourier transform", for the inverse; SciPy for scales and boundaries.
"""

import inspect
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.numpy import fft
from tapeless.tracer import dtypes, source
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import (
    array_operand,
    as_weak_as,
    common_shape,
    inexact,
    mixing_inside,
    promoted_inexact_dtypes,
)
from tapeless.tracer.primitives.contraction import Precision

# ---- trends --------------------------------------------------------------------------------------------------


@one_program
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray[Any, Any] = 0,
    overwrite_data: None = None,
) -> Array:
    """Remove the mean or the linear trend of a signal.

    Args:
      data: numbers.
      axis: the axis of time.
      type: "constant" subtracts the mean, "linear" the least-squares line.
      bp: breakpoints, between which a line each is fitted.
      overwrite_data: must be None.
    Returns: the shape of data, floating point or complex.
    Raises: ValueError for another type, an axis out of range, or breakpoints that are not within the signal;
      NotImplementedError for `overwrite_data`.
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: arrays are never written to: leave overwrite_data=None.")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'constant' or 'linear', not {type!r}.")
    x = array_operand("detrend", inexact("detrend", data))
    axis = _axis("detrend", axis, x)
    if type == "constant":
        return x - tnp.mean(x, axis, keepdims=True)
    n = x.shape[axis]
    ends = np.unique(np.r_[0, bp, n])
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(f"detrend: bp {bp} is not within the {n} elements of axis {axis} of {x.aval}.")
    moved = tnp.moveaxis(x, axis, -1)
    parts = [_without_line(moved[..., low:high]) for low, high in itertools.pairwise(ends)]
    return tnp.moveaxis(tnp.concatenate(parts, -1) if parts else moved, -1, axis)


def _without_line(x: Any) -> Any:
    """Subtract from x its projection on constants and linear functions along the last axis."""
    n = x.shape[-1]
    basis = np.linalg.qr(np.stack([np.ones(n), np.arange(n) - (n - 1) / 2], 1)[:, : min(n, 2)])[0].astype(x.dtype)
    along = tnp.matmul(x, basis, precision=Precision.HIGHEST)
    return as_weak_as(x - tnp.matmul(along, basis.T, precision=Precision.HIGHEST), x)


# ---- windows -------------------------------------------------------------------------------------------------

_COSINES = {
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "boxcar": (1.0,),
}
_OTHERS: dict[str, Callable[..., np.ndarray[Any, Any]]] = {
    "cosine": lambda n: np.sin(np.pi * (np.arange(n) + 0.5) / n),
    "bartlett": lambda n: np.bartlett(n),
    "kaiser": lambda n, beta: np.kaiser(n, beta),
    "gaussian": lambda n, std: np.exp(-0.5 * np.square(_centred(n) / std)),
    "triang": lambda n: 1 - np.abs(_centred(n)) / ((n + n % 2) / 2),
    "parzen": lambda n: _parzen(np.abs(_centred(n)) / (n / 2), (n - 1) / (2 * n)),
    "bohman": lambda n: _bohman(np.abs(_centred(n)) / ((n - 1) / 2)),
    "barthann": lambda n: _barthann(np.abs(_centred(n)) / (n - 1)),
    "lanczos": lambda n: np.sinc(2 * _centred(n) / (n - 1)),
    "tukey": lambda n, alpha=0.5: _tukey((n - 1) / 2 - np.abs(_centred(n)), alpha * (n - 1) / 2),
    "exponential": lambda n, center=None, tau=1.0: np.exp(-np.abs(_centred(n, center)) / tau),
    "general_gaussian": lambda n, p, sig: np.exp(-0.5 * np.abs(_centred(n) / sig) ** (2 * p)),
    "general_hamming": lambda n, alpha: alpha + (1 - alpha) * np.cos(2 * np.pi * _centred(n) / (n - 1)),
}


def _centred(n: int, center: float | None = None) -> np.ndarray[Any, Any]:
    return np.arange(n) - ((n - 1) / 2 if center is None else center)


def _parzen(distance: Any, bend: float) -> np.ndarray[Any, Any]:
    return np.where(distance <= bend, 1 - 6 * distance**2 * (1 - distance), 2 * (1 - distance) ** 3)


def _bohman(distance: Any) -> np.ndarray[Any, Any]:
    inside = (1 - distance) * np.cos(np.pi * distance) + np.sin(np.pi * distance) / np.pi
    return np.where(distance < 1, inside, 0.0)


def _barthann(distance: Any) -> np.ndarray[Any, Any]:
    return 0.62 - 0.48 * distance + 0.38 * np.cos(2 * np.pi * distance)


def _tukey(from_end: Any, width: float) -> np.ndarray[Any, Any]:
    """Compute a window that rises by a cosine along `width` elements at both ends, and is 1 between."""
    return np.where(from_end < width, 0.5 - 0.5 * np.cos(np.pi * from_end / max(width, 1e-300)), 1.0)


def _window(name: str, window: Any, n: int) -> np.ndarray[Any, Any]:
    """Compute a periodic window of n elements: the first n of a symmetric window of n + 1.

    Raises: NotImplementedError for an unknown window.
    """
    kind, *parameters = (window,) if isinstance(window, str) else window
    if n == 1:
        return np.ones(1)
    if kind in _COSINES and not parameters:
        turns = 2 * np.pi * np.arange(n) / n
        return sum(((-1) ** k * a * np.cos(k * turns) for k, a in enumerate(_COSINES[kind])), np.zeros(n))
    if kind not in _OTHERS or not _takes(_OTHERS[kind], n, *parameters):
        known = ", ".join([*_COSINES, *_OTHERS])
        raise NotImplementedError(f"{name}: window {window!r} is not among {known}: give an array.")
    return _OTHERS[kind](n + 1, *parameters)[:-1]


def _takes(f: Callable[..., Any], *args: Any) -> bool:
    """Tell whether `f` has parameters for these arguments."""
    try:
        inspect.signature(f).bind(*args)
    except TypeError:
        return False
    return True


class _Segments(NamedTuple):
    """The segmentation of a signal: the window, its length, the overlap of segments, the length of their transforms."""

    window: Any
    length: int
    overlap: int
    transform: int

    @property
    def step(self) -> int:
        return self.length - self.overlap


def _segments(name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, size: int, dtype: Any) -> _Segments:
    if nperseg is not None and operator.index(nperseg) < 1:
        raise ValueError(f"{name}: nperseg must be positive, not {nperseg}.")
    if isinstance(window, (str, tuple)):
        length = (256 if name in ("stft", "welch", "csd") else size) if nperseg is None else operator.index(nperseg)
        if length > size:
            if nperseg is not None:
                source.warn(f"{name}: nperseg={length} is more than the {size} elements of the signal.")
            length = size
        values = tnp.asarray(_window(name, window, length).astype(dtype))
    else:
        values = tnp.asarray(window, dtype)
        length = values.size if nperseg is None else operator.index(nperseg)
        if values.ndim != 1 or values.size > size or values.size != length:
            raise ValueError(f"{name}: a window {values.aval} for nperseg={nperseg} of {size} elements.")
    overlap = length // 2 if noverlap is None else operator.index(noverlap)
    transform = length if nfft is None else operator.index(nfft)
    if not 0 <= overlap < length or transform < length:
        raise ValueError(f"{name}: noverlap={noverlap}, nfft={nfft} do not fit segments of {length} elements.")
    return _Segments(values, length, overlap, transform)


# ---- spectra -------------------------------------------------------------------------------------------------


@one_program
@mixing_inside
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the short-time Fourier transform: transforms of overlapping segments of a signal.

    Args:
      x: numbers, along an axis.
      fs: the sampling frequency.
      window: a name, as "hann"; ("kaiser", beta) or ("gaussian", std); or an array of `nperseg` numbers.
      nperseg: elements of a segment; the signal's, with a warning, if it has fewer.
      noverlap: elements that two segments have in common; half of them if None.
      nfft: length of the transforms, to which segments are filled up with 0.
      detrend: "constant" or "linear", as for `detrend`; a function of segments in the last axis; or False.
      return_onesided: for real signals, return nonnegative frequencies only.
      boundary: how the signal is extended by half a segment at both ends: "zeros", "constant", "even", "odd"; not if
        None.
      padded: whether the signal is filled up with 0 so that all of it is in segments.
    Returns: (frequencies, times, spectra), with frequencies in place of the axis, and times in the last axis.
    Raises: ValueError if numbers do not fit or for another boundary; NotImplementedError for another window.
    """
    how: dict[str, Any] = {"window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "axis": axis}
    return _spectra("stft", x, None, fs, detrend, return_onesided, "spectrum", boundary, padded, **how)


@one_program
@mixing_inside
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the cross spectral density of two signals by Welch's method.

    Args:
      x, y: signals, of which the shorter is filled up with 0; x twice if y is None.
      nperseg: elements of a segment; if None 256, or those of a window that is an array.
      scaling: "density" for squares over frequency, "spectrum" for squares.
      average: "mean" or "median" over the segments.
      fs, window, noverlap, nfft, detrend, return_onesided: as for `stft`.
    Returns: (frequencies, spectrum), with frequencies in place of the axis.
    Raises: as `stft`; ValueError for another scaling or average.
    """
    return _averaged("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@one_program
@mixing_inside
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the power spectral density of a signal by Welch's method, which is real. Args, Raises: as for `csd`.

    Returns: (frequencies, spectrum), with frequencies in place of the axis.
    """
    found = _averaged(
        "welch", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )
    return found[0], tnp.real(found[1])


def _averaged(name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, detrend: Any,
              onesided: bool, scaling: str, axis: int, average: str) -> tuple[Array, Array]:  # fmt: skip
    if average not in ("mean", "median"):
        raise ValueError(f"{name}: average must be 'mean' or 'median', not {average!r}.")
    how: dict[str, Any] = {"window": window, "nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "axis": axis}
    frequencies, _, found = _spectra(name, x, y, fs, detrend, onesided, scaling, None, False, **how)
    if average == "mean" or found.shape[-1] < 2:
        return frequencies, tnp.mean(found, axis=-1)
    half = np.arange(2.0, found.shape[-1], 2)
    bias = 1 + float(np.sum(1 / (half + 1) - 1 / half))
    if dtypes.is_complex(found.dtype):
        return frequencies, (tnp.median(tnp.real(found), -1) + 1j * tnp.median(tnp.imag(found), -1)) / bias
    return frequencies, tnp.median(found, axis=-1) / bias


def _spectra(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    trend: Any,
    onesided: bool,
    scaling: str,
    boundary: str | None,
    padded: bool,
    *,
    axis: int,
    **how: Any,
) -> tuple[Array, Array, Array]:
    """Compute the spectra of segments for `stft`; for other names the products conj(X) Y of two signals' spectra."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: scaling must be 'density' or 'spectrum', not {scaling!r}.")
    signals = [array_operand(name, v) for v in promoted_inexact_dtypes(name, *([x] if y is None else [x, y]))]
    if len({s.ndim for s in signals}) > 1 or not all(s.size for s in signals):
        given = " and ".join(str(s.aval) for s in signals)
        raise ValueError(f"{name}: signals with elements and as many axes, not {given}.")
    axis = _axis(name, axis, signals[0])
    moved = _of_one_length([tnp.moveaxis(s, axis, -1) for s in signals])
    complex_valued = dtypes.is_complex(moved[0].dtype)
    real = dtypes.real_part_dtype(moved[0].dtype)
    cut = _segments(name, size=signals[0].shape[axis], dtype=real, **how)
    if boundary is not None:
        moved = [_extended(name, s, cut.length // 2, boundary) for s in moved]
    if padded:
        more = -(moved[0].shape[-1] - cut.length) % cut.step % cut.length
        moved = [tnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, more)]) for s in moved]
    halved = onesided and not complex_valued
    transforms = [_transforms(s, cut, trend, halved) for s in moved]
    found = transforms[0] if name == "stft" else tnp.conj(transforms[0]) * transforms[-1]
    rate = tnp.asarray(fs).astype(real)
    squares, total = tnp.sum(cut.window * cut.window), tnp.sum(cut.window)
    scale = 1 / (rate * squares) if scaling == "density" else 1 / (total * total)
    found = found * (tnp.sqrt(scale) if name == "stft" else scale).astype(found.dtype)
    if name != "stft":
        if halved:
            inner = np.full(found.shape[-1], 2)
            inner[[0, -1][: 1 + (cut.transform % 2 == 0)]] = 1
            found = found * inner.astype(found.dtype)
        found = tnp.real(found) if y is None else found
    places = (fft.rfftfreq if halved else fft.fftfreq)(cut.transform).astype(real) * rate
    last = moved[0].shape[-1] - cut.length / 2 + 1
    times = tnp.asarray(np.arange(cut.length / 2, last, cut.step).astype(real)) / rate
    if boundary is not None:
        times = times - cut.length / 2 / rate
    return places, times, tnp.moveaxis(found, -1, axis)


def _of_one_length(signals: list[Array]) -> list[Array]:
    longest = max(s.shape[-1] for s in signals)
    common_shape("csd", *(s.shape[:-1] for s in signals))
    return [tnp.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, longest - s.shape[-1])]) for s in signals]


def _extended(name: str, x: Array, n: int, boundary: str) -> Array:
    widths = [(0, 0)] * (x.ndim - 1) + [(n, n)]
    if boundary in ("zeros", "constant"):
        return tnp.pad(x, widths, "constant" if boundary == "zeros" else "edge")
    if boundary not in ("even", "odd"):
        raise ValueError(f"{name}: boundary must be 'zeros', 'constant', 'even', 'odd' or None, not {boundary!r}.")
    if n > x.shape[-1] - 1:
        raise ValueError(f"{name}: boundary {boundary!r} wants more than {n} elements: {x.aval}.")
    if boundary == "even" or not n:
        return tnp.pad(x, widths, "reflect")
    left, right = 2 * x[..., :1] - x[..., n:0:-1], 2 * x[..., -1:] - x[..., -2 : -n - 2 : -1]
    return tnp.concatenate([left, x, right], -1)


def _transforms(x: Array, cut: _Segments, trend: Any, halved: bool) -> Array:
    starts = np.arange(0, x.shape[-1] - cut.length + 1, cut.step)
    parts = x[..., starts[:, None] + np.arange(cut.length)]
    if isinstance(trend, str):
        parts = detrend(parts, type=trend)
    elif callable(trend):
        parts = trend(parts)
    elif trend:
        raise ValueError(f"detrend must be 'constant', 'linear', a function or False, not {trend!r}.")
    return (fft.rfft if halved else fft.fft)(parts * cut.window, cut.transform)


@one_program
@mixing_inside
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Compute the inverse of `stft`: the signal whose spectra are closest to the given ones, by least squares.

    Args:
      Zxx: spectra, with axes of times and of frequencies.
      nperseg, nfft: as for `stft`; if None, they follow from the number of frequencies.
      input_onesided: whether Zxx has nonnegative frequencies only; the signal is real then.
      boundary: whether the signal was extended by half a segment, which is cut off.
      fs, window, noverlap: as for `stft`.
    Returns: (times, signal), with the signal's time in place of `time_axis`, after `freq_axis` is removed.
    Raises: ValueError if numbers do not fit, or the axes are the same; NotImplementedError for another window.
    """
    spectra = array_operand("istft", inexact("istft", Zxx))
    if spectra.ndim < 2:
        raise ValueError(f"istft: spectra have axes of times and of frequencies: {spectra.aval}.")
    time, frequency = _axis("istft", time_axis, spectra), _axis("istft", freq_axis, spectra)
    if time == frequency:
        raise ValueError(f"istft: times and frequencies are both in axis {time} of {spectra.aval}.")
    bins = spectra.shape[frequency]
    default = 2 * (bins - 1) if input_onesided else bins
    length = default if nperseg is None else operator.index(nperseg)
    transform = default + (input_onesided and length == default + 1) if nfft is None else operator.index(nfft)
    real = dtypes.real_part_dtype(spectra.dtype)
    if length < 1:
        raise ValueError(f"istft: nperseg must be positive, not {length}.")
    cut = _segments("istft", window, length, noverlap, transform, length, real)
    spectra = tnp.moveaxis(spectra.astype(dtypes.complex_of(spectra.dtype)), (time, frequency), (-2, -1))
    parts = (fft.irfft if input_onesided else fft.ifft)(spectra, cut.transform)[..., : cut.length]
    starts = np.arange(parts.shape[-2]) * cut.step
    places = starts[:, None] + np.arange(cut.length)
    size = cut.step * (parts.shape[-2] - 1) + cut.length
    total = (
        tnp.zeros((*parts.shape[:-2], size), parts.dtype).at[..., places].add(parts * cut.window * tnp.sum(cut.window))
    )
    weight = tnp.zeros(size, real).at[places].add(tnp.broadcast_to(cut.window * cut.window, places.shape))
    if boundary:
        half = cut.length // 2
        total, weight = (v[..., half : v.shape[-1] - half] for v in (total, weight))
    found = total / tnp.where(weight > 1e-10, weight, 1)
    times = tnp.arange(found.shape[-1], dtype=real) / tnp.asarray(fs).astype(real)
    return times, tnp.moveaxis(found, -1, time - (frequency < time))


def _axis(name: str, axis: Any, x: Array) -> int:
    found = operator.index(axis)
    if not -x.ndim <= found < x.ndim:
        raise ValueError(f"{name}: axis {found} is out of range for {x.aval}.")
    return found % x.ndim
