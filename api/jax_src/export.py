"""Symbolic sizes by the names of `jax.export`, for shapes of results; there are no exported programs.

A function is traced for two values of each size that is a symbol: a size of the result that differs is a symbol, too.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tapeless.tracer import pytree

__all__ = ["is_symbolic_dim", "symbolic_shape"]

_PRIMES = 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139  # sizes that no program is likely to name
_known: dict[str, "SymbolicDim"] = {}


class SymbolicDim:
    """A size that stands for any number from 2 on; `samples` are two of its values."""

    __slots__ = ("samples", "text")

    def __init__(self, text: str, samples: tuple[int, int]) -> None:
        self.text: Final = text
        self.samples: Final = samples

    def __repr__(self) -> str:
        return self.text


def symbolic_shape(shape_spec: str, *, constraints: Sequence[str] = (), scope: Any = None) -> tuple[Any, ...]:
    """Read a shape with names for sizes that are symbols: `(batch, 3)`; a name stands for the same size everywhere.

    Args:
      constraints, scope: as in JAX, and without effect: a symbol is at least 2.
    Raises: NotImplementedError for an expression, as `2*n`; ValueError for more than 6 names.
    """
    words = [word for word in re.split(r"[\s,()]+", shape_spec) if word]
    return tuple([int(word) if word.isdecimal() else _dim(word) for word in words])


def is_symbolic_dim(p: Any) -> bool:
    """Tell whether a size of an array is a symbol."""
    return isinstance(p, SymbolicDim)


def shapes_for_symbols(eval_shape: Callable[..., Any], fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Apply `eval_shape` to a function and its arguments, whose sizes may be symbols; then those that depend on them
    are symbols in the result, too."""
    dims = [n for x in pytree.leaves((args, kwargs)) for n in getattr(x, "shape", ()) if is_symbolic_dim(n)]
    if not dims:
        return eval_shape(fun, *args, **kwargs)
    samples = [_sampled(k, (args, kwargs)) for k in (0, 1)]
    small, large = [eval_shape(fun, *given, **named) for given, named in samples]
    names = {dim.samples: dim for dim in dims}
    return pytree.tree_map(lambda x, y: x.update(shape=tuple(_joined(x.shape, y.shape, names))), small, large)


def _dim(name: str) -> SymbolicDim:
    if not name.isidentifier():
        raise NotImplementedError(f"symbolic_shape: {name} is an expression: give numbers and names only.")
    if name not in _known:
        values = _PRIMES[2 * len(_known) :][:2]
        if not values:
            raise ValueError(f"symbolic_shape: there are {len(_known)} names already, {', '.join(_known)}.")
        _known[name] = SymbolicDim(name, (values[0], values[1]))
    return _known[name]


def _sampled(k: int, given: Any) -> Any:
    """Give the symbols in types their values number k."""

    def at(x: Any) -> Any:
        if not any(map(is_symbolic_dim, getattr(x, "shape", ()))):
            return x
        return x.update(shape=[n.samples[k] if is_symbolic_dim(n) else n for n in x.shape])

    return pytree.tree_map(at, given)


def _joined(small: Sequence[int], large: Sequence[int], names: dict[tuple[int, int], SymbolicDim]) -> Iterator[Any]:
    """Yield the sizes of one shape for two values of the symbols: a number, the symbol, or another one for the pair."""
    for pair in itertools.zip_longest(small, large):
        yield pair[0] if pair[0] == pair[1] else names.get(pair) or SymbolicDim("unnamed", pair)
