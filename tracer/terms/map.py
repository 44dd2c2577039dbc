"""Maps: which elements of one array make up another one, as a term of one factor between two shapes.

Search terms: access relation, image and preimage, strided view, layout algebra. A map is in place if each index of its
result is a variable, numbered as its axis, that nothing else sums over: then element v is the one read at `access`.
Other maps write elements into places, leave some out, or add several up (for masks, by `or`). Maps that read an array
at positions determined by data have symbols or lookups, numbered as whoever makes them says.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from tapeless.tracer.terms.affine import Access, Affine, Variable, variable, variables
from tapeless.tracer.terms.solve import compose_terms
from tapeless.tracer.terms.term import Read, Term, term, variables_of

Shape = tuple[int, ...]


class Map(NamedTuple):
    """An array of shape `shape`, of elements of one of shape `of`: what a term that reads this as factor 0 writes."""

    term: Term
    of: Shape
    shape: Shape

    @property
    def access(self) -> Access:
        """Return where the array is read, in variables of the term; they number the axes of a map in place."""
        return self.term.factors[0].access

    @property
    def size(self) -> int:
        """Count the elements of the result."""
        return prod(self.shape)

    @property
    def has_symbols(self) -> bool:
        """Tell whether a map in place reads a window with an unknown start."""
        return any(a.symbols for a in self.access)

    @property
    def is_identity(self) -> bool:
        return self.of == self.shape and self == identity_map(self.shape)

    def then(self, reader: "Map") -> "Map | None":
        """Compose with a map that reads the result of this one; None if nothing that it writes is read."""
        found = _composed(reader.term, self.term)
        return None if found is None else make_map(found.unit, self.of, reader.shape)

    def in_order(self) -> "tuple[Map, tuple[Variable, ...]]":
        """Drop the axes of a map in place that no index reads, and order the others as the array has them.

        Returns: the map, and the old number of each axis.
        """
        return view_along_variables(self.access, self.term.sizes, self.of)

    def stacked(self, n: int) -> "Map":
        """Return the map of `n` arrays, stacked along a new first axis, that has this map of each."""
        if self.is_in_place:
            each = Affine() if n == 1 else variable(0)
            access = (each, *[a.renamed(lambda v: v + 1) for a in self.access])
            return make_view(access, (n, *self.of), (n, *self.shape))
        t, each = self.term, variable(len(self.term.sizes))
        read = [Read(0, (each, *self.access))]
        return make_map(term((each, *t.out), (*t.sizes, n), read, t.brackets), (n, *self.of), (n, *self.shape))

    def of_each(self) -> "Map | None":
        """Invert `stacked`; None if this map in place is not the same one of each array along the first axis."""
        first, *rest = self.access
        is_whole = self.shape[:1] == self.of[:1] != (1,) and first == variable(0)
        if not is_whole or any(0 in variables_of(a) for a in rest):
            return None
        return make_view(tuple([a.renamed(lambda v: v - 1) for a in rest]), self.of[1:], self.shape[1:])

    @property
    def is_in_place(self) -> bool:
        """Tell whether each element is one that is read: it is the map of an access."""
        t = self.term
        return len(t.sizes) == len(self.shape) and not t.brackets and t.out == variables(self.shape)


@lru_cache(maxsize=4096)
def make_view(access: Access, of: Shape, shape: Shape) -> Map:
    """Make the map in place that reads an array of shape `of` at an access, with variables numbered as the axes."""
    return Map(term(variables(shape), shape, [Read(0, access)]), of, shape)


def view_along_variables(access: Access, sizes: Sequence[int], of: Shape) -> tuple[Map, tuple[Variable, ...]]:
    """Make the map in place that reads an array at an access, with an axis for each variable; return these in order."""
    names: dict[Variable, int] = {}
    for a in access:
        for v in variables_of(a):
            names.setdefault(v, len(names))
    renamed = tuple([a.renamed(names.__getitem__) for a in access])
    return make_view(renamed, of, tuple([sizes[v] for v in names])), tuple(names)


@lru_cache(maxsize=1024)
def identity_map(shape: Shape) -> Map:
    """Make the map that reads all of an array, in place."""
    return make_view(tuple([Affine() if n == 1 else v for n, v in zip(shape, variables(shape))]), shape, shape)


def make_map(t: Term, of: Shape, shape: Shape) -> Map:
    """Make the map of a solved term, in place if it can be."""
    return Map(in_place(t, shape), of, shape)


@lru_cache(maxsize=4096)
def in_place(t: Term, shape: Shape) -> Term:
    """Number the variables of a solved term so that each index of the result is a variable, numbered as its axis.

    Axes of length 1 get variables of their own. Returns: the term as it is if its indices are not different variables
    that run along whole axes.
    """
    own = [a.variable for a, n in zip(t.out, shape) if n != 1]
    sizes = [t.sizes[v] for v in own if v is not None]
    if t.brackets or len({*own}) < len(own) or sizes != [n for n in shape if n != 1]:
        return t
    axes, others = variables(shape, len(t.sizes)), [v for v in range(len(t.sizes)) if v not in own]
    to = {v: axes[d] for v, d in zip(own, [d for d, n in enumerate(shape) if n != 1])} | {
        v: variable(v) for v in others
    }
    factors = [f._replace(access=tuple([a.at(to) for a in f.access])) for f in t.factors]  # type: ignore[arg-type]
    sizes_of = {v: t.sizes[v] for v in others} | {len(t.sizes) + d: n for d, n in enumerate(shape)}
    return term(axes, sizes_of, factors, (), t.coefficient)


@lru_cache(maxsize=4096)
def _composed(reader: Term, producer: Term) -> Term | None:
    return compose_terms(reader, 0, producer)


@lru_cache(maxsize=4096)
def compose_with_term(m: Map, t: Term) -> Sequence[Term] | None:
    """Compose a map with a term of the array that it reads; None if brackets remain.

    Returns: one term, in place if it can be; or an empty sequence if `t` writes nothing that is read.
    """
    found = compose_terms(m.term, 0, t)
    if found is None:
        return ()
    if found.brackets or found.coefficient != t.coefficient:
        return None
    return (in_place(found, m.shape),)


# ---- boxes ---------------------------------------------------------------------------------------------------


def find_box(reads: Sequence[tuple[Access, Sequence[int]]], of: Shape) -> Map:
    """Return the smallest box of an array of shape `of` that has all elements read at accesses, over these sizes.

    Symbols read all that they may. What is outside of the array is not read.
    """
    access, shape = list(identity_map(of).access), list(of)
    for d, n in enumerate(of):
        ends = [index[d].bounds(sizes) for index, sizes in reads]
        low, high = max(min(low for low, _ in ends), 0), min(max(high for _, high in ends), n - 1)
        access[d], shape[d] = Affine(low, ((d, 1),) if high > low else ()), high - low + 1
    return make_view(tuple(access), of, tuple(shape))


def find_view_in_box(m: Map, box: Map) -> Map:
    """Return the map that reads in a box of an array what `m` reads in the array."""
    access = tuple([a - start.constant for a, start in zip(m.access, box.access)])
    return make_view(access, box.shape, m.shape)
