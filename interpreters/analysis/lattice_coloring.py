"""Colorings of grids: the color of a point is a sum of multiples of its coordinates, modulo the number of colors.

Search terms: stencil, lattice tiling, estimation of Jacobians from finite differences. The columns of a matrix of a
stencil are points of a grid, and rows have few patterns up to translation: what matters is which differences of two
points of a row there are. A greedy coloring of five points has seven colors, and a lattice five.
Source: Goldfarb & Toint 1984, "Optimal estimation of Jacobian and Hessian matrices that arise in finite difference
calculations". Left out: offsets that differ from line to line.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tapeless.interpreters.analysis.index_sets import sorted_once

MOST_DIFFERENCES: Final = 512
MOST_MULTIPLES: Final = 1 << 14  # tuples of multiples that are tried for one number of colors
MOST_COLORS: Final = 64
SEED: Final = 1_984  # any number: of what is found by hashes every entry is tested


def lattice_colors(rows: Any, columns: Any, grid: Sequence[int], least: int, most: int) -> Any:
    """Color the points of a grid, numbered in order, so that no two points in one row have one color.

    Args:
      rows, columns: the row and the point of each entry, sorted by row.
      least, most: the numbers of colors to try, from the least on.
    Returns: int64[points], or None if there is no such coloring, or rows have too many patterns.
    """
    differences = _differences(rows, columns, grid)
    if differences is None:
        return None
    used = [axis for axis, n in enumerate(grid) if n > 1]
    for number in range(max(least, 1), min(most, MOST_COLORS) + 1):
        if number ** len(used) > MOST_MULTIPLES:
            return None
        multiples = np.zeros((number ** len(used), len(grid)), np.int64)
        multiples[:, used] = np.indices((number,) * len(used)).reshape(len(used), -1).T
        fits = ((multiples @ differences.T) % number != 0).all(1)
        if fits.any():
            axes = np.ix_(*[m * np.arange(n) for m, n in zip(multiples[fits.argmax()].tolist(), grid)])
            colors = (sum(axes, np.zeros((1,) * len(grid), np.int64)) % number).reshape(-1)
            return colors if _are_apart(rows * number + colors[columns]) else None
    return None


def _are_apart(codes: Any) -> bool:
    return len(sorted_once(codes)) == len(codes)


def _differences(rows: Any, columns: Any, grid: Sequence[int]) -> Any:
    """Find the differences of coordinates of two points in one row, [differences, axes]; None if there are many.

    Rows of one hash of their offsets count as equal: the coloring is tested.
    """
    lengths = np.bincount(rows, minlength=1)
    starts = np.cumsum(lengths) - lengths
    found, mixing = np.zeros((0, len(grid)), np.int64), np.random.default_rng(SEED)
    for length in np.unique(lengths[lengths > 1]).tolist():
        own = columns[starts[lengths == length][:, None] + np.arange(length)]
        points = np.stack(np.unravel_index(own, tuple(grid)), -1)
        offsets = points - points[:, :1]
        hashes = offsets.reshape(len(own), -1) @ mixing.integers(1, 2**63, length * len(grid))
        patterns = offsets[np.unique(hashes, return_index=True)[1]]
        if len(patterns) * length * (length - 1) // 2 > 64 * MOST_DIFFERENCES:
            return None
        first, second = np.triu_indices(length, 1)
        found = np.unique(np.concatenate([found, *(patterns[:, second] - patterns[:, first])]), axis=0)
        if len(found) > MOST_DIFFERENCES:
            return None
    return found
