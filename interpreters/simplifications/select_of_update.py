"""Select of an update: a select between an array and its update becomes an update by a select.

`where(p, b.at[i].set(v), b)` with a scalar p is `b.at[i].set(where(p, v, b[i]))`.

The first select reads every element, the second one only those that are written: in a loop over n elements that is n
instead of n² work.
"""

from typing import Any, NamedTuple

from tapeless.interpreters.writer import Writer, fill_array, uses
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.dimension_numbers import reading_again
from tapeless.tracer.primitives.elementwise import select_n_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.source import Source

_SCATTERS = frozenset((i.scatter_p, i.scatter_add_p, i.scatter_mul_p, i.scatter_min_p, i.scatter_max_p))
_WRITES = _SCATTERS | {i.dynamic_update_slice_p}


def select_before_update(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite selects between an array and its update into updates by selects; the same object if there are none."""
    if select_n_p not in jaxpr.primitives or jaxpr.primitives.isdisjoint(_WRITES):
        return jaxpr
    w, counts = Writer(jaxpr), dict[Any, int](uses(jaxpr))
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        choice = _choice(w, counts, now) if eqn.primitive is select_n_p else None
        written = None if choice is None else _written(w, choice, eqn.source)
        if written is not None and w.replace(eqn, written):
            counts[written] = counts.get(written, 0) + counts.get(eqn.outvars[0], 0)
        else:
            w.keep(now)
    return w.finish()


class _ConditionalUpdate(NamedTuple):
    """A select between `array` updated by `writes`, in order, if `predicate` is `case`, and `array` itself."""

    predicate: Atom
    case: bool
    array: Atom
    writes: list[Equation]


def _choice(w: Writer, counts: dict[Any, int], eqn: Equation) -> _ConditionalUpdate | None:
    """Match a select by a scalar predicate between an array and updates of it; None if it is no such select."""
    predicate = _scalar(w, eqn.invars[0])
    if predicate is None or len(eqn.invars) != 3:
        return None
    for case, array, written in ((True, *eqn.invars[1:]), (False, *eqn.invars[:0:-1])):
        writes = _writes(w, counts, written, array)
        if writes and all(v.aval is eqn.outvars[0].aval for v in (array, *[x.outvars[0] for x in writes])):
            return _ConditionalUpdate(predicate, case, array, writes)
    return None


def _scalar(w: Writer, v: Atom) -> Atom | None:
    """Return the scalar that `v` is, or is a broadcast of; None if it is neither."""
    made = w.made_by(v, broadcast_in_dim_p)
    x = v if made is None else made.invars[0]
    return None if x.aval.shape else x


def _writes(w: Writer, counts: dict[Any, int], written: Atom, array: Atom) -> list[Equation]:
    """Collect the chain of updates from `array` to `written`, in order; empty if anything else reads their results."""
    found: list[Equation] = []
    while written is not array:
        eqn = w.definition(written)
        if eqn is None or not _is_write(eqn) or counts.get(written) != 1:
            return []
        found.append(eqn)
        written = eqn.invars[0]
    return found[::-1]


def _written(w: Writer, choice: _ConditionalUpdate, source: Source | None) -> Atom:
    """Write the chain of updates again, each with a select of what it writes; return the last result."""
    array = choice.array
    for write in choice.writes:
        k = _updates(write)
        w.source = write.source
        updates, instead = write.invars[k], _instead(w, write, array)
        cases = (instead, updates) if choice.case else (updates, instead)
        w.source = source
        chosen = w.write(select_n_p, choice.predicate, *cases)
        w.source = write.source
        array = w.write(write.primitive, array, *write.invars[1:k], chosen, *write.invars[k + 1 :], **write.params)
    return array


def _instead(w: Writer, write: Equation, array: Atom) -> Atom:
    """Write the updates that change nothing: the elements now stored there, or the neutral element of the scatter."""
    updates = write.invars[_updates(write)].aval
    if write.primitive in (i.scatter_add_p, i.scatter_mul_p):
        return fill_array(w, 1 if write.primitive is i.scatter_mul_p else -0.0, updates)  # -0.0 keeps the sign of zeros
    if write.primitive is i.dynamic_update_slice_p:
        return w.write(i.dynamic_slice_p, array, *write.invars[2:], slice_sizes=updates.shape)
    fill = 0 if write.params["mode"] is i.GatherScatterMode.FILL_OR_DROP else None
    return w.write(i.gather_p, array, write.invars[1], **reading_again(write.params, array.aval, updates, fill))


def _updates(write: Equation) -> int:
    """Return the number of the operand that holds the updates."""
    return 2 if write.primitive in _SCATTERS else 1


def _is_write(eqn: Equation) -> bool:
    """Tell whether an equation writes fewer elements than its array has, in windows that do not overlap."""
    if eqn.primitive not in _WRITES:
        return False
    updates = eqn.invars[_updates(eqn)].aval
    apart = eqn.primitive is i.dynamic_update_slice_p or eqn.params["unique_indices"]
    return bool(apart) and 0 < updates.size < eqn.invars[0].aval.size
