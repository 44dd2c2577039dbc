"""Contraction order (contraction path) of an einsum: which two operands to contract next.

`optimal` is dynamic programming over the sets of operands: of all ways to split a set in two, the one with the fewest
multiplications, ties by the elements of the intermediates. `greedy` takes the pair whose product exceeds the elements
of its two operands least. Reverse mode contracts the cotangent of each pairwise product with either operand, over the
same indices: value and gradient together cost three times the value for every order, so that the order that is
best for the value is best for both.

A path is a sequence of pairs of positions; the two operands leave the list, and their product is appended to it.
Source: Pfeifer, Haegeman, Verstraete 2014, "Faster identification of optimal contraction sequences for tensor
networks"; Smith and Gray 2018, "opt_einsum". Left out: slicing, limits on memory, and shared subexpressions.
"""

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

Labels = tuple[Hashable, ...]
Path = tuple[tuple[int, int], ...]

MOST_FOR_OPTIMAL = 8  # operands: 3^8 / 2 splits take some milliseconds, each operand more three times as many


def canonical_optimize(optimize: Any, operands: int) -> str | Path:
    """Normalise NumPy's and opt_einsum's `optimize` to "left", "greedy", "optimal" or a path.

    Raises: ValueError for anything else, or a path that does not contract `operands` operands to one.
    """
    if isinstance(optimize, (bool, type(None))):
        return "optimal" if optimize else "left"
    if isinstance(optimize, str):
        if optimize in ("auto", "optimal", "dp"):
            return "optimal"
        if optimize == "greedy":
            return optimize
    elif isinstance(optimize, Sequence):
        return _checked_path(optimize, operands)
    known = "True, False, 'auto', 'optimal', 'dp', 'greedy', or a sequence of pairs"
    raise ValueError(f"einsum: optimize={optimize!r} is none of {known}.")


def _checked_path(steps: Sequence[Any], operands: int) -> Path:
    pairs = [step for step in steps if step != "einsum_path"]  # which NumPy puts first
    for left, step in zip(range(operands, 0, -1), pairs):
        if len(step) != 2 or len(set(step)) != 2 or not all(0 <= k < left for k in step):
            raise ValueError(f"einsum: step {step!r} of optimize={steps!r} names no two of the {left} operands left.")
    if len(pairs) != operands - 1:
        raise ValueError(
            f"einsum: optimize={steps!r} has {len(pairs)} steps, {operands} operands are contracted in {operands - 1}."
        )
    return tuple((min(step), max(step)) for step in pairs)


def contraction_path(order: str | Path, labels: Sequence[Labels], out: Labels, sizes: Mapping[Any, int]) -> Path:
    """Return the pairs of operands to contract, one after the other.

    Args:
      order: "left", "greedy", "optimal" (greedy above MOST_FOR_OPTIMAL operands), or a path, which is returned.
      labels: of the axes of each operand. out: of the result. sizes: of each label.
    """
    if not isinstance(order, str):
        return order
    if len(labels) == 1:
        return ()
    if order == "left" or len(labels) == 2:
        return _left(len(labels))
    number = {name: k for k, name in enumerate(sizes)}
    masks = tuple(sum(1 << number[name] for name in {*names}) for names in labels)
    kept = sum(1 << number[name] for name in out)
    search = _greedy if order == "greedy" or len(labels) > MOST_FOR_OPTIMAL else _optimal
    return search(masks, kept, tuple(sizes.values()))


def _left(operands: int) -> Path:
    """Return the path from left to right: the intermediate result is last in the list."""
    return ((0, 1), *((0, k) for k in range(operands - 2, 0, -1)))


# ---- dynamic programming: sets of operands and sets of labels are bits of an integer ---------------------------------


@lru_cache(maxsize=1024)
def _optimal(masks: tuple[int, ...], out: int, sizes: tuple[int, ...]) -> Path:
    operands, size = len(masks), _sizes(sizes)
    everyone = (1 << operands) - 1
    union = [0] * (everyone + 1)
    for s in range(1, everyone + 1):
        union[s] = union[s & (s - 1)] | masks[(s & -s).bit_length() - 1]
    kept = [union[s] & (out | union[everyone ^ s]) for s in range(everyone + 1)]
    best: dict[int, tuple[int, int]] = {1 << k: (0, 0) for k in range(operands)}
    split: dict[int, int] = {}
    for s in range(1, everyone + 1):
        if s not in best:
            best[s], split[s] = min(
                ((best[a][0] + best[b][0] + size(kept[a] | kept[b]), best[a][1] + best[b][1] + size(kept[s])), a)
                for a, b in _splits(s)
            )
    return _as_path(split, everyone, operands)


def _splits(s: int) -> list[tuple[int, int]]:
    """List all ways to split a set in two non-empty parts, the part with its first element first."""
    first, found, a = s & -s, [], s & (s - 1)
    while a:
        if not a & first:
            found.append((s ^ a, a))
        a = (a - 1) & s
    return found


def _as_path(split: Mapping[int, int], everyone: int, operands: int) -> Path:
    path = list[tuple[int, int]]()
    _contract(everyone, split, [1 << k for k in range(operands)], path)
    return tuple(path)


def _contract(s: int, split: Mapping[int, int], terms: list[int], path: list[tuple[int, int]]) -> None:
    """Append the steps that contract the operands of set s, given how sets are split; update the current `terms`."""
    if s in split:
        parts = split[s], s ^ split[s]
        for part in parts:
            _contract(part, split, terms, path)
        i, j = sorted(map(terms.index, parts))
        path.append((i, j))
        terms.append(terms.pop(j) | terms.pop(i))


# ---- greedy ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _greedy(masks: tuple[int, ...], out: int, sizes: tuple[int, ...]) -> Path:
    terms, path, size = list(masks), list[tuple[int, int]](), _sizes(sizes)

    def kept(i: int, j: int) -> int:
        needed = out
        for k, mask in enumerate(terms):
            needed |= mask if k not in (i, j) else 0
        return (terms[i] | terms[j]) & needed

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        a, b = (terms[k] for k in pair)
        return size(kept(*pair)) - size(a) - size(b), size(a | b)

    while len(terms) > 1:
        i, j = min(itertools.combinations(range(len(terms)), 2), key=cost)
        path.append((i, j))
        product = kept(i, j)
        terms = [mask for k, mask in enumerate(terms) if k not in (i, j)]
        terms.append(product)
    return tuple(path)


def _sizes(sizes: tuple[int, ...]) -> Any:
    """Make a function from a mask of labels to the number of elements of an array with these axes."""

    @cache
    def size(mask: int) -> int:
        return math.prod(n for k, n in enumerate(sizes) if mask >> k & 1)

    return size
