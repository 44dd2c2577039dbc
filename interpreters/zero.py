"""Symbolic zeros: tangents and cotangents that nothing flows through are never computed."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.flags import merge_lists, where_false
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.primitives.random import random_wrap
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray, aval_of, holds_keys, key_dtype_of, physical


@final
class Zero:
    """The symbolic zero of a type, without an array. Only interpreters see it; users get arrays."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: Final = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


def instantiate(x: Any) -> Any:
    """Return `x`, or an array of zeros if it is `Zero`; for a float0 type NumPy's, if primitives are evaluated."""
    if type(x) is not Zero:
        return x
    if x.aval.dtype == dtypes.float0 and core.is_evaluating():
        return np.zeros(x.aval.shape, dtypes.float0)
    if holds_keys(x.aval):  # a filler for keys that nobody reads
        return random_wrap(instantiate(Zero(physical(x.aval))), key_dtype_of(x.aval).impl)
    scalar = np.zeros((), dtypes.float0) if x.aval.dtype == dtypes.float0 else constant(0, x.aval)
    return broadcast_in_dim_p.bind(scalar, shape=x.aval.shape, dims=())[0]


def zero_of(x: Any) -> Zero:
    """Return the symbolic zero tangent of a value."""
    return Zero(aval_of(x).tangent())


def zeros_of(xs: Iterable[Any]) -> tuple[Zero, ...]:
    """Return the symbolic zero tangents of values."""
    return tuple(map(zero_of, xs))


def are_nonzero(ts: Iterable[Any]) -> tuple[bool, ...]:
    """Flag the tangents or cotangents that are not symbolic zeros."""
    return tuple([type(t) is not Zero for t in ts])


def with_zeros(results: Sequence[Any], some: Sequence[bool]) -> tuple[Sequence[Any], tuple[Any, ...]]:
    """Split `results` into primals and tangents, of which it holds those flagged by `some`; the others are `Zero`."""
    primals, tangents = results[: len(some)], results[len(some) :]
    return primals, merge_lists(some, tangents, zeros_of(where_false(some, primals)))
