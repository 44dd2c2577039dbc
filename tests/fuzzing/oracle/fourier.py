"""Fourier transforms by their definition: matrices of roots of unity, an axis at a time.

Those of long axes, whose matrices would not fit into memory, by NumPy.
"""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import NotHolomorphicError, Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values

LONGEST = 512  # of axes that are transformed by the matrix
_FAST: dict[str, Any] = {"FFT": np.fft.fft, "IFFT": np.fft.ifft, "RFFT": np.fft.rfft, "IRFFT": np.fft.irfft}


@meaning("fft")
def _fft(run: Run, eqn: Any, x: Values) -> Any:
    kind, lengths = eqn.params["fft_type"].name, eqn.params["fft_lengths"]
    sign = 1 if kind in ("IFFT", "IRFFT") else -1
    first = x.ndim - len(lengths)
    if kind == "RFFT" and is_stepped(x):  # its result would be complex twice
        raise NotHolomorphicError("fft")
    for axis, n in enumerate(lengths[:-1], first):
        x = _along(x, axis, _roots(n, sign)) if n <= LONGEST else _FAST["IFFT" if sign > 0 else "FFT"](x, n, axis)
    n = lengths[-1]
    if n > LONGEST:
        return _FAST[kind](x, n, -1)
    if kind == "RFFT":
        return _along(x, x.ndim - 1, _roots(n, sign)[: n // 2 + 1])
    if kind != "IRFFT":
        return _along(x, x.ndim - 1, _roots(n, sign))
    count = np.array([1 if 2 * k in (0, n) else 2 for k in range(n // 2 + 1)])
    return _along(x, x.ndim - 1, (_roots(n, sign)[:, : n // 2 + 1]) * count).real


def _roots(n: int, sign: int) -> Values:
    """The matrix of a transform of n elements, the inverse's with its factor."""
    places = np.outer(np.arange(n), np.arange(n)) % n
    return np.exp(sign * 2j * np.pi * places / n) / (n if sign > 0 else 1)


def _along(x: Values, axis: int, matrix: Values) -> Values:
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
