"""Typing rules of elementwise operations: the dtypes of operands, and the type of the result.

Operands have one shape, or rank 0 and are broadcast; they have one dtype. `same`, `predicate` and `real_part` make
typing rules, of which there are few forms.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.advice.widths import mismatch
from tapeless.tracer.core import TypingRule
from tapeless.tracer.types import ShapedArray

BOOL = np.dtype(bool)

NUMERIC, ORDERED, INEXACT, REAL, FLOAT, WIDE_FLOAT, COMPLEX, INTEGER, BITS, ANY = "noixrwcjba"
_KINDS: dict[str, tuple[str, Callable[[np.dtype[Any]], bool]]] = {
    NUMERIC: ("a number", lambda d: not dtypes.is_bool(d)),
    ORDERED: ("a real number or boolean", lambda d: not dtypes.is_complex(d)),
    INEXACT: ("floating point or complex", dtypes.is_inexact),
    REAL: ("real", lambda d: not dtypes.is_complex(d) and not dtypes.is_bool(d)),
    FLOAT: ("floating point", dtypes.is_float),
    WIDE_FLOAT: ("float32 or float64", lambda d: d == np.float32 or d == np.float64),
    COMPLEX: ("complex", dtypes.is_complex),
    INTEGER: ("an integer", dtypes.is_integer),
    BITS: ("boolean or an integer", lambda d: dtypes.is_bool(d) or dtypes.is_integer(d)),
    ANY: ("a number or boolean", lambda d: True),
}
_ADVICE: dict[str, str] = {
    NUMERIC: "\n  Convert with astype, or use the operators of booleans: &, |, ^ and ~.",
    BITS: "\n  Put comparisons in parentheses, (x > 0) & (y > 0), or convert with astype.",
}


def same(name: str, kinds: str) -> TypingRule:
    """Make a typing rule whose result has the common type of the operands."""
    return lambda *avals: (joint_type(name, avals, kinds),)


def predicate(name: str, kinds: str) -> TypingRule:
    """Make a typing rule whose result is boolean."""
    return lambda *avals: (joint_type(name, avals, kinds).update(dtype=BOOL, weak_type=False),)


def real_part(name: str, kinds: str) -> TypingRule:
    """Make a typing rule whose result is real; real operands keep their type."""

    def typing_rule(x: ShapedArray) -> tuple[ShapedArray, ...]:
        aval = joint_type(name, (x,), kinds)
        return (aval.update(dtype=dtypes.real_part_dtype(aval.dtype)),)

    return typing_rule


def joint_type(name: str, avals: tuple[ShapedArray, ...], kinds: str = ANY) -> ShapedArray:
    """Find the type that operands of an elementwise operation share: one dtype, one shape up to rank 0.

    Raises: TypeError if dtypes differ or are not among `kinds`, ValueError if shapes differ; all are named.
    """
    dtype, shape, weak = avals[0].dtype, avals[0].shape, avals[0].weak_type
    for aval in avals[1:]:
        if aval.dtype != dtype:
            raise mismatch(f"{name}: operands differ in dtype: {list_types(avals)}. Convert with astype.", *avals)
        if aval.shape != shape:
            shape = joint_shape(name, avals)
        weak = weak and aval.weak_type
    what, allowed = _KINDS[kinds]
    if not allowed(dtype):
        raise TypeError(f"{name}: the operand must be {what}, not {list_types(avals)}.{_ADVICE.get(kinds, '')}")
    return ShapedArray(shape, dtype, weak)


def joint_shape(name: str, avals: tuple[ShapedArray, ...]) -> tuple[int, ...]:
    """Find the shape that operands share, apart from rank 0. Raises: ValueError if shapes differ; all are named."""
    shapes = {aval.shape for aval in avals if aval.shape}
    if len(shapes) > 1:
        raise ValueError(f"{name}: operands differ in shape: {list_types(avals)}. Broadcast them first.")
    return shapes.pop() if shapes else ()


def list_types(avals: tuple[ShapedArray, ...]) -> str:
    """Join types for a message: `float32[3] and float32[]`."""
    return " and ".join(map(str, avals))
