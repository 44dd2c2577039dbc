"""Samples of Fourier transforms."""

from typing import Any

import numpy as np

from tapeless.tracer.primitives.fourier import FftType, fft_p
from tests.samples.sample import Sample, f32

ROUNDING = 2e-6  # of log2 n sums in a row, in another order than NumPy's
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")


def c64(*shape: int) -> Any:
    return (f32(*shape) + 1j * f32(*shape, seed=7)).astype(np.complex64)


def transformed(x: Any, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    found = getattr(np.fft, f"{fft_type.name.lower()}n")(x, fft_lengths, tuple(range(-len(fft_lengths), 0)))
    real = fft_type is FftType.IRFFT
    return found.astype(x.real.dtype if real else np.result_type(x.dtype, np.complex64))


def kind(name: str, *lengths: int) -> dict[str, Any]:
    return {"fft_type": FftType[name], "fft_lengths": lengths}


def sample(name: str, label: str, x: Any, *lengths: int, **options: Any) -> Sample:
    label = f"{name}-{label}" if label else name
    return Sample(fft_p, (x,), transformed, kind(name, *lengths), (0,), label=label, rtol=ROUNDING, **options)


def of_complex(name: str) -> list[Sample]:
    bad = (
        ((f32(4),), kind(name, 4), TypeError),
        ((c64(4),), kind(name, 5), ValueError),
        ((c64(4),), kind(name), ValueError),
        ((c64(4),), kind(name, 4, 4), ValueError),
        ((c64(2, 2, 2, 2),), kind(name, 2, 2, 2, 2), ValueError),
        ((c64(3, 0),), kind(name, 0), ValueError),
    )
    return [
        sample(name, "", c64(2, 8), 8, dtypes=COMPLEX, bad=bad),
        sample(name, "odd", c64(5), 5),
        sample(name, "one", c64(3, 1), 1),
        sample(name, "two-axes", c64(2, 3, 4), 3, 4),
        sample(name, "three-axes", c64(2, 3, 1, 4), 3, 1, 4),
        sample(name, "empty", c64(0, 4), 4),
    ]


RFFT = [
    sample(
        "RFFT",
        "",
        f32(2, 8),
        8,
        dtypes=REAL,
        bad=(
            ((c64(4),), kind("RFFT", 4), TypeError),
            ((f32(4).astype(np.float16),), kind("RFFT", 4), TypeError),
            ((np.arange(4),), kind("RFFT", 4), TypeError),
            ((f32(3),), kind("RFFT", 4), ValueError),
        ),
    ),
    sample("RFFT", "odd", f32(5), 5),
    sample("RFFT", "one", f32(3, 1), 1),
    sample("RFFT", "two", f32(2), 2),
    sample("RFFT", "two-axes", f32(2, 3, 4), 3, 4),
    sample("RFFT", "three-axes", f32(2, 3, 5), 2, 3, 5),
    sample("RFFT", "empty", f32(0, 4), 4),
]
IRFFT = [
    sample(
        "IRFFT",
        "",
        c64(2, 5),
        8,
        dtypes=COMPLEX,
        bad=(
            ((f32(5),), kind("IRFFT", 8), TypeError),
            ((c64(8),), kind("IRFFT", 8), ValueError),
            ((c64(4, 3),), kind("IRFFT", 3, 4), ValueError),
            ((c64(0),), kind("IRFFT", 0), ValueError),
        ),
    ),
    sample("IRFFT", "odd", c64(3), 5),
    sample("IRFFT", "one", c64(3, 1), 1),
    sample("IRFFT", "two", c64(2), 2),
    sample("IRFFT", "two-axes", c64(2, 3, 3), 3, 4),  # bins that are no conjugates along the first of them
    sample("IRFFT", "three-axes", c64(2, 3, 3), 2, 3, 5),
    sample("IRFFT", "empty", c64(0, 3), 4),
]
ROWS = [*of_complex("FFT"), *of_complex("IFFT"), *RFFT, *IRFFT]
