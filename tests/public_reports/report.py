"""A row: one situation of a public report, a program of ours, and the right value from elsewhere.

`right` is a program of NumPy, SciPy or mpmath for the same arguments, or the value itself, worked out on paper.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapeless.numpy as tnp


@dataclass(frozen=True)
class Report:
    """A program that somebody, with some system, once saw compute the wrong thing."""

    address: str  # repository#number
    what: str  # the situation, in a few words
    f: Callable[..., Any]
    args: tuple[Any, ...]  # NumPy arrays; those of inexact dtypes are differentiated
    right: Any  # right(*args), or a value; in either case an array or a tuple of arrays
    slopes: Any = "differences"  # of the sum of the result by each inexact argument; else, by differences of `right`
    hessian: Any = None  # of the sum of the result by the first argument; True: by differences of the gradient
    mapped: bool = True  # whether two points at once are as one by one
    others: tuple[Any, ...] | None = None  # the second point, 3/4 of the first if there is none
    rtol: float = 1e-8  # state the reason where it is another one
    bits: int = 32  # the width of numbers without a dtype
    steps: bool = True  # whether it is run step by step, too; not where one large step is all of it
    alone: bool = False  # whether the compiled value alone is checked, too: what is done in place may depend on it
    fault: str = ""  # what is wrong with Tapeless here, until it is mended

    def __str__(self) -> str:
        return f"{self.address}-{self.what}"

    @property
    def inexact(self) -> tuple[int, ...]:
        return tuple(i for i, x in enumerate(self.args) if is_inexact(np.asarray(x).dtype))

    @property
    def differentiated(self) -> bool:
        return self.slopes is not None and self.inexact != ()

    def second_point(self) -> tuple[Any, ...]:
        if self.others is not None:
            return self.others
        return tuple(x * np.asarray(0.75, x.dtype) if i in self.inexact else x for i, x in enumerate(self.args))


@dataclass(frozen=True)
class Refusal:
    """A program that has no right value: the class of its error, and what the message has to contain."""

    address: str
    what: str
    f: Callable[..., Any]
    args: tuple[Any, ...]
    error: type[Exception]
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.address}-{self.what}"


def is_inexact(dtype: Any) -> bool:
    return bool(tnp.issubdtype(dtype, np.inexact))


def f64(*values: Any) -> Any:
    """A float64 array of numbers or rows."""
    return np.array(values, np.float64)


def drawn(*shape: int, seed: int = 0) -> Any:
    """Random float64 between -1 and 1."""
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def i32(*values: Any) -> Any:
    """An int32 array of numbers or rows."""
    return np.array(values, np.int32)
