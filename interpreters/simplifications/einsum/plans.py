"""Contraction order of a product of factors (einsum path), greedily.

First of indices that must be equal one is left, and each has the least range. Then each factor is summed over what it
alone has an index of; then pairs of factors with an index in common that is summed over are contracted, that with the
least result first; then the rest is multiplied, the least first.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters.simplifications.constants import count
from tapeless.interpreters.simplifications.einsum.indices import Equal, Indices
from tapeless.interpreters.simplifications.slicing.views import Axis, View, read, spread
from tapeless.interpreters.simplify import Writer, literal
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.reduction import reduce_sum_p
from tapeless.tracer.types import ShapedArray

Labels = tuple[int, ...]


class Factor(NamedTuple):
    """A value, reshaped to an axis for each of its indices; None is that of an axis of length 1 that is broadcast."""

    value: Atom
    labels: tuple[int | None, ...]


class Product(NamedTuple):
    """Factors, the indices that their product is summed over, which indices must be equal, and a sign."""

    factors: tuple[Factor, ...]
    summed: frozenset[int] = frozenset()
    equal: tuple[Equal, ...] = ()
    negative: bool = False

    def times(self, other: "Product") -> "Product":
        """The product of both."""
        return Product(
            self.factors + other.factors,
            self.summed | other.summed,
            self.equal + other.equal,
            self.negative != other.negative,
        )

    def over(self, labels: Sequence[int]) -> "Product":
        """Sum over more indices."""
        return self._replace(summed=self.summed.union(labels))


class _Intermediate(NamedTuple):
    """A value to be, with an index for each of its axes."""

    labels: Labels
    write: Callable[[], Atom]


class Plan:
    """A contraction order of one product, with the indices `out`: its cost, its number of steps, and its equations.

    `sizes` are those of the indices, before what must be equal is, `aval` is of the dtype of the result, `precision`
    that of contractions.
    """

    def __init__(
        self, w: Writer, product: Product, out: Labels, sizes: Mapping[int, int], aval: ShapedArray, precision: Any
    ) -> None:
        self._w, self._out, self._whole, self._aval = w, out, sizes, aval
        self._precision = precision or (Precision.HIGHEST, Precision.HIGHEST)
        self._factor = -1 if product.negative else 1
        self._indices = indices = Indices(sizes, product.summed, product.equal)
        self._sizes = {k: len(indices.range(k)) for k in sizes}
        self._summed = indices.summed
        self.cost: float = 0
        self.steps = 0
        self._terms = [self._read(f) for f in product.factors if not _is_one(f.value)]
        self._sum_alone()
        while any(self._summed.intersection(t.labels) for t in self._terms):
            self._contract()
        self._scale()
        while len(self._terms) > 1:
            a, b = min(combinations(self._terms, 2), key=lambda pair: self._joint(*pair))
            self._join(a, b, self._multiplied(a, b))
        self.cost += len(indices.masks) * self._size(out)

    def write(self) -> Atom:
        """The value, with the indices of the result."""
        (term,) = self._terms
        value = self._padded(self._arranged(term.write(), term.labels, self._out))
        for equal in self._indices.masks:
            value = self._masked(value, equal)
        return value

    def _padded(self, x: Atom) -> Atom:
        """Zeros where an index of the result is out of its range."""
        ranges = [(self._indices.range(k), self._whole[k]) for k in self._out]
        config = tuple([(indices.start, n - indices.stop, 0) for indices, n in ranges])
        return self._w.write(s.pad_p, x, literal(0, x.aval), padding_config=config)

    def _size(self, labels: Any) -> int:
        return prod([self._sizes[k] for k in labels])

    def _read(self, f: Factor) -> _Intermediate:
        """Write a factor with each index once, in its range: the diagonal of axes with one index."""
        now = [None if k is None else self._indices.now(k) for k in f.labels]
        labels = tuple(dict.fromkeys([found[0] for found in now if found is not None]))
        axes = [Axis(0, 1, None) if found is None else self._axis(*found, labels) for found in now]
        view = View(tuple(axes), tuple([self._sizes[k] for k in labels]))
        return _Intermediate(labels, lambda: read(self._w, self._split(f), view))

    def _axis(self, k: int, shift: int, labels: Labels) -> Axis:
        return Axis(self._indices.range(k).start + shift, 1, labels.index(k))

    def _split(self, f: Factor) -> Atom:
        """A factor's value, with an axis for each of its indices."""
        shape = tuple([1 if k is None else self._whole[k] for k in f.labels])
        return self._w.write(s.reshape_p, f.value, shape=shape)

    def _sum_alone(self) -> None:
        """Sum each factor over the indices that it alone has; an index that no factor has multiplies by its size."""
        for k, term in enumerate(self._terms):
            others = {label for t in self._terms if t is not term for label in t.labels}
            alone = [label for label in term.labels if label in self._summed and label not in others]
            if alone:
                self._terms[k] = self._sum(term, alone)
        self._factor *= self._size([k for k in self._summed if not any(k in t.labels for t in self._terms)])
        self._summed.intersection_update([k for t in self._terms for k in t.labels])

    def _sum(self, term: _Intermediate, alone: Sequence[int]) -> _Intermediate:
        self.cost += self._size(term.labels)
        self.steps += 1
        self._summed.difference_update(alone)
        axes = tuple([d for d, k in enumerate(term.labels) if k in alone])
        left = tuple([k for k in term.labels if k not in alone])
        return _Intermediate(left, lambda: self._w.write(reduce_sum_p, term.write(), axes=axes))

    def _contract(self) -> None:
        """The pair of factors with an index to be summed over, whose product has the least elements."""
        pairs = [pair for pair in combinations(self._terms, 2) if self._shared(*pair)]
        a, b = min(pairs, key=lambda pair: (self._size(self._left(*pair)), self._joint(*pair)))
        over = [k for k in a.labels if k in self._shared(a, b) and k not in self._others(a, b)]
        self._join(a, b, self._dot(a, b, over) if over else self._multiplied(a, b))

    def _shared(self, a: _Intermediate, b: _Intermediate) -> set[int]:
        return self._summed.intersection(a.labels).intersection(b.labels)

    def _others(self, a: _Intermediate, b: _Intermediate) -> set[int]:
        return {k for t in self._terms if t is not a and t is not b for k in t.labels}

    def _joint(self, a: _Intermediate, b: _Intermediate) -> int:
        return self._size({*a.labels, *b.labels})

    def _left(self, a: _Intermediate, b: _Intermediate) -> set[int]:
        return {*a.labels, *b.labels} - (self._shared(a, b) - self._others(a, b))

    def _join(self, a: _Intermediate, b: _Intermediate, both: _Intermediate) -> None:
        self.cost += self._joint(a, b)
        self.steps += 1
        self._terms = [*[t for t in self._terms if t is not a and t is not b], both]

    def _dot(self, a: _Intermediate, b: _Intermediate, over: Sequence[int]) -> _Intermediate:
        self._summed.difference_update(over)
        batch = [k for k in a.labels if k in b.labels and k not in over]
        gone = {*over, *batch}
        labels = (*batch, *[k for k in a.labels if k not in gone], *[k for k in b.labels if k not in gone])
        dims = tuple([tuple([tuple([t.labels.index(k) for k in ks]) for t in (a, b)]) for ks in (over, batch)])
        params = {"dimension_numbers": dims, "precision": self._precision, "preferred_element_type": None}
        return _Intermediate(labels, lambda: self._w.write(dot_general_p, a.write(), b.write(), **params))

    def _multiplied(self, a: _Intermediate, b: _Intermediate) -> _Intermediate:
        every = {*a.labels, *b.labels}
        first = a.labels if len(a.labels) >= len(b.labels) else b.labels
        known = [k for k in self._out if k in every]
        labels = first if len(first) == len(every) else (*known, *sorted(every.difference(known)))

        def write() -> Atom:
            x, y = (self._arranged(t.write(), t.labels, labels) if t.labels else t.write() for t in (a, b))
            return self._w.write(e.mul_p, x, y)

        return _Intermediate(labels, write)

    def _scale(self) -> None:
        """The number in front, to the least of the factors."""
        if self._factor != 1 or not self._terms:
            least = min(self._terms, key=lambda t: self._size(t.labels), default=None)
            self.steps += 1
            self.cost += 0 if least is None else self._size(least.labels)
            number = count(self._w, self._factor, self._aval)
            if number is None:
                self.cost = math.inf
                return
            scaled = _Intermediate((), lambda: number) if least is None else self._times(least, number)
            self._terms = [*[t for t in self._terms if t is not least], scaled]

    def _times(self, term: _Intermediate, number: Atom) -> _Intermediate:
        return _Intermediate(term.labels, lambda: self._w.write(e.mul_p, number, term.write()))

    def _arranged(self, x: Atom, labels: Labels, wanted: Labels) -> Atom:
        """A value broadcast along the indices that it lacks, in another order."""
        order = sorted(range(len(labels)), key=lambda d: wanted.index(labels[d]))
        x = self._w.write(s.transpose_p, x, permutation=tuple(order))
        dims = tuple(sorted([wanted.index(k) for k in labels]))
        return spread(self._w, x, dims, tuple([self._sizes[k] for k in wanted]))

    def _masked(self, x: Atom, equal: Equal) -> Atom:
        one, other = [
            self._w.write(s.iota_p, dtype=np.dtype(np.int32), shape=x.aval.shape, dimension=self._out.index(k))
            for k in (equal.one, equal.other)
        ]
        shifted = self._w.write(e.add_p, other, literal(equal.shift, other.aval)) if equal.shift else other
        return self._w.write(e.select_n_p, self._w.write(e.eq_p, one, shifted), literal(0, x.aval), x)


def _is_one(x: Atom) -> bool:
    return type(x) is Literal and not x.aval.shape and np.asarray(x.value) == 1
