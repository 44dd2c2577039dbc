"""Convolutions and spectra of signals under the names of `scipy.signal`: `tapeless.scipy.signal`."""

from tapeless.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from tapeless.scipy.signal.spectral_estimates import csd, detrend, istft, stft, welch
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip

_complete_namespace(globals())
