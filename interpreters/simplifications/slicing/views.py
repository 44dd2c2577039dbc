"""Views as operations: write the elements of a value that a map in place reads; number the starts of windows."""

from collections.abc import Sequence

from tapeless.interpreters.terms.accesses import DigitAxis, axes_of
from tapeless.interpreters.terms.lower_views import Order, arranged, viewed
from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.terms.affine import Affine, Symbol, symbol
from tapeless.tracer.terms.map import Map, Shape
from tapeless.tracer.terms.term import Term, looked_up


class Starts:
    """The unknown window starts of one program, numbered: symbols of views are these numbers."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []

    def known(self, eqn: Equation, t: Term) -> Term:
        """Renumber the symbols of a term of an equation as starts; literal starts become constants."""
        if not looked_up(t):
            return t

        def at(a: Affine) -> Affine:
            return sum(
                [c * self._start(eqn.invars[s.operand], s) for s, c in a.symbols], Affine(a.constant, a.variables)
            )

        return t.with_indices(at)

    def _start(self, x: Atom, s: Symbol) -> Affine:
        if type(x) is Literal:
            return Affine(min(max(int(x.value), s.low), s.high))
        if x not in self.atoms:
            self.atoms.append(x)
        return symbol(self.atoms.index(x), s.low, s.high)


def is_readable(view: Map) -> bool:
    """Tell whether `read` has operations for a view."""
    return _axes(view) is not None


def read(w: Writer, x: Atom, view: Map, starts: Sequence[Atom]) -> Atom:
    """Write the operations that read a view of a value: first a dynamic slice, if it has windows.

    Args:
      starts: the window starts, by their numbers.
    Raises: ValueError unless `is_readable` holds.
    """
    axes = _axes(view)
    if axes is None:
        raise ValueError(f"read: no operations are known for {view} of {x.aval}.")
    symbols = [next((starts[s.operand] for s, _ in a.symbols), None) for a in view.access]
    index = next((start.aval for start in symbols if start is not None), None)
    if index is not None:
        first = [literal(0, index) if start is None else start for start in symbols]
        x = w.write(dynamic_slice_p, x, *first, slice_sizes=tuple([a.size for a in axes]))
    x, order = viewed(w, x, axes, view.shape)
    return spread(w, x, order, view.shape)


def spread(w: Writer, x: Atom, order: Order, shape: Shape) -> Atom:
    """Broadcast a value to a shape; its axes are the axes `order` of that."""
    return arranged(w, x, order, tuple(range(len(shape))), shape)


def _axes(view: Map) -> tuple[DigitAxis, ...] | None:
    """Return the digits of a view along each axis of the windows of a value; None if no operations read it."""
    if not view.has_symbols:
        return axes_of(view.access, view.of, view.shape)
    windows = [_window(a, n) for a, n in zip(view.access, view.of)]
    inside = tuple([Affine(a.constant, a.variables) for a in view.access])
    return None if None in windows else axes_of(inside, tuple(windows), view.shape)  # type: ignore[arg-type]


def _window(a: Affine, n: int) -> int | None:
    """Return the size of the window that an index reads in; None if its start is more than one symbol.

    A window of this size is clamped as the start itself is.
    """
    if not a.symbols:
        return n
    (s, c), *others = a.symbols
    return n - s.high if not others and c == 1 and s.low == 0 else None
