"""Values told apart: by flags, a boolean for each, or by how many there are of a group."""

from collections.abc import Iterable, Sequence
from typing import Any


def chosen(flags: Iterable[bool], xs: Iterable[Any]) -> list[Any]:
    """Those of xs whose flag is true."""
    return [x for x, yes in zip(xs, flags, strict=True) if yes]


def others(flags: Iterable[bool], xs: Iterable[Any]) -> list[Any]:
    """Those of xs whose flag is false."""
    return [x for x, yes in zip(xs, flags, strict=True) if not yes]


def merged(flags: Iterable[bool], yes: Iterable[Any], no: Iterable[Any]) -> tuple[Any, ...]:
    """The inverse of `chosen` and `others`: every value in the place of its flag."""
    chosen, others = iter(yes), iter(no)
    return tuple([next(chosen) if flag else next(others) for flag in flags])


def grouped(xs: Sequence[Any], *counts: int) -> list[Any]:
    """xs in groups of these sizes, and the rest."""
    groups, at = [], 0
    for n in counts:
        groups.append(xs[at : at + n])
        at += n
    return [*groups, xs[at:]]
