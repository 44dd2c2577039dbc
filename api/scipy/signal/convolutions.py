"""Convolutions and correlations of arrays with any number of axes, as in `scipy.signal`."""

import operator
from collections.abc import Sequence
from typing import Any

from tapeless.numpy import fft
from tapeless.tracer import core, dtypes
from tapeless.tracer import numpy as tnp
from tapeless.tracer.advice.called_functions import find_called
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.eager_calls import one_program
from tapeless.tracer.numpy.promotion import array_operand, number_operand, promoted_inexact_dtypes
from tapeless.tracer.primitives.contraction import conv_general_dilated
from tapeless.tracer.primitives.elementwise import complex as complex_number

_PADDING = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


@one_program
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """Convolve two arrays of the same number of axes.

    Args:
      in1: [m..]. in2: [n..].
      mode: "full": [m + n - 1..]; "same": its middle part, [m..]; "valid": the part without margins, [|m - n| + 1..].
      method: "direct", also for "auto"; "fft", by `fftconvolve`.
      precision: of the products, as for `lax.conv_general_dilated`.
    Returns: floating point or complex.
    Raises: ValueError if the numbers of axes differ, an array has no elements, there is no such mode or method, or
      mode is "valid" and neither array fits within the other.
    """
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"convolve: method must be 'auto', 'direct' or 'fft', not {method!r}.")
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    x, y = _operands("convolve", in1, in2, mode)
    return _direct(x, y, mode=mode, precision=precision)


@one_program
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """Cross-correlate two arrays: convolve in1 with in2 reversed and conjugated.

    Args, Returns, Raises: as for `convolve`.
    """
    return convolve(in1, tnp.flip(tnp.conj(number_operand("correlate", in2))), mode, method, precision)


@one_program
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Array:
    """Convolve two matrices.

    Args:
      in1: [m, n]. in2: [k, l].
      boundary: how in1 continues beyond its edges: "fill" with `fillvalue`, "wrap" periodically, "symm" by reflection.
      mode, precision: as for `convolve`.
    Returns: floating point or complex.
    Raises: ValueError for other than matrices, or another boundary, or as `convolve`.
    """
    return _convolved("convolve2d", in1, in2, mode, boundary, fillvalue, precision)


@one_program
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Array:
    """Cross-correlate two matrices. Args, Returns, Raises: as for `convolve2d`.

    As in SciPy the result is conjugated if mode is "valid" and in2 is the larger.
    """
    x, y = number_operand("correlate2d", in1), number_operand("correlate2d", in2)
    if mode == "valid" and x.shape != y.shape and all(m <= n for m, n in zip(x.shape, y.shape)):
        return _convolved("correlate2d", tnp.flip(y), tnp.conj(x), mode, boundary, fillvalue, precision)
    return tnp.flip(_convolved("correlate2d", tnp.flip(x), tnp.conj(y), mode, boundary, fillvalue, precision))


@one_program
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | int | None = None) -> Array:
    """Convolve two arrays by Fourier transforms.

    Args:
      axes: along which to convolve, all if None; the others have equal sizes, or broadcast from 1.
      mode: as for `convolve`.
    Returns: floating point or complex.
    Raises: as `convolve`; ValueError for axes out of range, or if sizes differ in the others.
    """
    x, y = _operands("fftconvolve", in1, in2, mode, None if axes is None else _indices(axes))
    along = range(x.ndim) if axes is None else sorted({_checked(a, x) for a in _indices(axes)})
    others = [i for i in range(x.ndim) if i not in along]
    if any(x.shape[i] != y.shape[i] and 1 not in (x.shape[i], y.shape[i]) for i in others):
        raise ValueError(f"fftconvolve: sizes differ in other axes than {tuple(along)}: {x.aval} and {y.aval}.")
    return _by_transforms(x, y, mode=mode, axes=tuple(along))


def _indices(axes: Sequence[int] | int) -> list[int]:
    return [operator.index(a) for a in (axes if isinstance(axes, Sequence) else [axes])]


def _checked(axis: int, x: Array) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"fftconvolve: axis {axis} is out of range for {x.aval}.")
    return axis % x.ndim


def _operands(name: str, in1: Any, in2: Any, mode: str, axes: Sequence[int] | None = None) -> tuple[Array, Array]:
    x, y = (array_operand(name, v) for v in promoted_inexact_dtypes(name, in1, in2))
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{find_called(name)}: mode must be 'full', 'same' or 'valid', not {mode!r}.")
    if x.ndim != y.ndim or not x.size or not y.size:
        raise ValueError(f"{find_called(name)}: arrays with elements and as many axes, not {x.aval} and {y.aval}.")
    pairs = [p for i, p in enumerate(zip(x.shape, y.shape)) if axes is None or i in [a % x.ndim for a in axes]]
    if mode == "valid" and not (all(m >= n for m, n in pairs) or all(m <= n for m, n in pairs)):
        raise ValueError(f"{find_called(name)}: for mode 'valid' one must be within the other: {x.aval} and {y.aval}.")
    return x, y


def _span(m: int, n: int, mode: str) -> tuple[int, int]:
    """Return begin and size of the part of the full convolution of m and n elements that `mode` keeps."""
    whole = m + n - 1
    size = {"full": whole, "same": m, "valid": abs(m - n) + 1}[mode]
    return (whole - size) // 2, size


@core.compound
def _direct(x: Any, y: Any, *, mode: str, precision: Any) -> Any:
    if not x.ndim:
        return x * y
    spans = [_span(m, n, mode) for m, n in zip(x.shape, y.shape)]
    padding = [(n - 1 - start, start + size - m) for m, n, (start, size) in zip(x.shape, y.shape, spans)]
    return _moved_over(x, tnp.flip(y), padding, precision)


def _moved_over(x: Any, kernel: Any, padding: Sequence[tuple[int, int]], precision: Any) -> Any:
    """Correlate without conjugation; complex operands by their real and imaginary parts."""
    if dtypes.is_complex(x.dtype):
        a, b = tnp.real(x), tnp.imag(x)
        c, d = tnp.real(kernel), tnp.imag(kernel)
        ac, bd, ad, bc = (_moved_over(*pair, padding, precision) for pair in ((a, c), (b, d), (a, d), (b, c)))
        return complex_number(ac - bd, ad + bc)
    strides = (1,) * x.ndim
    return conv_general_dilated(x[None, None], kernel[None, None], strides, padding, precision=precision)[0, 0]


def _convolved(name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: ArrayLike, precision: Any) -> Array:
    x, y = _operands(name, in1, in2, mode)
    if x.ndim != 2:
        raise ValueError(f"{name}: matrices, not {x.aval} and {y.aval}.")
    if boundary not in _PADDING:
        raise ValueError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', not {boundary!r}.")
    if mode == "valid":
        return _direct(x, y, mode=mode, precision=precision)
    spans = [_span(m, n, mode) for m, n in zip(x.shape, y.shape)]
    widths = [(n - 1 - start, start + size - m) for m, n, (start, size) in zip(x.shape, y.shape, spans)]
    how: dict[str, Any] = {"constant_values": fillvalue} if boundary == "fill" else {}
    padded = tnp.pad(x, widths, _PADDING[boundary], **how)
    return _moved_over(padded, tnp.flip(y), [(0, 0)] * 2, precision)


@core.compound
def _by_transforms(x: Any, y: Any, *, mode: str, axes: tuple[int, ...]) -> Any:
    if not axes or (all(1 in (x.shape[a], y.shape[a]) for a in axes) and mode == "full"):
        return x * y
    sizes = [x.shape[a] + y.shape[a] - 1 for a in axes]
    there, back = (fft.fftn, fft.ifftn) if dtypes.is_complex(x.dtype) else (fft.rfftn, fft.irfftn)
    whole = back(there(x, sizes, axes) * there(y, sizes, axes), sizes, axes)
    for a in axes:
        start, size = _span(x.shape[a], y.shape[a], mode)
        whole = tnp.take(whole, tnp.arange(start, start + size), axis=a) if size != whole.shape[a] else whole
    return whole
