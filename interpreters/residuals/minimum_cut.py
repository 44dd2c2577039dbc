"""Minimum vertex cut (separator) of a directed graph, by maximum flow.

Each vertex becomes an arc of the flow network whose capacity is the vertex's price; flow is augmented along shortest
paths. Of several minimum cuts the result is the one nearest to the sources.
Source: Ford & Fulkerson 1956; Edmonds & Karp 1972.
"""

from collections import deque
from collections.abc import Sequence

_Arc = list[int]  # its head, its residual capacity, and the number of its reverse among the arcs of its head


def minimum_vertex_cut(
    prices: Sequence[int], edges: Sequence[tuple[int, int]], sources: Sequence[int], sinks: Sequence[int]
) -> list[int]:
    """Return the cheapest vertices without which no path leads from a source to a sink.

    Args:
      prices: of the vertices 0, 1, ...; sources and sinks may be among the returned vertices.
      edges: pairs (tail, head).
    """
    n, unlimited = len(prices), sum(prices) + 1
    arcs: list[list[_Arc]] = [[] for _ in range(2 * n + 2)]  # v is entered at 2 v and left at 2 v + 1
    begin, end = 2 * n, 2 * n + 1

    def connect(tail: int, head: int, capacity: int) -> None:
        arcs[tail].append([head, capacity, len(arcs[head])])
        arcs[head].append([tail, 0, len(arcs[tail]) - 1])

    for v, price in enumerate(prices):
        connect(2 * v, 2 * v + 1, price)
    for tail, head in edges:
        connect(2 * tail + 1, 2 * head, unlimited)
    for v in sources:
        connect(begin, 2 * v, unlimited)
    for v in sinks:
        connect(2 * v + 1, end, unlimited)
    while end in (reached := _reached(arcs, begin, end)):
        _augment(arcs, reached, begin, end)
    return [v for v in range(n) if 2 * v in reached and 2 * v + 1 not in reached]


def _reached(arcs: Sequence[Sequence[_Arc]], begin: int, end: int) -> dict[int, tuple[int, int]]:
    """Search breadth first from `begin`, until `end`, along arcs with capacity left: node -> (node before, its arc)."""
    found = {begin: (begin, 0)}
    todo = deque([begin])
    while todo and end not in found:
        tail = todo.popleft()
        for k, (head, capacity, _) in enumerate(arcs[tail]):
            if capacity and head not in found:
                found[head] = tail, k
                todo.append(head)
    return found


def _augment(arcs: Sequence[Sequence[_Arc]], reached: dict[int, tuple[int, int]], begin: int, end: int) -> None:
    """Augment the flow along the path to `end` that `reached` describes, by its capacity."""
    path: list[_Arc] = []
    node = end
    while node != begin:
        node, k = reached[node]
        path.append(arcs[node][k])
    flow = min(capacity for _, capacity, _ in path)
    for arc in path:
        arc[1] -= flow
        arcs[arc[0]][arc[2]][1] += flow
