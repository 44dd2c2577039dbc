"""Minimum vertex cut of a directed graph, by maximum flow.

Each vertex is an arc of the flow network, of its price as capacity; paths are augmented shortest first. Of several
minimum cuts it is the one nearest to the sources. Source: Ford & Fulkerson 1956; Edmonds & Karp 1972.
"""

from collections import deque
from collections.abc import Sequence

_Arc = list[int]  # its head, what it can still carry, and the number of its reverse among the arcs of its head


def minimum_vertex_cut(
    prices: Sequence[int], edges: Sequence[tuple[int, int]], sources: Sequence[int], sinks: Sequence[int]
) -> list[int]:
    """Choose the cheapest vertices without which no path leads from a source to a sink.

    Args:
      prices: of the vertices 0, 1, ..., which may be chosen among sources and sinks, too.
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
    """Search breadth first from `begin`, up to `end`, along arcs that can carry more: node -> (node before, arc)."""
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
    """Send along the path that was found as much as it can carry."""
    path: list[_Arc] = []
    node = end
    while node != begin:
        node, k = reached[node]
        path.append(arcs[node][k])
    flow = min(capacity for _, capacity, _ in path)
    for arc in path:
        arc[1] -= flow
        arcs[arc[0]][arc[2]][1] += flow
