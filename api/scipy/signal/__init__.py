"""Convolutions and spectra of signals under the names of `scipy.signal`: `tapeless.scipy.signal`."""

import typing as _typing

from tapeless.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from tapeless.scipy.signal.spectral_estimates import csd, detrend, istft, stft, welch
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
