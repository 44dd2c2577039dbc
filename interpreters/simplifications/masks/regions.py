"""Regions where a value is read, symbolically: a disjunction of conjunctions of masks.

Masks are moved symbolically, as terms (`mask.py`), through the operations between a select and a value; arrays are
written only when a coefficient is masked.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain, combinations

from tapeless.interpreters import limits
from tapeless.interpreters.simplifications.masks.mask import NEVER, Mask
from tapeless.tracer.terms.map import Map

# Tuples without duplicates, so that programs come out the same every time.
Alternative = tuple[Mask, ...]
Region = tuple[Alternative, ...]  # None stands for everywhere
NOWHERE: Region = ()


def of(mask: Mask) -> Region:
    """Make the region of one mask."""
    return ((mask,),)


def both(region: Region | None, other: Region | None, unbounded: bool = False) -> Region | None:
    """Intersect two regions, to their intersection or a superset, which is smaller to write; None is everywhere."""
    if region is None or other is None:
        return other if region is None else region
    found = [_distinct((*a, *b)) for a in region for b in other]
    return _irredundant(found) if unbounded else _bounded([a[: limits.TOGETHER] for a in found])


def either(region: Region | None, other: Region | None, unbounded: bool = False) -> Region | None:
    """Join two regions, to their union or a superset, which is smaller to write; None is everywhere."""
    if region is None or other is None:
        return None
    if not region or not other or region == other:
        return region or other
    return (_irredundant if unbounded else _bounded)([*region, *other])


def covers(region: Region, part: Iterable[Alternative]) -> bool:
    """Tell whether a region is known to contain another."""
    return all(any(set(a) <= set(b) for a in region) for b in part)


def move_masks(region: Region | None, move: Callable[[Mask], Mask | None]) -> Region | None:
    """Move every mask of a region; `move` gives None for a mask that it cannot move: the mask then holds everywhere."""
    if region is None:
        return None
    each = {mask: move(mask) for mask in dict.fromkeys(chain.from_iterable(region))}
    alternatives = [_distinct(m for mask in a if (m := each[mask]) is not None) for a in region]
    return _bounded([a for a in alternatives if NEVER not in a])


def translate_masks(region: Region | None, meaning: Callable[[Mask], Region | None]) -> Region | None:
    """Substitute a region for each mask of a region; `meaning` returns None for everywhere."""
    if not region:
        return region
    return reduce(either, [reduce(both, map(meaning, a), None) for a in region])


def view_masks(region: Region | None, views: Sequence[Map]) -> Region | None:
    """Read every mask of a region through views, one after another."""
    return move_masks(region, lambda mask: mask.viewed(views)) if views else region


def _distinct(masks: Iterable[Mask]) -> Alternative:
    return tuple(dict.fromkeys(masks))


def _bounded(alternatives: Sequence[Alternative]) -> Region | None:
    """Build an irredundant region of at most `ALTERNATIVES`, a superset if there are more; None is everywhere."""
    found = _irredundant(alternatives)
    if found is None or not limits.ALTERNATIVES.is_passed(len(found)):
        return found
    common = tuple([m for m in found[0] if all(m in a for a in found)])
    return (common,) if common else None


def _irredundant(alternatives: Sequence[Alternative]) -> Region | None:
    """Build a region without alternatives that others contain; None, everywhere, if one has no masks."""
    found: list[Alternative] = []
    for a in alternatives:
        if not any(set(b) <= set(a) for b in found):
            found = [*[b for b in found if not set(a) <= set(b)], a]
    found = _joined(found)
    return None if () in found else tuple(found)


def _joined(found: list[Alternative]) -> list[Alternative]:
    """Merge alternatives that differ only in whether a mask holds."""
    for a, b in combinations(found, 2):
        one, other = [m for m in a if m not in b], [m for m in b if m not in a]
        if len(one) == len(other) == 1 and _opposite(one[0], other[0]):
            common = tuple([m for m in a if m in b])
            return list(_irredundant([*[c for c in found if c not in (a, b)], common]) or [()])
    return found


def _opposite(a: Mask, b: Mask) -> bool:
    return a.cases == 2 and a._replace(case=b.case) == b
