"""Symbolic zeros: tangents and cotangents that nothing flows through are never computed."""

from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.primitives.shape import full
from tapeless.tracer.types import ShapedArray


class Zero:
    """The zero of a type, unmaterialised. Stays inside transforms; users get arrays."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


def instantiate(x: Any) -> Any:
    """`x`, or zeros if it is symbolic. The zero of an integer's tangent space is a NumPy array of float0."""
    if type(x) is not Zero:
        return x
    if x.aval.dtype == dtypes.float0:
        return np.zeros(x.aval.shape, dtypes.float0)
    return full(x.aval.shape, 0, x.aval.dtype)


def zeros_of(avals: tuple[ShapedArray, ...]) -> tuple[Zero, ...]:
    """The zero tangents of values of these types."""
    return tuple([Zero(aval.tangent()) for aval in avals])
