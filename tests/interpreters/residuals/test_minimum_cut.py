"""Minimum vertex cuts, compared with all subsets of the vertices of small graphs."""

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.interpreters.residuals.cut import minimum_vertex_cut

VERTICES = st.integers(0, 6)


def separates(cut: Any, edges: Any, sources: Any, sinks: Any) -> bool:
    reached = set(sources) - set(cut)
    for _ in range(7):
        reached |= {head for tail, head in edges if tail in reached and head not in cut}
    return reached.isdisjoint(sinks)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=7, max_size=7),
    st.lists(st.tuples(VERTICES, VERTICES).filter(lambda e: e[0] < e[1]), max_size=12, unique=True),
    st.sets(VERTICES, min_size=1),
    st.sets(VERTICES, min_size=1),
)
def test_no_cut_is_cheaper(prices: Any, edges: Any, sources: Any, sinks: Any):
    found = minimum_vertex_cut(prices, edges, sorted(sources), sorted(sinks))
    assert separates(found, edges, sources, sinks)
    subsets = ([v for v in range(7) if flags[v]] for flags in product((False, True), repeat=7))
    least = min(sum(prices[v] for v in cut) for cut in subsets if separates(cut, edges, sources, sinks))
    assert sum(prices[v] for v in found) == least


def test_of_equal_cuts_the_one_nearest_to_the_sources():
    assert minimum_vertex_cut([1, 1, 1], [(0, 1), (1, 2)], [0], [2]) == [0]
