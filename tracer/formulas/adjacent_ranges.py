"""Terms over adjacent ranges of an index of the result, merged: `[1 <= a < 4] y[a] + [a = 0] y[0]` is `[a < 4] y[a]`.

Such pairs come from sums over shifted windows. A range grows by an index at a time, where the other term is what its
own would be there.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tapeless.tracer.terms.affine import Variable, variable
from tapeless.tracer.terms.solve import Axes, explicit, merge_terms
from tapeless.tracer.terms.term import Bracket, IsZero, NotNegative, Sum, Term


class _Restriction(NamedTuple):
    """The range low, .., high that a term's brackets restrict a variable to, and its other brackets."""

    low: int
    high: int
    others: tuple[Bracket, ...]


def with_adjacent_ranges_joined(terms: Sum, shape: Sequence[int], stays: Axes) -> Sum:
    """Merge the terms of a sum over a range with those at the index before or after it.

    Args:
      terms: explicit ones, for a result of this `shape`.
      stays: as of `explicit`.
    """
    left, todo = list(terms), list(terms)
    while todo:
        t = todo.pop()
        found = next(_joined(t, left, shape, stays), None) if t in left else None
        if found is not None:
            other, joint = found
            left[left.index(t)] = joint
            left.remove(other)
            todo.append(joint)
    return merge_terms(left)


def _joined(t: Term, among: Sequence[Term], shape: Sequence[int], stays: Axes) -> Iterator[tuple[Term, Term]]:
    """Yield terms that continue `t` by an index, with the joint term."""
    for v in [a.variable for a in t.out]:
        found = None if v is None else _range(t, v)
        if v is None or found is None:
            continue
        for edge in {found.low - 1, found.high + 1} & set(range(t.sizes[v])):
            at_edge = explicit(t.with_brackets([*found.others, IsZero(variable(v) - edge)]), shape, stays)
            if at_edge is not None and at_edge in among:
                wider = found._replace(low=min(found.low, edge), high=max(found.high, edge))
                yield at_edge, t.with_brackets(_brackets(v, wider, t.sizes[v]))


def _range(t: Term, v: Variable) -> _Restriction | None:
    """Find the values of a variable that a term is restricted to; None if it is not."""
    low, high, others = 0, t.sizes[v] - 1, list[Bracket]()
    for b in t.brackets:
        index = b.index
        if isinstance(b, NotNegative) and index.variables == ((v, 1),) and not index.symbols:
            low = max(low, -index.constant)
        elif isinstance(b, NotNegative) and index.variables == ((v, -1),) and not index.symbols:
            high = min(high, index.constant)
        else:
            others.append(b)
    return _Restriction(low, high, tuple(others)) if len(others) < len(t.brackets) else None


def _brackets(v: Variable, found: _Restriction, size: int) -> list[Bracket]:
    """Write the brackets that restrict a variable of so many values to a range, and the others."""
    above = [NotNegative(variable(v) - found.low)] if found.low > 0 else []
    below = [NotNegative(found.high - variable(v))] if found.high < size - 1 else []
    return [*found.others, *above, *below]
