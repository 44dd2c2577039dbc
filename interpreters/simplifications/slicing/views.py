"""Views: which elements of a value are read, and composition with the terms of the equation that computes the value.

Search terms: polyhedral access relation, image of an access, strided view. Composing a view of a result with a term
`out[O(v)] = x[A(v)]` of an index row yields the elements that are read of the operand x, and their places in the view.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from tapeless.interpreters.terms.accesses import DigitAxis, Shape, axes_of
from tapeless.interpreters.terms.lower_views import Order, arranged, placed, viewed
from tapeless.interpreters.terms.tiles import Box
from tapeless.interpreters.writer import Writer, literal
from tapeless.tracer.jaxpr import Atom, Equation, Literal
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.terms.affine import Access, Affine, Symbol, symbol, variables
from tapeless.tracer.terms.solve import composed
from tapeless.tracer.terms.term import Read, Term, looked_up, term, variables_of


class View(NamedTuple):
    """Elements x[access(v)] of a value for all v in a box of this shape. Symbols number window starts in `Starts`."""

    access: Access
    shape: Shape

    @property
    def size(self) -> int:
        """Number of elements that are read."""
        return prod(self.shape)

    @property
    def has_windows(self) -> bool:
        """Tell whether the view has symbols: it reads windows with unknown starts."""
        return any(a.symbols for a in self.access)

    def in_order(self) -> "tuple[View, Order]":
        """Drop the axes of the view that no index reads, and order the others as the value has them.

        Returns: the view, and the old number of each axis.
        """
        order = tuple(dict.fromkeys([v for a in self.access for v in variables_of(a)]))
        names = {v: d for d, v in enumerate(order)}
        shape = tuple([self.shape[v] for v in order])
        return View(tuple([a.renamed(names.__getitem__) for a in self.access]), shape), order


class PartTerm(NamedTuple):
    """A term that computes a view of this shape: elements `out` from these reads, for all variables below `sizes`."""

    out: Access
    sizes: Sequence[int]
    factors: Sequence[Read]
    shape: Shape

    def view(self, k: int = 0) -> tuple[View, Order]:
        """Return the view that factor number `k` reads, with an axis for each variable in it, and these in order."""
        return View(self.factors[k].access, tuple(self.sizes)).in_order()

    @property
    def is_in_place(self) -> bool:
        """Tell whether variables of the view come first and are its indices: element v depends on the reads for v."""
        return self.out == variables(self.shape)

    @property
    def place(self) -> tuple[DigitAxis, ...] | None:
        """Return the digits of `out` along each axis of the view; None if a variable longer than 1 has no digit."""
        axes = axes_of(self.out, self.shape, self.sizes)
        written = sorted([d.variable for a in axes or () for d in a.digits])
        return axes if written == [v for v, n in enumerate(self.sizes) if n != 1] else None

    def put(self, w: Writer, x: Atom, box: Box, around: Atom | None = None) -> Atom:
        """Write `x`, the view that the only factor reads, into its place in a box, padded with the number `around`."""
        axes = self.place or ()
        digits = tuple([d.variable for a in axes for d in a.digits])
        return placed(w, arranged(w, x, self.view()[1], digits, self.sizes), axes, self.sizes, box, around)


@lru_cache(maxsize=4096)
def with_view(t: Term, view: View) -> Sequence[PartTerm] | None:
    """Compose a view with a term of the value.

    Returns: one term, or an empty sequence if the term writes nothing that is read; None if brackets remain.
    """
    found = composed(term(variables(view.shape), view.shape, [Read(0, view.access)]), 0, t)
    if found is None:
        return ()
    if found.brackets or found.coefficient != t.coefficient:
        return None
    own = [a.variable for a, n in zip(found.out, view.shape) if n != 1]
    sizes_of_own = [found.sizes[v] for v in own if v is not None]
    if len({*own}) < len(own) or sizes_of_own != [n for n in view.shape if n != 1]:
        return (PartTerm(found.out, found.sizes, found.factors, view.shape),)
    others = [v for v in range(len(found.sizes)) if v not in own]
    axes = [d for d, n in enumerate(view.shape) if n != 1]
    names = dict(zip([*own, *others], [*axes, *range(len(view.shape), len(view.shape) + len(others))]))
    access = [tuple([a.renamed(names.__getitem__) for a in f.access]) for f in found.factors]
    factors = [f._replace(access=own) for f, own in zip(found.factors, access)]
    sizes = (*view.shape, *[found.sizes[v] for v in others])
    return (PartTerm(variables(view.shape), sizes, factors, view.shape),)


def whole(shape: Shape) -> View:
    """Return the view of all of a value."""
    return View(tuple([Affine() if n == 1 else v for n, v in zip(shape, variables(shape))]), shape)


def of_all(view: View, n: int) -> View:
    """Return the view of a stack of n values, along a new first axis, that has a view of each."""
    first = Affine() if n == 1 else variables((n,))[0]
    return View((first, *[a.renamed(lambda v: v + 1) for a in view.access]), (n, *view.shape))


def of_each(view: View, n: int) -> View | None:
    """Invert `of_all`; None if a view of a stack of n values is not that of the same elements of each."""
    first, *rest = view.access
    is_whole = view.shape[:1] == (n,) and n != 1 and first == variables((n,))[0]
    if not is_whole or any(0 in variables_of(a) for a in rest):
        return None
    return View(tuple([a.renamed(lambda v: v - 1) for a in rest]), view.shape[1:])


def box_of(views: Sequence[View], shape: Shape) -> View | None:
    """Return the smallest box of a value that has all elements of views; None if it is all of it, or is not known."""
    read = [view for view in views if view.size]
    if not read or any(view.has_windows for view in views):
        return None
    bounds = [[a.bounds(view.shape) for a in view.access] for view in read]
    lows = [min(low for low, _ in of_axis) for of_axis in zip(*bounds)]
    sizes = tuple([max(high for _, high in of_axis) + 1 - low for of_axis, low in zip(zip(*bounds), lows)])
    box = View(tuple([a + low for a, low in zip(whole(sizes).access, lows)]), sizes)
    return box if box.size < prod(shape) and all(is_readable(within(view, box), sizes) for view in views) else None


def within(view: View, box: View) -> View:
    """Return the view of a box that has the elements of a view of the value that the box is a part of."""
    return View(tuple([a - start.constant for a, start in zip(view.access, box.access)]), view.shape)


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


# ---- as operations -------------------------------------------------------------------------------------------


def is_readable(view: View, shape: Shape) -> bool:
    """Tell whether `read` has operations for a view of a value of this shape."""
    return _axes(view, shape) is not None


def read(w: Writer, x: Atom, view: View, starts: Sequence[Atom]) -> Atom:
    """Write the operations that read a view of a value: first a dynamic slice, if it has windows.

    Args:
      starts: the window starts, by their numbers.
    Raises: ValueError unless `is_readable` holds.
    """
    shape = x.aval.shape
    axes = _axes(view, shape)
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


def _axes(view: View, shape: Shape) -> tuple[DigitAxis, ...] | None:
    """Return the digits of a view along each axis of the windows of a value; None if no operations read it."""
    windows = [_window(a, n) for a, n in zip(view.access, shape)]
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
