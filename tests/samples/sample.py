"""A row that buys every generic test of a primitive (tests/test_primitives.py, tests/test_derivatives.py)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapeless.tracer.core import Primitive
from tapeless.tracer.extended_dtypes import KEY
from tapeless.tracer.primitives.random import random_unwrap, random_wrap
from tapeless.tracer.types import ShapedArray


@dataclass(frozen=True)
class Sample:
    """One use of a primitive, with what NumPy says it computes."""

    primitive: Primitive
    args: tuple[Any, ...]
    reference: Callable[..., Any]  # reference(*args, **params) -> array, or tuple of arrays
    params: Mapping[str, Any] = field(default_factory=dict)
    linear_in: tuple[int, ...] = ()  # operands it is structurally linear in, together
    differentiable: tuple[int, ...] | None = None  # operands with a derivative; None: all that are inexact
    dtypes: tuple[str, ...] = ()  # dtypes that the args are converted to in turn, values compared loosely
    bad: tuple[tuple[tuple[Any, ...], Mapping[str, Any], type[Exception]], ...] = ()
    axis: tuple[str, int] | None = None  # name and size of the axis it speaks across, the first of all operands
    label: str = ""
    rtol: float = 1e-6  # of the value in the dtype of args; state the reason where it is larger

    def __str__(self) -> str:
        return f"{self.primitive}{'-' + self.label if self.label else ''}"


def f32(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Any:
    """Random float32 of a shape, between low and high."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32)


# ---- keys of random numbers, of which NumPy knows nothing: records of two words, which it moves as it moves anything


WORDS = 2
RECORD = np.dtype([(f"word{i}", np.uint32) for i in range(WORDS)])


class Keys(np.ndarray[Any, Any]):
    """Keys as records, of the type that they have as an array of ours."""

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, KEY)


def keys(*shape: int, seed: int = 0) -> Any:
    """Random keys, as records."""
    words = np.random.default_rng(seed).integers(0, 2**32, (*shape, WORDS), np.uint32)
    return words.view(RECORD)[..., 0].view(Keys)


def ours(x: Any) -> Any:
    """An operand as a primitive takes it: keys as an array of ours, anything else as it is."""
    if getattr(x, "dtype", None) != RECORD:
        return x
    return random_wrap(np.ravel(np.asarray(x)).view(np.uint32).reshape(*x.shape, WORDS))


def numpys(x: Any) -> Any:
    """A result as NumPy's: keys as records."""
    if getattr(x, "dtype", None) is not KEY:
        return np.asarray(x)
    return np.asarray(random_unwrap(x)).view(RECORD)[..., 0]
