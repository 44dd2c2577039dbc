"""Symbolic zeros: tangents and cotangents that nothing flows through are never computed."""

from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray


class Zero:
    """The zero of a type, unmaterialised. Stays inside transforms; users get arrays."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


def instantiate(x: Any) -> Any:
    """`x`, or zeros if it is symbolic. The zero of an integer's tangent space is an array of float0, outside of
    programs one of NumPy's."""
    if type(x) is not Zero:
        return x
    if x.aval.dtype == dtypes.float0 and core.is_evaluating():
        return np.zeros(x.aval.shape, dtypes.float0)
    scalar = np.zeros((), dtypes.float0) if x.aval.dtype == dtypes.float0 else constant(0, x.aval)
    return broadcast_in_dim_p.bind(scalar, shape=x.aval.shape, dims=())[0]


def zeros_of(avals: tuple[ShapedArray, ...]) -> tuple[Zero, ...]:
    """The zero tangents of values of these types."""
    return tuple([Zero(aval.tangent()) for aval in avals])
