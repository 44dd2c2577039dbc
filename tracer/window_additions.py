"""Additions to windows of arrays in place, as transposition writes them: slice, add, dynamic_update_slice.

Written as the sum with a padded array they would take the work of the whole array. So the programs keep the three
equations, and what is to see one operation in them finds it here.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives.elementwise import add_p
from tapeless.tracer.primitives.indexing import dynamic_slice_p, dynamic_update_slice_p
from tapeless.tracer.primitives.shape import slice_p


class WindowAddition(NamedTuple):
    """The sum of `whole` and of `part` at the window that begins at `starts`; inner: the equations that it contains."""

    whole: Var
    part: Atom
    starts: tuple[Atom, ...]
    inner: tuple[Equation, Equation]  # of the slice and of the sum, which nothing else reads

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The starts, if they are known."""
        return tuple([int(i.value) for i in self.starts if type(i) is Literal]) if _are_known(self.starts) else None


@core.memoize_by_program
def find_additions(jaxpr: Jaxpr) -> Mapping[Equation, WindowAddition]:
    """Find the additions to windows in place, by the equations that write them; not those of programs inside."""
    uses = Counter([v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var])
    uses.update([v for v in jaxpr.outvars if type(v) is Var])
    makers: dict[Atom, Equation] = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars if uses[v] == 1}
    writes = [eqn for eqn in jaxpr.eqns if eqn.primitive is dynamic_update_slice_p]
    return {eqn: found for eqn in writes if (found := _addition(eqn, makers)) is not None}


def _addition(write: Equation, makers: Mapping[Atom, Equation]) -> WindowAddition | None:
    """Recognise the write of a sum of the very window that it replaces; `makers`: of what is read once."""
    whole, total, *starts = write.invars
    added = makers.get(total)
    if added is None or added.primitive is not add_p or type(whole) is not Var:
        return None
    for window, part in (added.invars, added.invars[::-1]):
        read = makers.get(window)
        reads_it = read is not None and read.invars[0] is whole and _begins_at(read, starts)
        if read is not None and reads_it and part.aval.shape == window.aval.shape:
            return WindowAddition(whole, part, tuple(starts), (read, added))
    return None


def _begins_at(read: Equation, starts: list[Atom]) -> bool:
    """Does an equation read a window at these starts?"""
    if read.primitive is dynamic_slice_p:
        return all(_are_same(i, j) for i, j in zip(read.invars[1:], starts, strict=True))
    if read.primitive is not slice_p:
        return False
    begins, strides = read.params["start_indices"], read.params["strides"]
    return set(strides) <= {1} and all(type(i) is Literal and n == i.value for n, i in zip(begins, starts, strict=True))


def _are_known(starts: tuple[Atom, ...] | list[Atom]) -> bool:
    return all(type(i) is Literal for i in starts)


def _are_same(i: Atom, j: Atom) -> bool:
    return i is j or (type(i) is Literal and type(j) is Literal and i.value == j.value)
