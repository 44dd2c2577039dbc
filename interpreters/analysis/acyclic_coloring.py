"""Acyclic colorings of symmetric matrices, and the substitution by which products give the entries.

Search terms: two-colored forest, triangular substitution, compressed Hessian. Neighbors differ in color, and no cycle
has only two colors, so that the edges between two colors are trees. A product holds sums of the entries of a tree at
each vertex. At a leaf it is one entry; with these subtracted, others become leaves. About half as many colors as those
of stars suffice, but an entry is a difference of sums: its error is relative to the greatest entry of its tree.
Source: Gebremedhin, Tarafdar, Manne & Pothen 2007, "New acyclic and star coloring algorithms with application to
computing Hessians", algorithms 3.1 and 4.4. Left out: trees deeper than `MOST_LEVELS`.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.interpreters.analysis.coloring import (
    Adjacency,
    Coloring,
    Ordering,
    SparsityPattern,
    best_coloring,
    graph,
    orders_to_try,
)

MOST_LEVELS: Final = 64  # each is a gather and a scatter, one after another


def color_acyclic(pattern: SparsityPattern, ordering: Ordering | None = None) -> Coloring:
    """Color a symmetric pattern so that the edges between vertices of any two colors form no cycle."""
    apart = pattern.rows != pattern.columns
    edges = graph(pattern.rows[apart], pattern.columns[apart], pattern.shape[0])
    orders = orders_to_try(lambda: edges, len(edges.ends), pattern.shape[0], ordering)
    return best_coloring((_acyclic(order, edges) for order in orders), 1)


def _acyclic(order: Sequence[int], edges: Adjacency) -> Coloring:
    """Color vertices greedily; of each edge know its tree, as a disjoint set.

    A color is no choice for v if a neighbor has it, or if two neighbors have edges to it that are of one tree.
    """
    starts, ends = edges.starts.tolist(), edges.ends.tolist()
    n = len(starts) - 1
    colors, trees = [-1] * n, _DisjointSets()
    for v in order:
        near, used = [w for w in ends[starts[v] : starts[v + 1]] if colors[w] >= 0], 0
        for w in near:
            used |= 1 << colors[w]
        reached = dict[int, int]()
        for w in near:
            for x in ends[starts[w] : starts[w + 1]]:
                if colors[x] >= 0 and not used >> colors[x] & 1:
                    used |= (reached.setdefault(trees.find(_edge(w, x, n)), w) != w) << colors[x]
        c = colors[v] = (~used & (used + 1)).bit_length() - 1
        first = dict[int, int]()
        for w in near:
            trees.unite(first.setdefault(colors[w], _edge(v, w, n)), _edge(v, w, n))
            for x in ends[starts[w] : starts[w + 1]]:
                if x != v and colors[x] == c:
                    trees.unite(_edge(w, x, n), _edge(v, w, n))
    return Coloring(np.array(colors, np.int64), max(colors, default=-1) + 1)


def _edge(v: int, w: int, n: int) -> int:
    return min(v, w) * n + max(v, w)


class _DisjointSets:
    """A partition of integers, each alone at first. Source: Tarjan 1975."""

    def __init__(self) -> None:
        self._parents = dict[int, int]()

    def find(self, x: int) -> int:
        """Return the number that stands for the set of `x`."""
        parents, root = self._parents, x
        while (above := parents.get(root, root)) != root:
            root = above
        while x != root:
            parents[x], x = root, parents.get(x, x)
        return root

    def unite(self, x: int, y: int) -> None:
        """Unite two sets."""
        self._parents[self.find(x)] = self.find(y)


class SubstitutionSteps(NamedTuple):
    """The steps by which products give the entries of a symmetric matrix, each pair of mirror images once.

    An entry is the element `lower` of the product `product`, minus the entries whose `above` is its `below`.

    lower, product: int64[pairs], sorted by level. below, above: int64[pairs], numbers of places to sum at.
    levels: where the entries of each level end. places: how many there are. pairs: int64[entries], the pair of each
    entry of the pattern; -1 on the diagonal.
    """

    lower: Any
    product: Any
    below: Any
    above: Any
    levels: tuple[int, ...]
    places: int
    pairs: Any


def substitution(pattern: SparsityPattern, coloring: Coloring) -> SubstitutionSteps | None:
    """Order the entries so that each is given by those before it; None if that takes more than `MOST_LEVELS` levels.

    A place is a vertex in one of its trees. The last edge that is left at a place is given by the sum there.
    """
    once = pattern.rows < pattern.columns
    v, w = pattern.rows[once], pattern.columns[once]
    number = max(coloring.number, 1)
    codes = np.r_[v * number + coloring.colors[w], w * number + coloring.colors[v]]
    places, at = np.unique(codes, return_inverse=True)
    at_v, at_w = at[: len(v)], at[len(v) :]
    found, ends = list[Any](), list[int]()
    left, degrees = np.arange(len(v)), np.bincount(at, minlength=len(places))
    while len(left):
        if len(ends) == MOST_LEVELS:
            return None
        is_leaf = (degrees[at_v[left]] == 1) | (degrees[at_w[left]] == 1)
        own = left[is_leaf]
        found.append((own, degrees[at_v[own]] == 1))
        ends.append(len(own) + (ends[-1] if ends else 0))
        left = left[~is_leaf]
        np.subtract.at(degrees, np.r_[at_v[own], at_w[own]], 1)
    order = np.concatenate([np.zeros(0, np.int64), *[own for own, _ in found]])
    is_v = np.concatenate([np.zeros(0, bool), *[some for _, some in found]])
    v, w, at_v, at_w = v[order], w[order], at_v[order], at_w[order]
    product = coloring.colors[np.where(is_v, w, v)]
    sides = np.where(is_v, at_v, at_w), np.where(is_v, at_w, at_v)
    return SubstitutionSteps(
        np.where(is_v, v, w), product, *sides, tuple(ends), len(places), _pairs(pattern, once, order)
    )


def _pairs(pattern: SparsityPattern, once: Any, order: Any) -> Any:
    """Number the entries of both halves by the order of pairs."""
    n = pattern.shape[0]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    low, high = np.minimum(pattern.rows, pattern.columns), np.maximum(pattern.rows, pattern.columns)
    at = np.searchsorted(pattern.rows[once] * n + pattern.columns[once], low * n + high)
    found = np.full(len(low), -1)
    found[low != high] = numbers[at[low != high]]
    return found
