"""Rules of Fourier transforms, which are linear; those of real numbers over the reals only.

The matrix of FFT is symmetric, so it is its own transpose, and so is IFFT. The pairing is Re(x y), without conjugation:
with m[k] the number of bins that bin k of RFFT stands for, 1 or 2 (its conjugate's), and N elements in all,
    IRFFT(z)[j] = 1/N Σ_k m[k] Re(z[k] w^-jk),     RFFT^T(ct)[j] = Σ_k Re(ct[k] w^jk) = N IRFFT(conj(ct) / m)[j],
    IRFFT^T(ct)[k] = m[k]/N Σ_j ct[j] w^-jk = m[k]/N conj(RFFT(ct))[k].
Over the other axes both sides have the same sum.
"""

from collections.abc import Callable
from math import prod
from typing import Any

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.index_rows import Avals, IndexRow, Params, core, rows
from tapeless.tracer.primitives.elementwise import conj, mul
from tapeless.tracer.primitives.fourier import FftType, fft_p
from tapeless.tracer.primitives.shape import broadcast_in_dim, pad
from tapeless.tracer.types import aval_of, exact


def _fft_transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if fft_type is FftType.RFFT:
        scaled = _by_multiplicity(conj(ct), fft_lengths, lambda m, size: size / m)
        return fft_p.bind(scaled, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)[0]
    if fft_type is FftType.IRFFT:
        (found,) = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        return _by_multiplicity(conj(found), fft_lengths, lambda m, size: m / size)
    return fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)[0]


def _by_multiplicity(x: Any, lengths: tuple[int, ...], factor: Callable[[int, int], float]) -> Any:
    """Scale bins by a factor of their multiplicity m, 1 at the ends and 2 in between, and the number of elements."""
    aval, is_even = aval_of(x), lengths[-1] % 2 == 0
    end, middle = [exact(factor(m, prod(lengths)), aval.dtype) for m in (1, 2)]
    between = broadcast_in_dim(middle, (aval.shape[-1] - 1 - is_even,), ())
    factors = pad(between, end, [(1, int(is_even), 0)])
    return mul(x, broadcast_in_dim(factors, aval.shape, (aval.ndim - 1,)))


def _fft_vmap(size: int, args: Any, dims: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """Batch a transform, which takes the last axes, with the mapped axis before these."""
    (x,), (d,) = args, dims
    if d >= aval_of(x).ndim - len(fft_lengths):
        x, d = vmap.to_front(x, d), 0
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), [d]


jvp.linear(fft_p)
transpose.unary(fft_p, _fft_transpose)
vmap.rules[fft_p] = _fft_vmap

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of the last axes, batched over the axes before.


def _fft_row(params: Params, avals: Avals) -> IndexRow:
    (x,) = avals
    (y,) = fft_p.type((x,), dict(params))
    return core([(x.shape, {d: d for d in range(x.ndim - len(params["fft_lengths"]))})], y.shape)


rows[fft_p] = _fft_row
