"""The structure of a sparse derivative: where its entries are, and which products give them."""

from functools import cached_property
from typing import Any, Final

import numpy as np

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


class Structure:
    """The entries of a Jacobian or Hessian as one matrix, and how products give them.

    rows, columns: int64[entries], sorted by row: of all results, one after another, and of all arguments.
    shape: of the matrix. forward, reverse: the numbers of products forwards, and backwards.

    Args:
      grids: of rows and of columns, as for `color_both`.
    """

    def __init__(
        self, pattern: SparsityPattern, is_symmetric: bool, mode: str, ordering: Ordering | None, grids: Grids
    ) -> None:
        self._pattern = pattern
        self.rows: Final = self._pattern.rows
        self.columns: Final = self._pattern.columns
        self.shape: Final[tuple[int, int]] = pattern.shape
        self.is_symmetric: Final = is_symmetric and _is_symmetric(pattern)
        mode = "forward" if is_symmetric else mode  # of a gradient whose rules have derivatives that are not symmetric
        both = self._stars(ordering, grids) if self.is_symmetric else color_both(pattern, mode, ordering, grids)
        self._both = both
        self.forward: Final[int] = both.columns.number
        self.reverse: Final[int] = both.rows.number

    def _stars(self, ordering: Ordering | None, grids: Grids) -> TwoSidedColoring:
        no_rows = Coloring(np.zeros(self.shape[0], np.int64), 0)
        return TwoSidedColoring(np.zeros(self.shape[0], bool), no_rows, color_stars(self._pattern, ordering, grids[1]))

    def __str__(self) -> str:
        (m, n), entries = self.shape, len(self.rows)
        size = "all of them" if entries == m * n else f"{entries / max(m, n, 1):.1f} for each of {max(m, n):,}"
        sides = [(self.forward, "forwards"), (self.reverse, "backwards")]
        products = " and ".join([f"{k:,} {side}" for k, side in sides if k]) or "none"
        return f"{entries:,} entries of {m:,} x {n:,}, {size}; products: {products}"

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
