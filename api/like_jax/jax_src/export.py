"""Symbolic sizes by the names of `jax.export`, for shapes of results; there are no exported programs.

A function is traced for two values of each size that is a symbol: a size of the result that differs is a symbol, too.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tapeless.tracer import pytree

__all__ = ["is_symbolic_dim", "symbolic_shape"]

_LEAST = 83  # of the values of symbols, which are primes: sizes that no program is likely to name
_AT_LEAST = re.compile(r"\s*\w+\s*>=\s*(\d+)\s*")
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
      constraints: what sizes are at least, as `n >= 2`: up to 83, which is below all values tried.
      scope: None.
    Raises: NotImplementedError for an expression, as `2*n`, another constraint, or a scope.
    """
    for constraint in constraints:
        least = _AT_LEAST.fullmatch(constraint)
        if least is None or int(least[1]) > _LEAST:
            raise NotImplementedError(f"symbolic_shape: {constraint!r} is not of the form 'n >= 2', up to {_LEAST}.")
    if scope is not None:
        raise NotImplementedError(f"symbolic_shape: scope={scope!r} is not supported, only None.")
    words = [word for word in re.split(r"[\s,()]+", shape_spec) if word]
    return tuple([int(word) if word.isdecimal() else _dim(word) for word in words])


def is_symbolic_dim(p: Any) -> bool:
    """Tell whether a size of an array is a symbol."""
    return isinstance(p, SymbolicDim)


def shapes_for_symbols(eval_shape: Callable[..., Any], fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Compute the shapes of a function's results by `eval_shape`; sizes that depend on symbols are symbols.

    Raises: ValueError if the number of axes depends on a symbol; what `eval_shape` raises.
    """
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
        _known[name] = SymbolicDim(name, _samples(len(_known)))
    return _known[name]


def _samples(k: int) -> tuple[int, int]:
    """Choose the values of the symbol number k, two primes that no other symbol has."""
    primes = (n for n in itertools.count(_LEAST) if all(n % d for d in range(2, math.isqrt(n) + 1)))
    first, second = itertools.islice(primes, 2 * k, 2 * k + 2)
    return first, second


def _sampled(k: int, given: Any) -> Any:
    """Give the symbols in types their values number k."""

    def at(x: Any) -> Any:
        if not any(map(is_symbolic_dim, getattr(x, "shape", ()))):
            return x
        return x.update(shape=[n.samples[k] if is_symbolic_dim(n) else n for n in x.shape])

    return pytree.tree_map(at, given)


def _joined(small: Sequence[int], large: Sequence[int], names: dict[tuple[int, int], SymbolicDim]) -> Iterator[Any]:
    """Yield the sizes of one shape for two values of the symbols: a number, the symbol, or another one for the pair."""
    if len(small) != len(large):
        raise ValueError(f"eval_shape: a result has {len(small)} axes or {len(large)}, depending on a symbolic size.")
    for pair in zip(small, large):
        yield pair[0] if pair[0] == pair[1] else names.get(pair) or SymbolicDim("unnamed", pair)
