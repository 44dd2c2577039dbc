"""Calls of functions, and the operands that they are made with."""

import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FULL = bool(os.environ.get("TAPELESS_NUMPY_GRID"))  # every dtype and shape of every row, not a sample of them

DTYPES = tuple(map(np.dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)))  # fmt: skip
SHAPES = ((), (0,), (1,), (4,), (0, 3), (3, 1), (2, 3), (1, 1), (2, 0, 3), (2, 3, 1), (2, 1, 3), (2, 3, 4))
SOME_SHAPES = ((), (0, 3), (2, 1, 3))


@dataclass
class Case:
    """One call. Arrays of NumPy among the arguments, in sequences too, are operands; all else is known."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = [_short(x) for x in self.args] + [f"{k}={_short(v)}" for k, v in self.kwargs.items()]
        return f"({', '.join(shown)})"


def _short(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)}"
    if isinstance(x, (list, tuple)):
        inside = ", ".join(map(_short, x))
        return f"[{inside}]" if isinstance(x, list) else f"({inside})"
    return f"{x!r:.40}"


@dataclass
class Row:
    """The calls of one function, and how its results are compared.

    Attributes:
      cases: the calls.
      numpy, ours: the functions, if they are not those of that name.
      inexact: of integers and booleans, what is expected is computed from float64.
      tolerance: in units of the last place that results may be off, beside those that any function may.
      dtypes: why dtypes are not compared with NumPy's, if they are not.
      keywords: keywords that both have and that no call gives, each with its reason.
      refuses: what is refused though NumPy accepts it, each reason with a predicate of the case.
      accepts: what is accepted though NumPy refuses it, likewise.
      jax: what has another dtype than JAX's, likewise.
    """

    cases: Sequence[Case]
    numpy: Callable[..., Any] | None = None
    ours: Callable[..., Any] | None = None
    inexact: bool = False
    tolerance: float = 0
    dtypes: str = ""
    keywords: dict[str, str] = field(default_factory=dict)
    refuses: dict[str, Callable[[Case], bool]] = field(default_factory=dict)
    accepts: dict[str, Callable[[Case], bool]] = field(default_factory=dict)
    jax: dict[str, Callable[[Case], bool]] = field(default_factory=dict)


def call(*args: Any, **kwargs: Any) -> Case:
    """A call as it is written."""
    return Case(args, kwargs)


def of_kinds(kinds: str) -> list[np.dtype[Any]]:
    """The dtypes of these kinds: b, i, u, f and c."""
    return [d for d in DTYPES if d.kind in kinds]


def changed(case: Case, change: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The arguments with every array changed."""

    def changed(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return change(x)
        if type(x) in (list, tuple):
            return type(x)(map(changed, x))
        return x

    return changed(case.args), {k: changed(v) for k, v in case.kwargs.items()}


def dtypes_in(case: Case) -> list[np.dtype[Any]]:
    """The dtypes of the operands, and those asked for, but for Python's types, which are of the default width."""
    given = [
        x
        for x in (*case.args, *case.kwargs.values())
        if isinstance(x, np.dtype) or (isinstance(x, type) and x in _SCALARS)
    ]
    found = [np.dtype(x) for x in given]
    changed(case, lambda x: found.append(x.dtype) or x)
    return found


_SCALARS = frozenset(d.type for d in DTYPES)


# ---- operands ------------------------------------------------------------------------------------------------


def numbers(dtype: Any, shape: tuple[int, ...], low: float = -9, high: float = 9, salt: str = "") -> np.ndarray:
    """Numbers drawn between two bounds, the same ones every time."""
    return np.asarray(_drawn(np.dtype(dtype), shape, low, high, salt))


def _drawn(dtype: np.dtype[Any], shape: tuple[int, ...], low: float, high: float, salt: str) -> Any:
    rng = np.random.default_rng(zlib.crc32(f"{dtype}{shape}{low}{high}{salt}".encode()))
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(max(low, 0) if dtype.kind == "u" else low, high, shape, endpoint=True).astype(dtype)
    drawn = rng.uniform(low, high, shape)
    return (drawn + 1j * rng.uniform(low, high, shape) if dtype.kind == "c" else drawn).astype(dtype)


def special(dtype: Any, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """A vector of what functions treat in ways of their own, as far as it is between two bounds, and a few others."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        given = [0, 1, 2, 3, 7, 100, info.max // 2, info.max - 1, info.max, info.min, info.min + 1, -1, -2, -3, -100]
        values = sorted({n for n in given if max(low, info.min) <= n <= min(high, info.max)})
        return np.array(values, dtype)
    given = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -7, 0.1, -0.3, 20.25, -33.5, 1e-3, 1000])
    finite = given[(given >= low) & (given <= high)]
    if dtype.kind == "c":
        drawn = numbers(dtype, (5,), max(low, -5), min(high, 5))
        return np.concatenate([finite + 0j, finite[::-1] * (0.7 + 0.3j), drawn]).astype(dtype)
    info = np.finfo(dtype)
    ends = np.array([np.inf, -np.inf, np.nan, info.max, info.min, info.eps], dtype)
    kept = ends[np.isnan(ends) | ((ends >= low) & (ends <= high))]
    return np.concatenate([finite.astype(dtype), kept, numbers(dtype, (5,), max(low, -5), min(high, 5))])


def sampled(items: Iterable[Any], count: int, salt: str) -> list[Any]:
    """All of them on the full grid, else `count` that are spread over them, others for another salt."""
    found = list(items)
    if FULL or len(found) <= count:
        return found
    start = zlib.crc32(salt.encode())
    return [found[(start + k * len(found) // count) % len(found)] for k in range(count)]
