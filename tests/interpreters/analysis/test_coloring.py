"""Colorings of random matrices: sums of columns and rows give every entry; numbers of colors known by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapeless.interpreters.analysis import coloring
from tapeless.interpreters.analysis.acyclic_coloring import MOST_LEVELS, color_acyclic, substitution
from tapeless.interpreters.analysis.coloring import ORDERINGS, SparsityPattern


def pattern(matrix: Any) -> SparsityPattern:
    rows, columns = np.nonzero(matrix)
    return SparsityPattern(rows, columns, np.shape(matrix))


def random_matrices(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(0, 13, (60, 2))
    return [np.where(rng.random(shape) < rng.random() * 0.6, 1 + rng.random(shape), 0) for shape in shapes]


@pytest.mark.parametrize("ordering", [None, *ORDERINGS])
@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
def test_sums_of_columns_and_rows_give_every_entry(mode: str, ordering: Any):
    for matrix in random_matrices(0):
        p = pattern(matrix)
        found = coloring.color_both(p, mode, ordering)
        seeds = np.arange(found.columns.number)[:, None] == found.columns.colors
        by_column = seeds @ matrix.T
        by_row = (np.arange(found.rows.number)[:, None] == found.rows.colors) @ matrix
        for i, j in zip(p.rows, p.columns):
            entry = by_row[found.rows.colors[i], j] if found.is_row[i] else by_column[found.columns.colors[j], i]
            assert entry == matrix[i, j]
        assert mode != "forward" or found.rows.number == 0
        assert mode != "reverse" or found.columns.number == 0 or not matrix.size


@pytest.mark.parametrize("ordering", [None, *ORDERINGS])
def test_sums_by_stars_give_every_entry_of_a_symmetric_matrix(ordering: Any):
    for matrix in random_matrices(1):
        square = matrix[: min(matrix.shape), : min(matrix.shape)]
        h, p = square + square.T, pattern(square + square.T)
        found = coloring.color_stars(p, ordering)
        sums = (np.arange(found.number)[:, None] == found.colors) @ h
        direct = coloring.direct_entries(p, found)
        color = np.where(direct, found.colors[p.columns], found.colors[p.rows])
        given = sums[color, np.where(direct, p.rows, p.columns)]
        np.testing.assert_array_equal(given, h[p.rows, p.columns])


@pytest.mark.parametrize("ordering", [None, *ORDERINGS])
def test_substitution_gives_every_entry_of_a_symmetric_matrix(ordering: Any):
    for matrix in random_matrices(1):
        square = matrix[: min(matrix.shape), : min(matrix.shape)]
        h, p = square + square.T, pattern(square + square.T)
        found = color_acyclic(p, ordering)
        assert found.number <= coloring.color_stars(p, ordering).number
        steps, sums = substitution(p, found), (np.arange(found.number)[:, None] == found.colors) @ h
        assert steps is not None
        values, at, start = np.zeros(len(steps.lower)), np.zeros(steps.places), 0
        for end in steps.levels:
            own = slice(start, end)
            values[own] = sums[steps.product[own], steps.lower[own]] - at[steps.below[own]]
            np.add.at(at, steps.above[own], values[own])
            start = end
        apart = p.rows != p.columns
        assert (steps.pairs >= 0).tolist() == apart.tolist()
        expected = h[p.rows, p.columns]
        np.testing.assert_allclose(
            values[steps.pairs[apart]], expected[apart], atol=1e-13
        )  # sums of at most 12 entries
        np.testing.assert_array_equal(sums[found.colors[p.rows], p.rows][~apart], expected[~apart])


def test_a_substitution_that_is_too_long_is_none():
    p = pattern(band(2 * MOST_LEVELS))
    assert len(substitution(p, color_acyclic(p)).levels) == MOST_LEVELS  # pyright: ignore[reportOptionalMemberAccess]
    p = pattern(band(2 * MOST_LEVELS + 4))
    assert substitution(p, color_acyclic(p)) is None


def stencil(grid: tuple[int, ...], offsets: Any, wrapped: bool = False) -> SparsityPattern:
    """The matrix in whose row of a point there are the points at these offsets."""
    points = np.indices(grid).reshape(len(grid), -1)
    entries = list[Any]()
    for offset in offsets:
        other = points + np.array(offset)[:, None]
        other = other % np.array(grid)[:, None] if wrapped else other
        inside = ((other >= 0) & (other < np.array(grid)[:, None])).all(0)
        rows = np.ravel_multi_index(tuple(points[:, inside]), grid)
        entries.append(np.stack([rows, np.ravel_multi_index(tuple(other[:, inside]), grid)]))
    rows, columns = np.unique(np.concatenate(entries, 1), axis=1)
    return SparsityPattern(rows, columns, (int(np.prod(grid)),) * 2)


FIVE = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]
NINE = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
SEVEN = [(0, 0, 0), *[tuple(s * (k == axis) for k in range(3)) for axis in range(3) for s in (1, -1)]]


@pytest.mark.parametrize(
    "grid, offsets, wrapped, number",
    [
        ((30, 30), FIVE, False, 5),
        ((20, 20), FIVE, True, 5),
        ((31, 17), NINE, False, 9),
        ((9, 8, 7), SEVEN, False, 7),
        ((12, 12), [*FIVE, (0, 2), (2, 0), (0, -2), (-2, 0)], False, 10),
        ((40, 2), [(0, 0), (0, 1), (1, 0), (1, 1)], False, 4),
        ((3, 1), [(0, 0)], False, 1),
    ],
)
def test_stencils_have_the_colors_of_lattices(grid: Any, offsets: Any, wrapped: bool, number: int):
    p = stencil(grid, offsets, wrapped)
    found = coloring.color_columns(p, None, grid)
    codes = p.rows * found.number + found.colors[p.columns]
    assert len(np.unique(codes)) == len(codes)
    assert found.number == number


def test_patterns_without_a_lattice_are_colored_as_any():
    rng = np.random.default_rng(0)
    for matrix in random_matrices(2):
        p = pattern(matrix)
        grid = (1, p.shape[1]) if rng.random() < 0.5 or p.shape[1] % 2 else (2, p.shape[1] // 2)
        found = coloring.color_columns(p, None, grid)
        codes = p.rows * max(found.number, 1) + found.colors[p.columns]
        assert len(np.unique(codes)) == len(codes)
        assert found.number <= coloring.color_columns(p).number


def band(n: int) -> Any:
    return np.tri(n, k=1) * np.tri(n, k=1).T


def arrow(n: int) -> Any:
    matrix = np.eye(n)
    matrix[0] = matrix[:, 0] = 1
    return matrix


@pytest.mark.parametrize(
    "matrix, mode, jacobian, stars",
    [
        (band, "auto", 3, 3),
        (arrow, "auto", 3, 2),
        (arrow, "forward", 40, 2),
        (np.eye, "auto", 1, 1),
        (lambda n: np.ones((n, n)), "auto", 40, 40),
        (lambda n: np.zeros((n, n)), "auto", 1, 1),
    ],
)
def test_numbers_of_colors(matrix: Callable[[int], Any], mode: str, jacobian: int, stars: int):
    p = pattern(matrix(40))
    assert coloring.color_both(p, mode).number == jacobian
    assert coloring.color_stars(p).number == stars


def test_orderings_differ():
    """A crown of n spokes: natural order takes n colors, smallest last two."""
    n = 6
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    edges = np.concatenate([np.stack([2 * i, 2 * j + 1]), np.stack([2 * j + 1, 2 * i])], 1)
    rows = np.repeat(np.arange(edges.shape[1]), 2)
    p = SparsityPattern(rows, edges.T.reshape(-1), (edges.shape[1], 2 * n))
    numbers = {ordering: coloring.color_columns(p, ordering).number for ordering in (*ORDERINGS, None)}
    assert numbers["natural"] == n and numbers["incidence_degree"] == numbers[None] == 2
