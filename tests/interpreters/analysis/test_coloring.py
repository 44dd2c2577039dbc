"""Colorings of random matrices: sums of columns and rows give every entry; numbers of colors known by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapeless.interpreters.analysis import coloring
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
