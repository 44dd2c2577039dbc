"""Boxes side by side and over one another: every element is in one part."""

import numpy as np
import pytest

from tapeless.interpreters.terms.tiles import Box, CutBox, Tiling, additions, cells, tiling

CASES: dict[str, tuple[list[Box], int]] = {
    "one": ([((1, 3), (0, 2))], 0),
    "side by side": ([((0, 2),), ((2, 5),)], 0),
    "apart": ([((4, 5),), ((0, 2),)], 0),
    "over one another": ([((0, 3),), ((2, 5),)], 5),
    "the same": ([((1, 3),), ((1, 3),), ((1, 3),)], 4),
    "a chain": ([((0, 3),), ((2, 6),), ((5, 7),), ((8, 9),)], 14),
    "a long one over short ones": ([((0, 9),), ((1, 2),), ((3, 4),)], 18),
    "four quarters": ([((0, 1), (0, 1)), ((0, 1), (1, 4)), ((1, 3), (0, 1)), ((1, 3), (1, 4))], 0),
    "a pinwheel": ([((0, 1), (0, 2)), ((0, 2), (2, 3)), ((2, 3), (1, 3)), ((1, 3), (0, 1))], 27),
    "no axes": ([(), ()], 1),
}


def painted(tiles: Tiling, shape: tuple[int, ...]) -> np.ndarray:
    """How many terms are added at each element."""
    found = np.zeros(shape, int)
    if isinstance(tiles, CutBox):
        for box, inner in tiles.parts:
            assert all(a <= c and d <= b for (a, b), (c, d) in zip(box, inner.box))
            found += painted(inner, shape)
    else:
        found[tuple([slice(*side) for side in tiles.box])] += len(tiles.terms)
    return found


@pytest.mark.parametrize("name", CASES)
def test_tiling(name: str):
    boxes, added = CASES[name]
    shape = tuple([max(high for _, high in sides) + 1 for sides in zip(*boxes)])
    needed = np.zeros(shape, int)
    for box in boxes:
        needed[tuple([slice(*side) for side in box])] += 1
    tiles = tiling(boxes)
    assert additions(tiles) == added
    assert (painted(tiles, shape) >= needed).all() and ((painted(tiles, shape) > 1) <= (added > 0)).all()


@pytest.mark.parametrize("name", CASES)
def test_cells(name: str):
    boxes, _ = CASES[name]
    shape = tuple([max(high for _, high in sides) + 2 for sides in zip(*boxes)])
    found = np.zeros(shape, int)
    for cell in cells(boxes, shape):
        found[tuple([slice(*side) for side in cell])] += 1
        for box in boxes:
            pairs = list(zip(box, cell))
            apart = any(b <= c or d <= a for (a, b), (c, d) in pairs)
            assert apart or all(c <= a and b <= d for (a, b), (c, d) in pairs)
    assert (found == 1).all()
    assert list(cells([], (2, 3))) == [((0, 2), (0, 3))]
