"""Tiles of a sum of terms: cut the result into boxes side by side, in each of which some terms are added.

Search terms: guillotine cut, disjoint union, block matrix. Terms that write to separate boxes are concatenated; terms
that overlap are added in the box around them. Between the boxes are zeros.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from tapeless.interpreters.terms.accesses import DigitAxis

Interval = tuple[int, int]  # half-open: start, stop
Box = tuple[Interval, ...]  # an interval for each axis


def whole_box(shape: Sequence[int]) -> Box:
    """Return the box of all indices of a shape."""
    return tuple([(0, n) for n in shape])


def written_box(axes: Sequence[DigitAxis]) -> Box:
    """Return the box around the elements that are written along axes."""
    return tuple([(a.start, a.stop) for a in axes])


def fills_box(axes: Sequence[DigitAxis], sizes: Sequence[int]) -> bool:
    """Tell whether every element of `written_box` is written."""
    return all(a.step == 1 and all(d.radix == sizes[d.variable] for d in a.digits) for a in axes)


class Tile(NamedTuple):
    """A box, and the numbers of the terms that are added in it; zeros if there are none."""

    box: Box
    terms: tuple[int, ...] = ()


class CutBox(NamedTuple):
    """A box cut along an axis into boxes side by side, each as wide as the whole along the other axes."""

    box: Box
    axis: int
    parts: "tuple[tuple[Box, Tiling], ...]"  # each box, and the tiling inside of it


Tiling = Tile | CutBox


def tiling(boxes: Sequence[Box]) -> Tiling:
    """Cut the box around all boxes, at least one, recursively along planes that cut none of them."""
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
    """Group intervals that are connected by overlaps; in order."""
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
    """Yield the boxes along an axis of the hull, with a part or zeros between parts in each."""
    at = hull[axis][0]
    for part in parts:
        low, high = part.box[axis]
        for own, inner in (((at, low), None), ((low, high), part)):
            box = (*hull[:axis], own, *hull[axis + 1 :])
            if own[0] < own[1]:
                yield box, Tile(box) if inner is None else inner
        at = high


def additions(tiles: Tiling) -> int:
    """Count the scalar additions of a tiling."""
    if isinstance(tiles, CutBox):
        return sum(additions(part) for _, part in tiles.parts)
    return max(len(tiles.terms) - 1, 0) * size_of(tiles.box)


def size_of(box: Box) -> int:
    """Count the elements of a box."""
    return prod([high - low for low, high in box])


def cells(boxes: Sequence[Box], shape: Sequence[int]) -> Iterator[Box]:
    """Cut all of a shape into boxes along planes that cut none of the given ones."""
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
