"""Discrete Fourier transforms of the last axes: complex to complex, real to complex, complex to real.

Along an axis of n elements, with w = exp(-2 pi i / n), the kinds are
    FFT    y[k] = Σ_j x[j] w^jk                    IFFT    x[j] = 1/n Σ_k y[k] w^-jk
    RFFT   bins 0 to n/2 of FFT, of a real x       IRFFT   the real x that has these bins
Source: StableHLO spec, fft. The other bins of a real x are the conjugates of these, so IRFFT reads no more; nor does it
read imaginary parts of bin 0, and of bin n/2 where n is even. Along several axes RFFT takes the last one first, and
IRFFT last; the others are transformed as by FFT and IFFT.
"""

import enum
from collections.abc import Sequence
from typing import Final

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.shape import static_ints
from tapeless.tracer.types import ShapedArray, aval_of

MOST_AXES = 3  # of one transform: StableHLO's limit


class FftType(enum.IntEnum):
    """Kind of a Fourier transform: forward or inverse, of complex or of real numbers."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Transform the last axes of x.

    Args:
      x: [.., lengths..]; of the last axis IRFFT has n // 2 + 1 bins. Real for RFFT; otherwise real numbers are made
        complex. Integers become floating point, and 32 bits are the least.
      fft_type: FFT, IFFT, RFFT or IRFFT, or the name of one.
      fft_lengths: of up to three axes, without the bins that are left out. Without any, FFT and IFFT are the identity.
    Returns: [.., lengths..]; of the last axis RFFT has n // 2 + 1 bins. Real for IRFFT, otherwise complex.
    Raises: TypeError if x is complex and `fft_type` RFFT, or if that is no kind; ValueError for an unknown name, and
      for lengths that are less than 1, or not those of x. Both sides are named.
    Source: StableHLO spec, fft, C1 to C5.
    """
    kind, lengths = kind_of(fft_type), static_ints(fft_lengths, "fft", "fft_lengths")
    aval = aval_of(x)
    core.refuse_keys("fft", aval)
    if kind is not FftType.RFFT:
        x = convert_element_type(x, dtypes.complex_of(aval.dtype))
        if not lengths and kind in (FftType.FFT, FftType.IFFT):
            return x
    elif not dtypes.is_complex(aval.dtype):  # the typing rule refuses complex operands
        x = convert_element_type(x, dtypes.real_part_dtype(dtypes.complex_of(aval.dtype)))
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)[0]


def kind_of(fft_type: object) -> FftType:
    """Convert the name of a kind to an FftType. Raises: ValueError for an unknown name, TypeError for anything else."""
    if isinstance(fft_type, FftType):
        return fft_type
    kinds = ", ".join(FftType.__members__)
    if not isinstance(fft_type, str):
        raise TypeError(f"fft: fft_type must be one of {kinds}, or its name, not {fft_type!r}.")
    if fft_type.upper() not in FftType.__members__:
        raise ValueError(f"fft: fft_type {fft_type!r} is none of {kinds}.")
    return FftType[fft_type.upper()]


def axis_lengths(kind: FftType, lengths: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find the lengths of the transformed axes of operand and result."""
    *others, last = lengths
    half = (*others, last // 2 + 1)
    return (half if kind is FftType.IRFFT else lengths), (half if kind is FftType.RFFT else lengths)


def _fft_type(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> tuple[ShapedArray, ...]:
    n, to_complex = len(fft_lengths), fft_type is FftType.RFFT
    given = f"{fft_type.name} of fft_lengths {fft_lengths}, operand {x}"
    if not (dtypes.is_float if to_complex else dtypes.is_complex)(x.dtype) or dtypes.bits_of(x.dtype) < 32:
        wanted = "float32 or float64" if to_complex else "complex64 or complex128"
        raise TypeError(f"fft: the operand must be {wanted}: {given}.")
    if not 1 <= n <= min(MOST_AXES, x.ndim):
        raise ValueError(f"fft: there must be one to {MOST_AXES} lengths, one for each of the last axes: {given}.")
    if min(fft_lengths) < 1:
        raise ValueError(f"fft: a length must be at least 1: {given}.")
    taken, made = axis_lengths(fft_type, fft_lengths)
    if x.shape[-n:] != taken:
        raise ValueError(f"fft: the last axes must have the lengths {taken}: {given}.")
    dtype = dtypes.complex_of(x.dtype) if to_complex else x.dtype
    dtype = dtypes.real_part_dtype(dtype) if fft_type is FftType.IRFFT else dtype
    return (x.update(shape=(*x.shape[:-n], *made), dtype=dtype, weak_type=False),)


fft_p: Final = Primitive("fft", _fft_type)
