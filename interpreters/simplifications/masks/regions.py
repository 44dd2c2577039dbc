"""Regions where a value is read, symbolically: a disjunction of conjunctions of masks.

A mask is a choice of a `select_n`, seen through the operations that lie between the choice and the value: these are
applied to the mask once a coefficient asks for it, and not before.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.rules import Rules

ALTERNATIVES = 4  # more of them are joined into what they have in common
TOGETHER = 6  # masks of one alternative; others are left out: a larger region is as right


class Move(NamedTuple):
    """A primitive that is applied to a mask, and to other operands after it."""

    primitive: Primitive
    params: tuple[tuple[str, Any], ...]
    others: tuple[Atom, ...] = ()


class Mask(NamedTuple):
    """A predicate: `which`, the index of a select_n among `cases`, equals `case`; then moved as arrays are.

    `cases` is 0 if it is compared with a number and is no index.
    """

    which: Atom
    case: int
    cases: int
    moves: tuple[Move, ...] = ()

    def moved(self, primitive: Primitive, *others: Atom, **params: Any) -> "Mask":
        """Apply one more primitive to the mask; two broadcasts are one, so that moves do not add up."""
        if primitive is broadcast_in_dim_p and self.moves and self.moves[-1].primitive is broadcast_in_dim_p:
            (inner, axes), dims = [dict(self.moves[-1].params)[name] for name in ("shape", "dims")], params["dims"]
            if all(n == params["shape"][d] for n, d in zip(inner, dims)):
                base, params = self._replace(moves=self.moves[:-1]), {**params, "dims": tuple([dims[a] for a in axes])}
                return base.moved(primitive, **params)
        return self._replace(moves=(*self.moves, Move(primitive, tuple(sorted(params.items())), others)))


# Tuples without duplicates, so that programs come out the same every time.
Alternative = tuple[Mask, ...]
Region = tuple[Alternative, ...]  # None stands for everywhere
NOWHERE: Region = ()

rules = Rules(
    "mask regions",
    "rule(writer, eqn, region where its result matters, k) -> region where operand k does; None: everywhere",
    absent="its operands matter everywhere",
)


def of(mask: Mask) -> Region:
    """Make the region of one mask."""
    return ((mask,),)


def mask_of(eqn: Equation, case: int) -> Mask:
    """Make the mask of one case of a select_n, in the shape of its result."""
    which, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    mask = Mask(which, case, len(eqn.invars) - 1)
    return mask if which.aval.shape == shape else mask.moved(broadcast_in_dim_p, shape=shape, dims=())


def both(region: Region | None, other: Region | None) -> Region | None:
    """Intersect two regions; None is everywhere."""
    if region is None:
        return other
    if other is None:
        return region
    return _bounded([_distinct((*a, *b))[:TOGETHER] for a in region for b in other])


def either(region: Region | None, other: Region | None) -> Region | None:
    """Join two regions, to their union or a superset; None is everywhere."""
    if region is None or other is None:
        return None
    if not region or region == other:
        return other
    return _bounded([*region, *other]) if other else region


def both_exactly(region: Region | None, other: Region | None) -> Region | None:
    """Intersect two regions, of however many alternatives."""
    if region is None or other is None:
        return other if region is None else region
    return _irredundant([_distinct((*a, *b)) for a in region for b in other])


def either_exactly(region: Region | None, other: Region | None) -> Region | None:
    """Join two regions, to however many alternatives."""
    return None if region is None or other is None else _irredundant([*region, *other])


def covers(region: Region, part: Iterable[Alternative]) -> bool:
    """Tell whether a region is known to contain another."""
    return all(any(set(a) <= set(b) for a in region) for b in part)


NEVER = Mask(Literal(False), 1, 2)  # what holds nowhere


def moved(region: Region | None, move: Callable[[Mask], Mask | None]) -> Region | None:
    """Move every mask of a region; `move` gives None for a mask that cannot be moved, which then holds everywhere."""
    if region is None:
        return None
    each = {mask: move(mask) for mask in dict.fromkeys(chain.from_iterable(region))}
    alternatives = [_distinct(m for mask in a if (m := each[mask]) is not None) for a in region]
    return _bounded([a for a in alternatives if NEVER not in a])


def _distinct(masks: Iterable[Mask]) -> Alternative:
    return tuple(dict.fromkeys(masks))


def _bounded(alternatives: Sequence[Alternative]) -> Region | None:
    """A region of few alternatives, none of which is part of another."""
    found = _irredundant(alternatives)
    if found is None or len(found) <= ALTERNATIVES:
        return found
    common = tuple([m for m in found[0] if all(m in a for a in found)])
    return (common,) if common else None


def _irredundant(alternatives: Sequence[Alternative]) -> Region | None:
    """A region of alternatives none of which is part of another."""
    found: list[Alternative] = []
    for a in alternatives:
        if not any(set(b) <= set(a) for b in found):
            found = [*[b for b in found if not set(a) <= set(b)], a]
    found = _joined(found)
    return None if () in found else tuple(found)


def _joined(found: list[Alternative]) -> list[Alternative]:
    """Merge two alternatives that differ only in whether a mask holds."""
    for a, b in combinations(found, 2):
        one, other = [m for m in a if m not in b], [m for m in b if m not in a]
        if len(one) == len(other) == 1 and _opposite(one[0], other[0]):
            common = tuple([m for m in a if m in b])
            return list(_irredundant([*[c for c in found if c not in (a, b)], common]) or [()])
    return found


def _opposite(a: Mask, b: Mask) -> bool:
    return a.cases == 2 and a._replace(case=b.case) == b
