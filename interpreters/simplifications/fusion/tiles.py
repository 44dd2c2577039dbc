"""Tiles of a sum of terms: boxes of the result that its terms write, side by side, or one over another.

Search terms: guillotine cut, disjoint union, block matrix. Terms that write apart are joined, those that meet are added
in the box around them. Nothing is written between.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from tapeless.interpreters.simplifications.fusion.accesses import DigitAxis

Interval = tuple[int, int]  # from the first to before the last
Box = tuple[Interval, ...]  # for each axis


def whole_box(shape: Sequence[int]) -> Box:
    """Make the box of all of a shape."""
    return tuple([(0, n) for n in shape])


def written_box(axes: Sequence[DigitAxis]) -> Box:
    """Make the box around what is written along axes."""
    return tuple([(a.start, a.stop) for a in axes])


def fills_box(axes: Sequence[DigitAxis], sizes: Sequence[int]) -> bool:
    """Tell whether all of the box around what is written along axes is written."""
    return all(a.step == 1 and all(d.radix == sizes[d.variable] for d in a.digits) for a in axes)


class Tile(NamedTuple):
    """A box with the terms that are added in it, by number; zeros if there are none."""

    box: Box
    terms: tuple[int, ...] = ()


class CutBox(NamedTuple):
    """A box cut along an axis: boxes side by side, each with the sides of the whole along the other axes."""

    box: Box
    axis: int
    parts: "tuple[tuple[Box, Tiling], ...]"  # the box, and what is written inside of it


Tiling = Tile | CutBox


def tiling(boxes: Sequence[Box]) -> Tiling:
    """CutBox the box around all boxes, of which there is at least one, where none of them is cut."""
    return _tiling(dict(enumerate(boxes)))


def _tiling(boxes: dict[int, Box]) -> Tiling:
    hull = tuple([(min(low for low, _ in sides), max(high for _, high in sides)) for sides in zip(*boxes.values())])
    for axis in range(len(hull)):
        groups = _apart({k: box[axis] for k, box in boxes.items()})
        if len(groups) > 1:
            parts = [_tiling({k: boxes[k] for k in own}) for own in groups]
            return CutBox(hull, axis, tuple(_sides(hull, axis, parts)))
    return Tile(hull, tuple(boxes))


def _apart(intervals: dict[int, Interval]) -> list[list[int]]:
    """Group intervals that overlap, or have a chain of such between them; in order."""
    groups, end = list[list[int]](), 0
    for k in sorted(intervals, key=lambda k: (intervals[k], k)):
        low, high = intervals[k]
        if groups and low < end:
            groups[-1].append(k)
        else:
            groups.append([k])
        end = max(end, high) if len(groups[-1]) > 1 else high
    return groups


def _sides(hull: Box, axis: int, parts: Sequence[Tiling]) -> Iterator[tuple[Box, Tiling]]:
    """Give parts the sides of the whole, with what is between them."""
    at = hull[axis][0]
    for part in parts:
        low, high = part.box[axis]
        for own, inner in (((at, low), None), ((low, high), part)):
            box = (*hull[:axis], own, *hull[axis + 1 :])
            if own[0] < own[1]:
                yield box, Tile(box) if inner is None else inner
        at = high


def additions(tiles: Tiling) -> int:
    """Count the elements that are added to others."""
    if isinstance(tiles, CutBox):
        return sum(additions(part) for _, part in tiles.parts)
    return max(len(tiles.terms) - 1, 0) * size_of(tiles.box)


def size_of(box: Box) -> int:
    """Count the elements of a box."""
    return prod([high - low for low, high in box])


def cells(boxes: Sequence[Box], shape: Sequence[int]) -> Iterator[Box]:
    """CutBox all of a shape into boxes, where none of the given ones is cut."""
    return _cells(tiling(boxes), whole_box(shape)) if boxes else iter((whole_box(shape),))


def _cells(tiles: Tiling, outer: Box) -> Iterator[Box]:
    for axis, ((low, high), (first, last)) in enumerate(zip(tiles.box, outer)):
        for own in ((first, low), (high, last)):
            if own[0] < own[1]:
                yield (*outer[:axis], own, *outer[axis + 1 :])
        outer = (*outer[:axis], (low, high), *outer[axis + 1 :])
    if isinstance(tiles, Tile):
        yield outer
    else:
        for box, inner in tiles.parts:
            yield from _cells(inner, box)
