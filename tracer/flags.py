"""Partition and merge lists by flags, a boolean for each element; split them by counts; let flags of a carry grow."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

Flags = tuple[bool, ...]
T = TypeVar("T")


def where_true(flags: Iterable[bool], xs: Iterable[Any]) -> list[Any]:
    """Select the elements of xs whose flag is true."""
    return [x for x, yes in zip(xs, flags, strict=True) if yes]


def where_false(flags: Iterable[bool], xs: Iterable[Any]) -> list[Any]:
    """Select the elements of xs whose flag is false."""
    return [x for x, yes in zip(xs, flags, strict=True) if not yes]


def merge_lists(flags: Iterable[bool], yes: Iterable[Any], no: Iterable[Any]) -> tuple[Any, ...]:
    """Invert `where_true` and `where_false`: put every element in the place of its flag."""
    true, false = iter(yes), iter(no)
    return tuple([next(true) if flag else next(false) for flag in flags])


def split_list(xs: Sequence[Any], *counts: int) -> list[Any]:
    """Split xs into groups of these sizes, followed by the rest."""
    groups, at = [], 0
    for n in counts:
        groups.append(xs[at : at + n])
        at += n
    return [*groups, xs[at:]]


def fixed_point(carry: Sequence[bool], step: Callable[[Flags], tuple[T, Sequence[bool]]]) -> tuple[T, Flags]:
    """Iterate `step` on the flags of a carry (linear, batched) until they no longer grow.

    Args:
      step: maps flags to what is made for them, and to those of the carry after a step, which others may follow.
    """
    before = tuple(carry)
    while True:
        made, after = step(before)
        grown = tuple([a or b for a, b in zip(before, after)])
        if grown == before:
            return made, before
        before = grown
