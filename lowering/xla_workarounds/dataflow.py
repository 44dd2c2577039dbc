"""May-alias analysis of one function of a module, as it is written: which values could share memory.

XLA on CPU fuses a write into a part of an array with the computation of the update. It then writes in place, and reads
elements that it has overwritten, if they are read through a reshape (docs/xla_defects.md,
`update_from_reshaped_target`). So an update that may be computed from the array it is written into is kept apart by a
barrier. An update computed elementwise from the very window that it replaces needs none.
Left out, to err on the safe side: which other windows overlap, and what bodies compute.
"""

from collections.abc import Iterable, Sequence
from typing import Any

LIMIT = 300  # values visited for one answer; beyond, the answer is yes
# Operations whose result XLA may take for a view of their first operand, if it has as many elements.
VIEWS = frozenset(
    "reshape transpose broadcast_in_dim convert reverse slice dynamic_slice pad concatenate dynamic_update_slice "
    "optimization_barrier".split()
)
_ELEMENTWISE = frozenset(
    "add subtract multiply divide negate maximum minimum select compare convert and or not abs sign real imag complex "
    "exponential log sine cosine tanh sqrt rsqrt power".split()
)
_PROGRAMS = frozenset(["func.call", "while", "if", "case"])  # XLA may inline their bodies
ARGUMENTS = "arguments"  # a common source of all arguments of a called function: its caller may pass an array twice


class Dataflow:
    """The sources of each of a function's values, and the arrays that it may be a view of, all by name."""

    def __init__(self) -> None:
        self._sources: dict[str, Sequence[str]] = {}
        self._elementwise: set[str] = set()
        self._windows: dict[str, tuple[Any, ...]] = {}  # window -> its array, and its starts in it
        self._root: dict[str, str] = {}  # view -> its array; array -> the first array that is equal to it
        self._results: set[str] = set()  # results of programs, which may be any of their sources
        self._first: dict[Any, str] = {}  # operation -> its first result, as XLA joins equal values (CSE)

    def add(
        self,
        names: Sequence[str],
        kind: str,
        operands: Sequence[str],
        *,
        inside: Iterable[str] = (),
        how: Any = None,
        view: bool = False,
    ) -> None:
        """Record an operation.

        Args:
          names: its results.
          kind: its name; `how`: attributes and types, in which two equal operations of one kind agree.
          operands, inside: the names read by it, and by its regions.
          view: whether its result may be a view of its first operand.
        """
        sources = (*operands, *inside)
        self._sources.update(dict.fromkeys(names, sources))
        if kind in _ELEMENTWISE:
            self._elementwise.update(names)
        if kind in _PROGRAMS:
            self._results.update(names)
            return
        roots = [self._root.get(v, v) for v in operands]
        if view:
            self._root[names[0]] = roots[0]
        elif names and kind != "constant":
            self._root[names[0]] = self._first.setdefault((kind, *roots, how), names[0])

    def cut(self, name: str) -> None:
        """Cut the aliases of a value: XLA does not see the operands of its definition."""
        self._sources.pop(name)
        self._results.discard(name)

    def window(self, name: str, array: str, starts: Sequence[str | int]) -> None:
        """Record that a value is a window of an array, without strides, starting at numbers or named scalars."""
        self._windows[name] = self._place(array, starts)

    def may_read(self, name: str, array: str, starts: Sequence[str | int] = ()) -> bool:
        """Tell whether a value may be computed from the memory of an array.

        starts: of the window that the value will replace; elementwise reads of this window do not count.
        """
        targets, place = self._arrays(array), self._place(array, starts)
        waiting, seen = [(name, True)], set[tuple[str, bool]]()
        for each, in_place in waiting:  # breadth first: the list grows in the loop
            if (each, in_place) in seen or (in_place and self._windows.get(each) == place):
                continue
            if len(seen) > LIMIT or self._root.get(each, each) in targets:
                return True
            seen.add((each, in_place))
            stays = in_place and each in self._elementwise
            waiting += [(source, stays) for source in self._sources.get(each, ())]
        return False

    def _place(self, array: str, starts: Sequence[str | int]) -> tuple[Any, ...]:
        return array, *[self._root.get(i, i) if isinstance(i, str) else i for i in starts]

    def _arrays(self, name: str) -> set[str]:
        """List the arrays that a value may be a view of."""
        found, waiting = set[str](), [name]
        for each in waiting:
            root = self._root.get(each, each)
            if root not in found:
                found.add(root)
                waiting += self._sources.get(root, ()) if root in self._results else ()
        return found
