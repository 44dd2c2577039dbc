"""Discrete Fourier transforms under the names of `numpy.fft`: `tapeless.numpy.fft`."""

import typing as _typing

from tapeless.tracer.errors import missing_name as _missing_name
from tapeless.tracer.numpy.fourier import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

if not _typing.TYPE_CHECKING:  # type checkers know better what is there

    def __getattr__(name: str) -> _typing.NoReturn:
        raise _missing_name("tapeless.numpy.fft", name)
