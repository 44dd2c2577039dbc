"""Reductions over axes, positions of extremes, cumulative forms."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzzing.oracle.elementwise import better
from tests.fuzzing.oracle.interpreter import Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values, greatest, kind_of, least

ROWS = 64  # that are combined one after the other; of more, halves are

# ---- reductions ------------------------------------------------------------------------------------------------


@meaning("reduce_sum")
def _sum(run: Run, eqn: Any, x: Values) -> Any:
    axes = eqn.params["axes"]
    return np.sum(x, axis=axes, dtype=x.dtype) if axes else x


@meaning("reduce_prod")
def _prod(run: Run, eqn: Any, x: Values) -> Any:
    axes = eqn.params["axes"]
    return np.prod(x, axis=axes, dtype=x.dtype) if axes else x


_BITWISE = {"reduce_and": np.bitwise_and, "reduce_or": np.bitwise_or, "reduce_xor": np.bitwise_xor}


@meaning(*_BITWISE)
def _bitwise(run: Run, eqn: Any, x: Values) -> Any:
    """All bits for the conjunction of nothing, which the ufunc of booleans knows and that of integers, too."""
    return _BITWISE[eqn.primitive.name].reduce(x, axis=eqn.params["axes"])


@meaning("reduce_max", "reduce_min")
def _extreme(run: Run, eqn: Any, x: Values) -> Any:
    flat = _flattened(x, eqn.params["axes"])
    return folded(run, flat, eqn.primitive.name, eqn.invars[0].aval.dtype)


def _flattened(x: Values, axes: tuple[int, ...]) -> Values:
    """The axes to reduce as one, in front."""
    kept = [d for d in range(x.ndim) if d not in axes]
    moved = np.transpose(x, (*axes, *kept))
    n = int(np.prod([x.shape[d] for d in axes], dtype=int))
    return moved.reshape(n, *[x.shape[d] for d in kept])


def folded(run: Run, x: Values, name: str, dtype: Any) -> Values:
    """The greatest or least along the first axis, from what is below or above all."""
    greater, complex_numbers = name.endswith("max"), kind_of(dtype) == "c"
    start = least(dtype) if greater else greatest(dtype)
    out = np.full(x.shape[1:], start, x.dtype)
    while len(x) > ROWS:  # of many rows each half with the other
        half = len(x) // 2
        both = better(run, name, x[:half], x[half : 2 * half], greater=greater, complex_numbers=complex_numbers)
        x = np.concatenate([both, x[2 * half :]])
    for row in x:
        out = better(run, name, out, row, greater=greater, complex_numbers=complex_numbers)
    return out


# ---- positions of extremes -------------------------------------------------------------------------------------


@meaning("argmax", "argmin")
def _position(run: Run, eqn: Any, x: Values) -> Any:
    """The first nan, else the first of the extremes, as NumPy's."""
    axis, seen = eqn.params["axis"], run.compared(x, eqn.invars[0].aval.dtype)
    find = np.argmax if eqn.primitive.name == "argmax" else np.argmin
    found = find(seen, axis)
    if is_stepped(x):
        best = np.take_along_axis(seen, np.expand_dims(found, axis), axis)
        tangent = np.take_along_axis(x.imag, np.expand_dims(found, axis), axis)
        run.kink(eqn.primitive.name, (seen == best) & (x.imag != tangent))
    return found


# ---- cumulative ------------------------------------------------------------------------------------------------


def _along(axis: int, reverse: bool, f: Callable[[Values], Values], x: Values) -> Values:
    """f of x with the axis first, in the order of accumulation; put back after that."""
    moved = np.moveaxis(x, axis, 0)
    out = f(moved[::-1] if reverse else moved)
    return np.moveaxis(out[::-1] if reverse else out, 0, axis)


def _accumulated(combine: Callable[[Values, Values], Values]) -> Callable[[Values], Values]:
    """Every prefix combined: row by row, or where there are many by doubling, which takes fewer steps."""

    def f(x: Values) -> Values:
        out = x.copy()
        if len(x) > ROWS:
            for step in _doubling(len(x)):
                out[step:] = combine(out[:-step], out[step:])
            return out
        for i in range(1, len(x)):
            out[i] = combine(out[i - 1], x[i])
        return out

    return f


def _doubling(n: int) -> list[int]:
    """The powers of two below n: how far apart the parts are that prefixes are combined of (Hillis and Steele 1986)."""
    return [1 << k for k in range((n - 1).bit_length())]


@meaning("cumsum", "cumprod")
def _cumulative(run: Run, eqn: Any, x: Values) -> Any:
    combine = np.add if eqn.primitive.name == "cumsum" else np.multiply
    return _along(eqn.params["axis"], eqn.params["reverse"], lambda rows: combine.accumulate(rows, 0, x.dtype), x)


@meaning("cummax", "cummin")
def _cumulative_extreme(run: Run, eqn: Any, x: Values) -> Any:
    name = eqn.primitive.name

    def combine(a: Values, b: Values) -> Values:
        return better(run, name, a, b, greater=name == "cummax", complex_numbers=False)

    return _along(eqn.params["axis"], eqn.params["reverse"], _accumulated(combine), x)


@meaning("cumlogsumexp")
def _cumlogsumexp(run: Run, eqn: Any, x: Values) -> Any:
    return _along(eqn.params["axis"], eqn.params["reverse"], _accumulated(_log_of_sum), x)


def _log_of_sum(a: Values, b: Values) -> Values:
    """log(exp(a) + exp(b)); with tangents, their mean by the shares of both."""
    value = np.logaddexp(a.real, b.real)
    if not is_stepped(a, b):
        return value
    top = np.where(np.isfinite(value), value, 0)
    return value + 1j * (np.exp(a.real - top) * a.imag + np.exp(b.real - top) * b.imag)


@meaning("linear_recurrence")
def _linear_recurrence(run: Run, eqn: Any, decay: Values, x: Values) -> Any:
    """z[i] = decay[i] z[i - 1] + x[i]; the first decay has no say."""
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]
    both = np.stack([decay, x])

    def f(rows: Values) -> Values:
        out = rows[:, 1].copy()
        if len(rows) > ROWS:
            factors = rows[:, 0].copy()
            for step in _doubling(len(rows)):
                out[step:] = factors[step:] * out[:-step] + out[step:]
                factors[step:] = factors[step:] * factors[:-step]
            return out
        for i in range(1, len(rows)):
            out[i] = rows[i, 0] * out[i - 1] + rows[i, 1]
        return out

    moved = np.moveaxis(both, axis + 1, 0)
    out = f(moved[::-1] if reverse else moved)
    return np.moveaxis(out[::-1] if reverse else out, 0, axis)
