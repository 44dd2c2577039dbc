"""A row that buys every generic test of a primitive (tests/test_primitives.py, tests/test_derivatives.py)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tapeless.tracer.core import Primitive


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
