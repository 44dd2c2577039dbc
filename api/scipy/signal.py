"""Convolutions and spectra of signals under the names of `scipy.signal`: `tapeless.scipy.signal`."""

from tapeless.tracer.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from tapeless.tracer.spectral_estimates import csd, detrend, istft, stft, welch

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]  # fmt: skip
