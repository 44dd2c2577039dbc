"""The structure of a sparse derivative: where its entries are, and which products give them."""

from functools import cached_property
from typing import Any, Final

import numpy as np

from tapeless.interpreters.analysis.acyclic_coloring import SubstitutionSteps, color_acyclic, substitution
from tapeless.interpreters.analysis.coloring import (
    Coloring,
    Grids,
    Ordering,
    SparsityPattern,
    TwoSidedColoring,
    color_both,
    color_stars,
    direct_entries,
)

SYMMETRIC: Final = ("star", "acyclic")  # colorings of symmetric matrices


class Structure:
    """The entries of a Jacobian or Hessian as one matrix, and how products give them.

    rows, columns: int64[entries], sorted by row: of all results, one after another, and of all arguments.
    shape: of the matrix. forward, reverse: the numbers of products forwards, and backwards.

    substitution: how products give entries that are sums of several; None if each entry is one of their elements.

    Args:
      mode: that of `color_both`; for a matrix that is symmetric, "star" or "acyclic".
      grids: of rows and of columns, as for `color_both`.
    """

    def __init__(self, pattern: SparsityPattern, mode: str, ordering: Ordering | None, grids: Grids) -> None:
        self._pattern = pattern
        self.rows: Final = pattern.rows
        self.columns: Final = pattern.columns
        self.shape: Final[tuple[int, int]] = pattern.shape
        self.is_symmetric: Final = mode in SYMMETRIC and _is_symmetric(pattern)
        self.substitution: SubstitutionSteps | None = None
        if self.is_symmetric:
            self._both = self._one_sided(color_stars(pattern, ordering, grids[1]))
            if mode == "acyclic":
                self._prefer_acyclic(ordering)
        else:  # or the gradient's, if rules of users have derivatives that are not symmetric
            self._both = color_both(pattern, "forward" if mode in SYMMETRIC else mode, ordering, grids)
        self.forward: Final[int] = self._both.columns.number
        self.reverse: Final[int] = self._both.rows.number

    def _one_sided(self, columns: Coloring) -> TwoSidedColoring:
        no_rows = Coloring(np.zeros(self.shape[0], np.int64), 0)
        return TwoSidedColoring(np.zeros(self.shape[0], bool), no_rows, columns)

    def _prefer_acyclic(self, ordering: Ordering | None) -> None:
        """Take an acyclic coloring if it has fewer colors, and its trees are not deep."""
        coloring = color_acyclic(self._pattern, ordering)
        if coloring.number < self._both.columns.number:
            found = substitution(self._pattern, coloring)
            if found is not None:
                self._both, self.substitution = self._one_sided(coloring), found

    def __str__(self) -> str:
        (m, n), entries = self.shape, len(self.rows)
        size = "all of them" if entries == m * n else f"{entries / max(m, n, 1):.1f} for each of {max(m, n):,}"
        sides = [(self.forward, "forwards"), (self.reverse, "backwards")]
        products = " and ".join([f"{k:,} {side}" for k, side in sides if k]) or "none"
        steps = f", and {len(self.substitution.levels)} steps of substitution" if self.substitution else ""
        return f"{entries:,} entries of {m:,} x {n:,}, {size}; products: {products}{steps}"

    __repr__ = __str__

    @property
    def column_colors(self) -> Any:
        """The color of each column, int64[columns]: those of one color are summed by one product forwards."""
        return self._both.columns.colors

    @property
    def row_colors(self) -> Any:
        """The color of each row, int64[rows], summed by one product backwards; -1 where products forwards suffice."""
        return self._both.columns.colors if self.is_symmetric else self._both.rows.colors

    @cached_property
    def is_backward(self) -> Any:
        """Tell which entries are read from products backwards, bool[entries]; for a Hessian, from its mirror images."""
        if self.is_symmetric:
            return ~direct_entries(self._pattern, self._both.columns)
        return self._both.is_row[self.rows]

    @cached_property
    def sources(self) -> tuple[Any, Any]:
        """The (product, element) where products forwards, or backwards, hold each entry."""
        back = self.is_backward
        product = np.where(back, self.row_colors[self.rows], self.column_colors[self.columns])
        return product, np.where(back, self.columns, self.rows)


def _is_symmetric(pattern: SparsityPattern) -> bool:
    """Tell whether each entry has a mirror image, as those of second derivatives have."""
    other = pattern.transposed
    return np.array_equal(pattern.rows, other.rows) and np.array_equal(pattern.columns, other.columns)
