"""Sorting, and the largest elements."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, is_stepped, meaning
from tests.fuzzing.oracle.values import Values, kind_of


def _keys(run: Run, x: Values, dtype: Any) -> list[Values]:
    """What numbers are ordered by, in order of precedence: nan last, then by size; the two zeros are equal."""
    seen = run.compared(x, dtype)
    if kind_of(dtype) == "c":
        return [key for part in (seen.real, seen.imag) for key in _keys_of_float(part)]
    return _keys_of_float(seen) if kind_of(dtype) == "f" else [seen]


def _keys_of_float(x: Values) -> list[Values]:
    return [np.isnan(x), np.where(np.isnan(x), 0, x) + 0.0]


def _order(keys: list[Values], axis: int) -> Values:
    """The stable order along an axis."""
    if not keys[0].size:
        return np.zeros(keys[0].shape, int)
    return np.lexsort(keys[::-1], axis)


@meaning("sort")
def _sort(run: Run, eqn: Any, *xs: Values) -> Any:
    axis, n = eqn.params["dimension"], eqn.params["num_keys"]
    keys = [key for x, v in zip(xs[:n], eqn.invars) for key in _keys(run, x, v.aval.dtype)]
    order = _order(keys, axis)
    out = tuple(np.take_along_axis(x, order, axis) for x in xs)
    sorted_keys = [np.take_along_axis(key, order, axis) for key in keys]
    if any(map(is_stepped, out)):
        run.kink("sort", _ties(sorted_keys, out, axis))
    return out


def _ties(keys: list[Values], xs: Any, axis: int) -> Any:
    """Neighbours of equal keys whose tangents differ."""
    pairs = [(np.moveaxis(v, axis, 0)[1:], np.moveaxis(v, axis, 0)[:-1]) for v in keys]
    equal = np.all([a == b for a, b in pairs], axis=0)
    moves = [np.moveaxis(x.imag, axis, 0) for x in xs if np.iscomplexobj(x)]
    return equal & np.any([m[1:] != m[:-1] for m in moves], axis=0)


@meaning("top_k")
def _top_k(run: Run, eqn: Any, x: Values) -> Any:
    """The last of the order of the reversed elements, which keeps ties as they were; 0.0 is above -0.0 here."""
    k, dtype = eqn.params["k"], eqn.invars[0].aval.dtype
    keys = _keys(run, x, dtype)
    if kind_of(dtype) == "f":
        keys.append(~np.signbit(x.real) | np.isnan(x.real))
    order = x.shape[-1] - 1 - _order([key[..., ::-1] for key in keys], -1)[..., ::-1]
    ranked: Values = np.take_along_axis(x, order, -1)
    if is_stepped(x):
        run.kink("top_k", _ties([ranked.real], [ranked], ranked.ndim - 1))
    return ranked[..., :k], order[..., :k]
