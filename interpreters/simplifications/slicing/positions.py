"""Integers that a dtype holds exactly, as narrowing an iota needs to know."""

from typing import Any

from tapeless.tracer import dtypes


def counts_to(last: int, dtype: Any) -> bool:
    """Tell whether a dtype holds each integer from 0 to `last`; others wrap around, or are rounded to one number."""
    if dtypes.is_inexact(dtype):
        return last <= 2 ** (dtypes.finfo(dtype).nmant + 1)
    return last <= dtypes.iinfo(dtype).max
