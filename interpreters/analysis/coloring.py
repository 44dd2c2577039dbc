"""Colorings of sparsity patterns: which columns, or rows, of a matrix one product can compute together.

Search terms: seed matrix, compressed Jacobian, Curtis-Powell-Reid, partial distance-2 coloring, star coloring.
Greedy algorithms, in the orderings natural, largest first, smallest last and incidence degree. The colors that a vertex
may not have are the bits of one integer, so that a coloring takes time in proportion to the entries.
Points of a grid have the colors of a lattice (lattice_coloring.py), if rows have few patterns and these are fewer.
Sources: Gebremedhin, Manne & Pothen 2005, "What color is your Jacobian?"; Gebremedhin, Tarfulea, Manne & Pothen 2007,
"New acyclic and star coloring algorithms"; ColPack, for the names of orderings.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from tapeless.interpreters.analysis.index_sets import sorted_once
from tapeless.interpreters.analysis.lattice_coloring import lattice_colors

Ordering = Literal["natural", "largest_first", "smallest_last", "incidence_degree"]
ORDERINGS: Final[tuple[Ordering, ...]] = get_args(Ordering)
MOST_TIMES_LEAST: Final = 2  # colors of a lattice over those of the longest row: greedy ones are mostly fewer than that
MOST_PAIRS: Final = 1 << 19  # of columns that share a row: with more of them orderings are not compared


class SparsityPattern(NamedTuple):
    """The entries of a sparse matrix: rows and columns of each, sorted, and the shape (rows, columns)."""

    rows: Any
    columns: Any
    shape: tuple[int, int]

    @property
    def transposed(self) -> "SparsityPattern":
        """The pattern of the transposed matrix."""
        order = np.lexsort((self.rows, self.columns))
        return SparsityPattern(self.columns[order], self.rows[order], (self.shape[1], self.shape[0]))

    def part(self, is_row: Any) -> "SparsityPattern":
        """Keep the entries of some rows."""
        kept = is_row[self.rows]
        return SparsityPattern(self.rows[kept], self.columns[kept], self.shape)


class Coloring(NamedTuple):
    """The color of each vertex, and the number of colors."""

    colors: Any
    number: int


# ---- columns --------------------------------------------------------------------------------------------------


def color_columns(
    pattern: SparsityPattern, ordering: Ordering | None = None, grid: Sequence[int] | None = None
) -> Coloring:
    """Color columns so that no two of one color have an entry in one row; the best ordering if None.

    Args:
      grid: the sizes of the axes along which columns are numbered, in order; None if they are no grid.
    """
    n = pattern.shape[1]
    lengths = np.bincount(pattern.rows, minlength=pattern.shape[0])
    least = int(lengths.max(initial=0))
    if least == n:
        return Coloring(np.arange(n), n)
    if least < 2:
        return Coloring(np.zeros(n, np.int64), 1)
    regular = _on_lattice(pattern, ordering, grid, least)
    if regular is not None and regular.number <= least:
        return regular
    starts, rows = _lists(pattern.columns, pattern.rows, n)
    orders = orders_to_try(lambda: _sharing(pattern, lengths), int((lengths**2).sum()), n, ordering)
    return best_coloring((_apart(order, starts, rows, pattern.shape[0]) for order in orders), least, regular)


def _on_lattice(
    pattern: SparsityPattern, ordering: Ordering | None, grid: Sequence[int] | None, least: int
) -> Coloring | None:
    """Color the points of a grid, in no ordering that is asked for."""
    if ordering is not None or grid is None or len(grid) < 2:
        return None
    colors = lattice_colors(pattern.rows, pattern.columns, grid, least, MOST_TIMES_LEAST * least)
    return None if colors is None else Coloring(colors, int(colors.max(initial=-1)) + 1)


def _apart(order: Sequence[int], starts: list[int], groups: list[int], number: int) -> Coloring:
    """Color vertices greedily so that those of one group differ."""
    taken, colors = [0] * number, [0] * (len(starts) - 1)
    most = 0
    for v in order:
        own, used = groups[starts[v] : starts[v + 1]], 0
        for g in own:
            used |= taken[g]
        bit = ~used & (used + 1)
        for g in own:
            taken[g] |= bit
        colors[v] = bit.bit_length() - 1
        most = max(most, colors[v])
    return Coloring(np.array(colors, np.int64), most + 1 if colors else 0)


def _sharing(pattern: SparsityPattern, lengths: Any) -> "Adjacency":
    """Make the graph of columns that share a row."""
    kept = lengths[pattern.rows] > 1
    rows, columns = pattern.rows[kept], pattern.columns[kept]
    repeated, ends = lengths[rows], np.cumsum(lengths * (lengths > 1))
    first = (ends - lengths * (lengths > 1))[rows]
    at = np.arange(repeated.sum()) - np.repeat(np.cumsum(repeated) - repeated - first, repeated)
    return graph(np.repeat(columns, repeated), columns[at], pattern.shape[1])


Grids = tuple[Sequence[int] | None, Sequence[int] | None]


class TwoSidedColoring(NamedTuple):
    """Rows that are computed by products with rows of the seed matrix; the columns of all others by the usual products.

    rows, columns: colors; -1 for rows that are not `is_row`.
    """

    is_row: Any
    rows: Coloring
    columns: Coloring

    @property
    def number(self) -> int:
        """The number of products."""
        return self.rows.number + self.columns.number


def color_both(
    pattern: SparsityPattern, mode: str = "auto", ordering: Ordering | None = None, grids: Grids = (None, None)
) -> TwoSidedColoring:
    """Color columns, rows, or both: the rows that are dense, and columns elsewhere.

    Args:
      grids: those of rows and of columns, as for `color_columns`.
      mode: "forward" for columns, "reverse" for rows, "both" for columns and rows; "auto" for the fewest
        colors, in one direction if there is no difference.
    """
    lengths = np.bincount(pattern.rows, minlength=pattern.shape[0])
    tried = list[TwoSidedColoring]()
    for is_row in _choices(lengths, mode):
        if min([x.number for x in tried], default=1 << 62) <= int(lengths[~is_row].max(initial=0)):
            continue
        columns = color_columns(pattern.part(~is_row), ordering, grids[1])
        rows = color_columns(pattern.part(is_row).transposed, ordering, grids[0])
        rows = Coloring(np.where(is_row, rows.colors, -1), rows.number if is_row.any() else 0)
        if is_row.all() and len(is_row):
            columns = Coloring(columns.colors, 0)
        tried.append(TwoSidedColoring(is_row, rows, columns))
    return min(tried, key=lambda x: x.number)


def _choices(lengths: Any, mode: str) -> list[Any]:
    """List the sets of rows to try: none, all, and those that are at least twice as long as the next shorter one."""
    none, every = np.zeros(len(lengths), bool), np.ones(len(lengths), bool)
    if mode in ("forward", "reverse"):
        return [none if mode == "forward" else every]
    different = np.unique(lengths)
    jumps = different[1:][different[1:] >= 2 * different[:-1]]
    return [none, *([every] if mode == "auto" else []), *[lengths >= jump for jump in jumps[::-1]]]


# ---- symmetric matrices ---------------------------------------------------------------------------------------


def color_stars(
    pattern: SparsityPattern, ordering: Ordering | None = None, grid: Sequence[int] | None = None
) -> Coloring:
    """Color a symmetric pattern so that each path of four vertices has three colors: each entry is in a sum of one."""
    n = pattern.shape[0]
    apart = pattern.rows != pattern.columns
    edges = graph(pattern.rows[apart], pattern.columns[apart], n)
    if len(edges.ends) == n * (n - 1):
        return Coloring(np.arange(n), n)
    orders = orders_to_try(lambda: edges, len(edges.ends), n, ordering)
    longest = int(edges.degrees.max(initial=0)) + 1
    return best_coloring((_stars(order, edges) for order in orders), 1, _on_lattice(pattern, ordering, grid, longest))


def _stars(order: Sequence[int], edges: "Adjacency") -> Coloring:
    """Color vertices greedily; of each vertex know what colors its neighbors have, and are centers of its stars.

    A color is no choice for v if a neighbor has it; if a neighbor w has a neighbor of it that is the center of another
    edge to the color of w; or if any neighbor of w has it, and two neighbors of v have the color of w.
    """
    starts, ends = edges.starts.tolist(), edges.ends.tolist()
    n = len(starts) - 1
    colors, around, centers = [-1] * n, [0] * n, [0] * n
    first: list[dict[int, int]] = [{} for _ in range(n)]  # of each color, a neighbor of it; -1 if several
    most = -1
    for v in order:
        near = [w for w in ends[starts[v] : starts[v + 1]] if colors[w] >= 0]
        own, used = first[v], 0
        for w in near:
            used |= 1 << colors[w] | centers[w]
            if own[colors[w]] < 0:
                used |= around[w]
        bit = ~used & (used + 1)
        c = colors[v] = bit.bit_length() - 1
        most = max(most, c)
        for w in near:
            around[w] |= bit
            if own[colors[w]] < 0:
                centers[w] |= bit
        for w in ends[starts[v] : starts[v + 1]]:
            known = first[w].get(c)
            first[w][c] = v if known is None else -1
            if known is not None and colors[w] >= 0:
                centers[v] |= 1 << colors[w]
                if known >= 0:
                    centers[known] |= 1 << colors[w]
        for w in near:
            around[v] |= 1 << colors[w]
    return Coloring(np.array(colors, np.int64), most + 1)


def direct_entries(pattern: SparsityPattern, coloring: Coloring) -> Any:
    """Tell which entries of a symmetric pattern their column's color gives; that of their row gives the others."""
    codes = pattern.rows * max(coloring.number, 1) + coloring.colors[pattern.columns]
    _, at, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return counts[at.reshape(-1)] == 1


# ---- orderings ------------------------------------------------------------------------------------------------


class Adjacency(NamedTuple):
    """The neighbors of vertex v, in order: ends[starts[v]:starts[v + 1]]."""

    starts: Any
    ends: Any

    @property
    def degrees(self) -> Any:
        """The numbers of neighbors."""
        return np.diff(self.starts)


def graph(tails: Any, heads: Any, n: int) -> Adjacency:
    """Make the graph of these edges, in both directions, each once, without loops."""
    codes = sorted_once(tails[tails != heads] * n + heads[tails != heads])
    tails, heads = np.divmod(codes, max(n, 1))
    return Adjacency(np.r_[0, np.cumsum(np.bincount(tails, minlength=n))], heads)


def _lists(keys: Any, values: Any, n: int) -> tuple[list[int], list[int]]:
    """Group values by key: the start of each group, and the values of all."""
    order = np.argsort(keys, kind="stable")
    starts = np.r_[0, np.cumsum(np.bincount(keys, minlength=n))]
    return starts.tolist(), values[order].tolist()


def orders_to_try(edges: Callable[[], Adjacency], size: int, n: int, ordering: Ordering | None) -> Any:
    """Yield the orders of vertices to try: that of the ordering, or of all that are worth it."""
    if ordering in (None, "natural"):
        yield range(n)
    if ordering != "natural" and (ordering is not None or size <= MOST_PAIRS):
        found = edges()
        for name in ORDERINGS[1:] if ordering is None else (ordering,):
            yield _order(found, name)


def _order(edges: Adjacency, ordering: Ordering) -> Any:
    if ordering == "largest_first":
        return np.argsort(-edges.degrees, kind="stable").tolist()
    if ordering == "smallest_last":
        return _by_degree(edges, edges.degrees.tolist(), -1)[::-1]
    return _by_degree(edges, [0] * len(edges.degrees), 1)


def _by_degree(edges: Adjacency, degrees: list[int], step: int) -> list[int]:
    """Order vertices: each time the one of the least degree, as those before go, or of the greatest, as they come.

    Args:
      degrees: at first; by `step` that of a neighbor changes. -1 takes the least, 1 the greatest.
    """
    starts, ends = edges.starts.tolist(), edges.ends.tolist()
    buckets: list[list[int]] = [[] for _ in range(int(edges.degrees.max(initial=0)) + 2)]
    for v in reversed(range(len(degrees))):
        buckets[degrees[v]].append(v)
    order, is_done = list[int](), [False] * len(degrees)
    at = 0 if step < 0 else max(degrees, default=0)
    while len(order) < len(degrees):
        while not buckets[at]:
            at -= step
        v = buckets[at].pop()
        if is_done[v] or degrees[v] != at:
            continue
        is_done[v] = True
        order.append(v)
        for w in ends[starts[v] : starts[v + 1]]:
            if not is_done[w]:
                degrees[w] += step
                buckets[degrees[w]].append(w)
                at = min(at, degrees[w]) if step < 0 else max(at, degrees[w])
    return order


def best_coloring(colorings: Any, least: int, other: Coloring | None = None) -> Coloring:
    """Return the coloring of the fewest colors, or the other one; none after one that has the least number."""
    tried = [] if other is None else [other]
    for found in colorings:
        tried.append(found)
        if found.number <= least:
            break
    return min(tried, key=lambda coloring: coloring.number)
