"""Index row of Fourier transforms: functions of the last axes, batched over the axes before."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import IndexRow, Params, core, rows
from tapeless.tracer.primitives.fourier import fft_p
from tapeless.tracer.types import ShapedArray


def _fft(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    (x,) = avals
    (y,) = fft_p.type((x,), dict(params))
    return core([(x.shape, {d: d for d in range(x.ndim - len(params["fft_lengths"]))})], y.shape)


rows[fft_p] = _fft
