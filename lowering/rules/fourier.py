"""Lowering of Fourier transforms to StableHLO's fft."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.emit import write_out
from tapeless.lowering.hlo import Function, Value, array
from tapeless.tracer.primitives.fourier import FftType, fft, fft_p
from tapeless.tracer.primitives.shape import transpose


def _fft(f: Function, outs: Any, x: Value, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if not x.aval.size:
        return (f.constant(0, outs[0]),)
    if f.platform != "cpu" and fft_type is FftType.IRFFT and len(fft_lengths) > 1:
        return write_out(f, lambda y: irfft_after_ifft(y, fft_lengths), [x])
    attributes = f"fft_length = {array(fft_lengths)}, fft_type = #stablehlo<fft_type {fft_type.name}>"
    is_single = x.aval.size == x.aval.shape[-1] and len(fft_lengths) == 1  # computed by the thread that runs it
    return (f.ops if is_single else f.in_turn)("fft", [x], outs, attributes)


def irfft_after_ifft(x: Any, lengths: tuple[int, ...]) -> Any:
    """Compute an inverse real FFT by IFFT of the other axes, then IRFFT of the last.

    cuFFT's own assumes that bins are symmetric (conjugates) along all axes.
    """
    *batch, last = range(x.ndim)
    place = len(batch) - len(lengths) + 1
    before, others = batch[:place], batch[place:]
    found = fft(transpose(x, (*before, last, *others)), FftType.IFFT, lengths[:-1])
    back = (*before, *[d + 1 for d in others], place)
    return fft(transpose(found, back), FftType.IRFFT, lengths[-1:])


emit.rules[fft_p] = _fft
