"""Programs that users have, each written once for both libraries, with two sizes, and held-out draws of others.

A builder takes a library (`tapeless` or `jax`) and sizes by name, and returns a function and its arguments as NumPy
arrays. The first argument holds the parameters, of which derivatives are taken. A function uses no dtype of its own:
`Case.problem` casts the arguments to the one that is asked for.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.programs.compositions import COMPOSITIONS, Derivative

Problem = tuple[Callable[..., Any], tuple[Any, ...]]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Program:
    """A builder, the sizes of a small problem and of one that users have, and how closely the libraries must agree.

    `tolerance` is relative to the greatest entry of a result, for float32: sums of some thousand terms in another order
    unless a program says more. `derivative` is what users run in place of value and gradient.
    """

    build: Callable[..., Problem]
    small: Sizes
    large: Sizes
    tolerance: float = 2e-3
    derivative: Derivative = COMPOSITIONS["gradient"]


@dataclass(frozen=True)
class Case:
    """A program at given sizes, of a dtype, under a composition of transformations."""

    name: str
    label: str
    sizes: Sizes
    dtype: str = "float32"
    composition: str = ""
    program: Program = field(repr=False, compare=False, kw_only=True)

    @property
    def tolerance(self) -> float:
        """Loosen for second derivatives and for repeated steps, and tighten for float64, by what rounding explains."""
        wide = 1e-5 if self.dtype == "float64" else 1.0
        return self.program.tolerance * wide * (5 if self.composition in ("hessian", "descent") else 1)

    def problem(self, lib: ModuleType) -> tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]:
        """Return the function, its derivative, and the arguments on the device."""
        f, args = self.program.build(lib, **self.sizes)
        derivative = COMPOSITIONS[self.composition] if self.composition else self.program.derivative
        return f, derivative(lib, f), lib.tree.map(lambda leaf: lib.numpy.asarray(cast(leaf, self.dtype)), args)


def cast(leaf: Any, dtype: str) -> Any:
    """Return floats in the dtype, signed integers in that of indices, and keys as they are."""
    array = np.asarray(leaf)
    if array.dtype.kind == "f":
        return array.astype(dtype)
    return array.astype(np.int32) if array.dtype.kind == "i" else array


def usual(name: str, program: Program) -> list[Case]:
    return [Case(name, label, getattr(program, label), program=program) for label in ("small", "large")]


def drawn(name: str, program: Program, seed: int) -> list[Case]:
    """Draw sizes, a dtype and a composition: the same for a seed and a name, whatever else is drawn."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    sizes = {
        size: round(np.exp(rng.uniform(np.log(program.small[size]), np.log(program.large[size]))))
        for size in program.small
    }
    dtype, composition = str(rng.choice(["float32", "float32", "float64"])), str(rng.choice(list(COMPOSITIONS)))
    label = f"{composition}, {dtype}, " + " ".join(map(str, sizes.values()))
    return [Case(name, label, sizes, dtype, composition, program=program)]
