"""Evaluate sums of terms by NumPy over a semiring: numbers, booleans, counts, extremes.

Search terms: semiring, provenance, sparsity inference, brute force. Every factor becomes an array with an axis for each
of its variables: a strided view if its access is inside of the operand for the whole box, else a gather. Brackets are
masks. Sums of products are computed by `einsum` unless a bracket has to keep an infinity out. A variable that a lookup
determines, as in a gather, is replaced by the array of its values, instead of running over all its positions.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.tracer.terms.affine import Access, Affine, Variable
from tapeless.tracer.terms.term import (
    Bracket,
    IsZero,
    Lookup,
    NotNegative,
    Read,
    Sum,
    Term,
    Use,
    term,
    variables_in,
    variables_of,
)

# An array with an axis for every variable of a term, of length 1 if it does not depend on that variable.
Grid = Any


class Semiring(NamedTuple):
    """A semiring: `add` and `multiply`, and `zero` as the value of elements to which no product is added."""

    dtype: Any
    zero: Any
    add: Any  # a ufunc
    multiply: Any = np.multiply  # a ufunc
    is_numeric: bool = False  # products are of numbers: with coefficients, conjugates and quotients


def numbers(dtype: Any) -> Semiring:
    """Return the semiring of sums of products in a dtype; for booleans, `or` of `and`."""
    return BOOLEANS if np.dtype(dtype) == bool else Semiring(np.dtype(dtype), 0, np.add, is_numeric=True)


BOOLEANS = Semiring(np.dtype(bool), False, np.logical_or, np.logical_and)
COUNTS = Semiring(np.dtype(np.int64), 0, np.add)  # the number of nonzero products


def evaluate_sum(terms: Sum, shape: Sequence[int], operands: Sequence[Any], semiring: Semiring) -> Any:
    """Evaluate a sum of terms to an array of `shape`.

    Args:
      operands: arrays of the semiring, or a scalar for a constant array; integers or booleans where terms read
        positions, cases or symbols from them.
    """
    out = np.full(tuple(shape), semiring.zero, semiring.dtype)
    for t in terms:
        if 0 not in t.sizes:
            _add(out, t, operands, semiring)
    return out


def _add(out: Any, t: Term, operands: Sequence[Any], ring: Semiring) -> None:
    """Add the products of one term to `out`, in place."""
    t, operands = accumulate_first(t, operands, ring)
    used = [f for f in t.factors if ring.is_numeric or f.use is not Use.DIVIDED]
    scale = [np.asarray(t.coefficient).astype(ring.dtype)] if ring.is_numeric and t.coefficient != 1 else []
    given = [np.asarray(operands[f.operand]) for f in used]
    box = Grids(t.sizes, operands)
    brackets = sorted(t.brackets, key=lambda b: not isinstance(b, Lookup))
    masks = [mask for b in brackets if (mask := box.mask(b)) is not None]
    arrays = [_as_used(box.read(x, f.access), f.use, ring) for f, x in zip(used, given)]
    arrays += [x.reshape((1,) * len(box.sizes)) for x in scale]
    place = box.place(out, t.out)
    at = place if place is not None else box.places(out.shape, t.out)
    total = _summed(arrays, masks, box.sizes, [n > 1 for n in at.shape], ring)
    if place is not None:
        place[...] = ring.add(place, total)
    elif out.size:
        at, total = np.broadcast_arrays(at, total)
        ring.add.at(out.reshape(-1), at, total)


def products_of(t: Term) -> int:
    """Count the products computed for a term: those of its box, without variables of lookups and cumulative sums."""
    given = {v for b in t.brackets if isinstance(b, Lookup) for v in variables_of(b.index)}
    running = _running(t)
    skipped = given if running is None else {*given, running.summed}
    return prod([n for v, n in enumerate(t.sizes) if v not in skipped])


class _Running(NamedTuple):
    """A cumulative sum along an axis of x: Σ j. [i >= j] x[j], with [j >= i] if `reverse`."""

    axis: int
    summed: Variable  # j
    upto: Affine  # i
    reverse: bool


@lru_cache(maxsize=4096)
def _running(t: Term) -> _Running | None:
    """Recognize a term that is a cumulative sum; None for other terms."""
    if len(t.brackets) != 1 or len(t.factors) != 1 or not isinstance(t.brackets[0], NotNegative):
        return None
    (f,), bound = t.factors, t.brackets[0].index
    used = [v for a in (*t.out, *f.access) for v in variables_of(a)]
    for axis, index in enumerate(f.access if f.use is Use.PLAIN else ()):
        j = index.variable
        sign = 0 if j is None else bound.coefficient(j)
        i = (bound - sign * index) * -sign
        if j is None or i.variable is None or t.sizes[j] != t.sizes[i.variable] or used.count(j) > 1:
            continue
        if i.variable not in [v for a in f.access for v in variables_of(a)]:
            return _Running(axis, j, i, sign > 0)
    return None


def accumulate_first(t: Term, operands: Sequence[Any], ring: Semiring) -> tuple[Term, Sequence[Any]]:
    """Compute a cumulative sum by `ring.add`, and return a term that reads it as a further operand; others stay."""
    running = _running(t)
    if running is None:
        return t, operands
    (f,), (axis, j, i, reverse) = t.factors, running
    x, access = np.asarray(operands[f.operand]), tuple([i if d == axis else a for d, a in enumerate(f.access)])
    if not x.ndim:  # a constant array
        x, axis, access = np.broadcast_to(x, (t.sizes[j],)), 0, (i,)
    if x.shape[axis] != t.sizes[j]:
        return t, operands
    total = ring.add.accumulate(_turned(x.astype(ring.dtype), axis, reverse), axis)
    sizes = {v: n for v, n in enumerate(t.sizes) if v != j}
    alone = term(t.out, sizes, [Read(len(operands), access)], (), t.coefficient)
    return alone, [*operands, _turned(total, axis, reverse)]


def _turned(x: Any, axis: int, reverse: bool) -> Any:
    return np.flip(x, axis) if reverse else x


def _as_used(x: Grid, use: Use, ring: Semiring) -> Grid:
    if not ring.is_numeric:
        return x
    x = (np.conj(x) if use is Use.CONJUGATED else x).astype(ring.dtype)
    with np.errstate(all="ignore"):
        return np.reciprocal(x) if use is Use.DIVIDED else x


# ---- arrays over variables -----------------------------------------------------------------------------------


class Grids:
    """Indices, masks and reads as grids over the variables of a term; variables that lookups determine have size 1."""

    def __init__(self, sizes: Sequence[int], operands: Sequence[Any]) -> None:
        self.sizes: Final = list(sizes)
        self._operands = operands
        self._given: dict[Variable, Grid] = {}
        self._met: set[Variable] = set()  # variables that determined values depend on: these stay axes

    def mask(self, bracket: Bracket) -> Grid | None:
        """Evaluate a bracket to a boolean grid. Lookups come before other brackets: they determine variables."""
        if not isinstance(bracket, Lookup):
            index = self.grid(bracket.index)
            return index == 0 if isinstance(bracket, IsZero) else index >= 0
        found = self._looked_up(bracket)
        self._met |= variables_in(bracket.access)
        v = next((v for v, c in bracket.index.variables if abs(c) == 1 and self._is_free(v)), None)
        if v is None:
            self._met.update(variables_of(bracket.index))
            return self.grid(bracket.index) == found
        return self._give(v, bracket.index, found)

    def _looked_up(self, b: Lookup) -> Grid:
        found = self.read(np.asarray(self._operands[b.operand]), b.access)
        if found.dtype == np.uint64:  # numbers that int64 does not hold are outside of every axis
            found = np.minimum(found, np.uint64(np.iinfo(np.int64).max))
        found = found.astype(np.int64)
        return found if b.limits is None else np.clip(found, *b.limits)

    def _is_free(self, v: Variable) -> bool:
        return v not in self._met and v not in self._given

    def _give(self, v: Variable, index: Affine, found: Grid) -> Grid:
        """Solve `index` = `found` for v, with coefficient ±1: record its values, and return where they are in range."""
        rest = index.without(v)
        self._met.update(variables_of(rest))
        value = (found - self.grid(rest)) * index.coefficient(v)
        inside = (value >= 0) & (value < self.sizes[v])
        self._given[v], self.sizes[v] = np.clip(value, 0, self.sizes[v] - 1), 1
        return inside

    def grid(self, index: Affine) -> Grid:
        """Evaluate an index for all values of its variables."""
        total: Any = np.full((1,) * len(self.sizes), self._number(index), np.int64)
        for v, c in index.variables:
            total = total + c * (self._given[v] if v in self._given else self._axis(v))
        return total

    def _axis(self, v: Variable) -> Grid:
        shape = [1] * len(self.sizes)
        shape[v] = self.sizes[v]
        return np.arange(self.sizes[v]).reshape(shape)

    def _number(self, index: Affine) -> int:
        """Evaluate the constant and the symbols of an index."""
        symbols = [c * min(max(int(self._operands[s.operand]), s.low), s.high) for s, c in index.symbols]
        return index.constant + sum(symbols)

    def read(self, x: Any, access: Access) -> Grid:
        """Read an array at an access; elements outside of the array are arbitrary."""
        if not x.ndim or not x.size:
            return (x if x.size else np.zeros((), x.dtype)).reshape((1,) * len(self.sizes))
        x = np.ascontiguousarray(x)
        strides = self.strides(x.shape, access)
        return x.reshape(-1)[self.places(x.shape, access)] if strides is None else self.view(x, strides)

    def places(self, shape: Sequence[int], access: Access) -> Grid:
        """Compute the flat positions of an access in an array, clipped to its shape."""
        flat: Any = np.zeros((1,) * len(self.sizes), np.int64)
        for a, n in zip(access, shape):
            flat = flat * n + np.clip(self.grid(a), 0, n - 1)
        return flat

    def view(self, x: Any, strides: tuple[int, list[int]]) -> Grid:
        """View a contiguous array by (first element, step of each variable), as `strides` returns them."""
        start, steps = strides
        lengths = [n if step else 1 for n, step in zip(self.sizes, steps)]
        data, width = x.reshape(-1).view(np.uint8), x.dtype.itemsize
        return np.ndarray(lengths, x.dtype, data, start * width, [step * width for step in steps])

    def strides(self, shape: Sequence[int], access: Access) -> tuple[int, list[int]] | None:
        """Return the flat position of an access at 0, and the step of each variable.

        None if it leaves the array for some values, or reads a variable that a lookup determines.
        """
        start, steps, stride = 0, [0] * len(self.sizes), 1
        for a, n in zip(reversed(access), reversed(shape)):
            index = Affine(self._number(a), a.variables)
            low, high = index.bounds(self.sizes)
            if low < 0 or high >= n or not self._given.keys().isdisjoint(variables_of(a)):
                return None
            start += index.constant * stride
            for v, c in a.variables:
                steps[v] += c * stride
            stride *= n
        return start, steps

    def place(self, out: Any, access: Access) -> Grid | None:
        """View the elements of `out` that an access writes; None if it has no strides or may write an element twice."""
        strides = self.strides(out.shape, access)
        if strides is None:
            return None
        reach = 0
        for step, n in sorted([(abs(step), n) for step, n in zip(strides[1], self.sizes) if n > 1 and step]):
            if step <= reach:
                return None
            reach += step * (n - 1)
        return self.view(out, strides)


# ---- sums of products ----------------------------------------------------------------------------------------


def _summed(arrays: list[Grid], masks: list[Grid], sizes: Sequence[int], kept: Sequence[bool], ring: Semiring) -> Grid:
    """Sum the products of `arrays` where all masks hold, over the variables that are not kept."""
    axes = [v for v, n in enumerate(sizes) if n > 1 and not kept[v]]
    if axes and len(arrays) + len(masks) > 1 and _contracts(arrays, masks, ring):
        return _contracted([*arrays, *masks], sizes, axes, ring)
    with np.errstate(all="ignore"):
        product: Any = reduce(ring.multiply, arrays or [np.ones((1,) * len(sizes), ring.dtype)])
    if masks:
        product = np.where(reduce(np.logical_and, masks), product, ring.zero)
    lengths = [sizes[v] if v in axes else n for v, n in enumerate(product.shape)]
    total = ring.add.reduce(np.broadcast_to(product, lengths), axis=tuple(axes), keepdims=True)
    return total.astype(ring.dtype)


def _contracts(arrays: Sequence[Grid], masks: Sequence[Grid], ring: Semiring) -> bool:
    """Tell whether `einsum` applies: sums or `or`, dtypes that it knows, only finite elements if there are masks."""
    if ring.add not in (np.add, np.logical_or):
        return False
    kinds = {x.dtype.kind for x in arrays}
    return kinds <= {*"biufc"} and not (
        masks and any(x.dtype.kind in "fc" and not np.isfinite(x).all() for x in arrays)
    )


def _contracted(arrays: Sequence[Grid], sizes: Sequence[int], axes: Sequence[int], ring: Semiring) -> Grid:
    """Sum products by `einsum`; booleans are summed as numbers, and true where the sum is positive."""
    dtype = ring.dtype if ring.is_numeric else np.dtype(np.float64)
    labels = [[v for v, n in enumerate(x.shape) if n > 1] for x in arrays]
    read = {v for label in labels for v in label}
    given: list[Any] = []
    for x, label in zip(arrays, labels):
        given += [np.asarray(x, dtype).reshape([sizes[v] for v in label]), label]
    result = sorted(read - set(axes))
    total = np.einsum(*given, result, optimize=len(arrays) > 1)
    repeats = prod([sizes[v] for v in axes if v not in read])
    total = total.reshape([sizes[v] if v in result else 1 for v in range(len(sizes))]) * repeats
    return (total > 0 if ring.dtype == bool else total).astype(ring.dtype)
