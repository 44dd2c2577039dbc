"""Operations that move elements without computing."""

from typing import Any

import numpy as np

from tests.fuzzing.oracle.interpreter import Run, meaning, meanings, plain
from tests.fuzzing.oracle.values import Values


def _identity(run: Run, eqn: Any, *xs: Values) -> Any:
    return xs


for _name in ("name", "move", "materialize", "optimization_barrier"):
    meanings[_name] = _identity


@meaning("dce_sink")
def _nothing(run: Run, eqn: Any, *xs: Values) -> Any:
    return ()


@meaning("broadcast_in_dim")
def _broadcast(run: Run, eqn: Any, x: Values) -> Any:
    shape, dims = eqn.params["shape"], eqn.params["dims"]
    sizes = [1] * len(shape)
    for d, n in zip(dims, x.shape):
        sizes[d] = n
    return np.broadcast_to(x.reshape(sizes), shape)


@meaning("iota")
def _iota(run: Run, eqn: Any) -> Any:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    sizes = [n if d == axis else 1 for d, n in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis]).reshape(sizes), shape)


meanings["reshape"] = plain(lambda x, shape: x.reshape(shape))
meanings["transpose"] = plain(lambda x, permutation: np.transpose(x, permutation))
meanings["rev"] = plain(lambda x, dimensions: np.flip(x, dimensions))
meanings["concatenate"] = plain(lambda *xs, dimension: np.concatenate(xs, dimension))


@meaning("slice")
def _slice(run: Run, eqn: Any, x: Values) -> Any:
    p = eqn.params
    return x[tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"]))]


@meaning("split")
def _split(run: Run, eqn: Any, x: Values) -> Any:
    ends = np.cumsum(eqn.params["sizes"])[:-1]
    return tuple(np.split(x, ends, eqn.params["axis"]))


@meaning("pad")
def _pad(run: Run, eqn: Any, x: Values, value: Values) -> Any:
    """Every element goes to its own place, if that is inside."""
    config = eqn.params["padding_config"]
    out = np.full(eqn.outvars[0].aval.shape, value, np.result_type(x, value))
    places = [low + np.arange(n) * (gap + 1) for n, (low, _, gap) in zip(x.shape, config)]
    inside = [(at >= 0) & (at < n) for at, n in zip(places, out.shape)]
    if x.ndim:
        kept = np.ix_(*[np.flatnonzero(yes) for yes in inside])
        out[np.ix_(*[at[yes] for at, yes in zip(places, inside)])] = x[kept]
        return out
    return x
