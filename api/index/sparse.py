"""Arrays and relations by the coordinates of their entries: in bodies they are read as dense ones are.

Search terms: COO format, sparse tensor, relation. A read is a sum over entries, with a bracket for each coordinate, so
that a sum over all indices is one over entries, forwards and backwards. Source: Bernstein et al. 2020, section 7.
"""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from tapeless.tracer import dtypes, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.folding import ensure_compile_time_eval
from tapeless.tracer.indices.index import Index, TermForm, in_array, of_value
from tapeless.tracer.numpy import asarray, lexsort, stack, where, zeros
from tapeless.tracer.numpy.promotion import promoted_dtypes
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.primitives.shape import static_shape
from tapeless.tracer.terms.affine import Affine, indices, variable, variables
from tapeless.tracer.terms.term import Lookup, NotNegative, Read, term

MOST_PRINTED = 8  # entries


def _limits(c: Any, n: int) -> tuple[int, int] | None:
    """Find the limits that coordinates along an axis of n are known to keep to; None if they are not known to."""
    found = None if isinstance(c, Tracer) else np.asarray(c)
    is_inside = found is not None and found.size and found.min() >= 0 and found.max() < n
    return (0, n - 1) if is_inside else None


def _integers(coords: Any) -> Any:
    """Take coordinates as they are given, in 32 bits if these hold known ones; none at all are integers, too."""
    if isinstance(coords, (list, tuple)) and not coords:
        return np.zeros(0, np.int32)
    known = None if isinstance(coords, Tracer) else np.asarray(coords)
    if known is None or known.dtype.kind not in "iu" or not known.size:
        return coords
    limits = np.iinfo(np.int32)
    return known.astype(np.int32) if known.min() >= limits.min and known.max() <= limits.max else coords


def _listed(coords: Any, expected: str) -> list[Any]:
    """List the arrays of coordinates. Raises: TypeError that begins with `expected` if there is one object."""
    if not isinstance(coords, Iterable):
        raise TypeError(f"{expected}, not {coords!r}.")
    return list(coords)


def _kept(c: Any) -> Array:
    """Make an array of coordinates; if they are known, one that is known in traces, too, and outlives them."""
    if isinstance(c, Tracer):
        return c
    with ensure_compile_time_eval():
        return asarray(c)


class _Pattern:
    """Coordinates as static data of a pytree: equal if their elements are, traced ones only if they are the same."""

    def __init__(self, coords: tuple[Array, ...]) -> None:
        self.coords = coords

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Pattern) or len(self.coords) != len(other.coords):
            return False
        return all(map(_are_equal, self.coords, other.coords))

    def __hash__(self) -> int:
        return hash(tuple([c.shape for c in self.coords]))

    def __repr__(self) -> str:
        return f"coordinates of {self.coords[0].shape[0]} entries"


def _are_equal(a: Array, b: Array) -> bool:
    if a is b or isinstance(a, Tracer) or isinstance(b, Tracer):
        return a is b
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


class Entries:
    """Coordinates of entries in an array of a shape: for each axis, an integer array of as many elements as entries."""

    has_distinct_entries: ClassVar[bool] = False

    def __init__(self, coords: Sequence[Any], shape: Sequence[int]) -> None:
        who = type(self).__name__
        if not static_shape(shape, who):
            raise ValueError(f"{who}: an array of the shape () has no axes that coordinates are along.")
        self.shape: tuple[int, ...] = tuple(shape)
        coords = _listed(coords, f"{who}: expected an array of coordinates for each axis of {self.shape}")
        self.coords: tuple[Array, ...] = tuple([_kept(_integers(c)) for c in coords])
        if len(self.coords) != len(self.shape):
            n, axes = len(self.coords), len(self.shape)
            pairs = " Coordinates of one entry after another are those of zip(*coords)." if n > axes else ""
            raise ValueError(f"{who}: {n} arrays of coordinates for {axes} axes, {self.shape}.{pairs}")
        for axis, c in enumerate(self.coords):
            if c.ndim != 1 or not np.issubdtype(c.dtype, np.integer):
                dense = " Those of a boolean array are numpy.nonzero(array)." if dtypes.is_bool(c.dtype) else ""
                raise ValueError(
                    f"{who}: coordinates along axis {axis} must be integers of one axis, not {c.aval}.{dense}"
                )
            if c.shape != self.coords[0].shape:
                first = self.coords[0].aval
                raise ValueError(f"{who}: coordinates along axis {axis} are {c.aval}, those along axis 0 {first}.")

        self.limits: tuple[tuple[int, int] | None, ...] = tuple(map(_limits, coords, self.shape))

    def _replace_coords(self, coords: tuple[Array, ...], limits: tuple[tuple[int, int] | None, ...]) -> None:
        self.coords, self.limits = coords, limits

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def check_no_batch(self) -> None:
        """Raise ValueError if leaves have axes that `vmap` or a loop put in front of that of the entries."""
        for x in pytree.leaves(self):
            if x.ndim != 1:
                who = type(self).__name__
                raise ValueError(
                    f"{who}: {x.aval} in the place of one axis, of the entries: it is a batch of {self.shape}, as vmap "
                    "and scan make. Read it in a function that vmap maps over it, or read the one at k: "
                    "tl.tree.map(lambda x: x[k], batch)."
                )

    def form(self, items: Any, *operands: Array) -> tuple[TermForm, Affine]:
        """Start a term over entries whose coordinates are the items of an index; return it and the entry's variable."""
        self.check_no_batch()
        items = items if isinstance(items, tuple) else (items,)
        if len(items) != self.ndim:
            one = ", ".join("ijklmnpq"[: self.ndim])
            raise IndexError(
                f"{len(items)} indices for {self.ndim} axes, of {self!r}: entries are read one by one, as [{one}]."
            )
        form = TermForm(*operands)
        entry = form.variable(self.coords[0].shape[0])
        for axis, (item, c, limits) in enumerate(zip(items, self.coords, self.limits, strict=True)):
            at = self._position(form, item, axis, limits is None)
            key = self.ndim if self.has_distinct_entries else 0
            form.brackets.append(Lookup(at, form.operand(c), (entry,), limits, limits is not None, key))
        return form, entry

    def _position(self, form: TermForm, item: Any, axis: int, may_be_outside: bool) -> Affine:
        """Write an item as where it reads an axis; outside of this there is no entry, whatever coordinates say."""
        n, item = self.shape[axis], of_value(item)
        if isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            if not 0 <= item < n:
                raise IndexError(f"index {item} is outside of axis {axis} of {self!r}.")
            return Affine(int(item))
        if not isinstance(item, Index):
            raise TypeError(f"axis {axis} of {self!r} is read by {item!r}: entries are read one by one, by integers.")
        index = in_array(item, n)
        if not index.is_affine:
            at = form.variable(n)
            form.brackets.append(Lookup(at, form.operand(index.position), ()))
            return at
        at, (low, high) = form.affine(index), index.bounds
        if may_be_outside and (low < 0 or high >= n):
            form.brackets += [NotNegative(at), NotNegative(n - 1 - at)]
        return at


@pytree.register_pytree_node_class
class SparseArray(Entries):
    """An array that is 0 except at given entries; entries of the same coordinates are added.

    coords: [entries] integers for each axis. values: [entries]. A node of pytrees, whose leaf is the values, so that
    derivatives in it are values on the same pattern. The coordinates are static there: a jitted function is compiled
    once for each pattern. To change them at each call, pass arrays, and make the SparseArray inside; a function that is
    given coordinates so cannot return it, only its values.
    """

    def __init__(self, coords: Sequence[Any], values: Any, shape: Sequence[int]) -> None:
        super().__init__(coords, shape)
        self.values: Array = asarray(values)
        if self.coords and self.values.shape != self.coords[0].shape:
            at = self.coords[0].aval
            raise ValueError(f"SparseArray: values {self.values.aval} for entries at coordinates {at}.")

    def __repr__(self) -> str:
        return f"SparseArray({self.values.aval}, shape={self.shape})"

    def __getitem__(self, items: Any) -> Array:
        form, entry = self.form(items, self.values)
        return ein(form.operands, [term((), form.sizes, [Read(0, (entry,))], form.brackets)], ())

    def __matmul__(self, other: Any) -> Array:
        """Multiply a matrix [m, n] by a dense vector [n] or matrix [n, k], in work proportional to the entries.

        Raises: TypeError if `other` is no dense array, ValueError if the shapes do not fit.
        """
        if isinstance(other, Entries):
            raise TypeError(f"matmul: {self!r} @ {other!r} multiplies two sparse arrays. Use todense() of one of them.")
        self.check_no_batch()
        x = asarray(other)
        if self.ndim != 2 or x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise ValueError(f"matmul: {self!r} @ {x.aval} needs [m, n] @ [n] or [m, n] @ [n, k].")
        return _product(self, x)

    def todense(self) -> Array:
        """Return the array with its zeros."""
        return _scattered(self, (self.values,), [Read(0, variables(self.values.shape))])

    def tree_flatten(self) -> tuple[tuple[Any], Any]:
        """Return the values, and what is known."""
        return (self.values,), (_Pattern(self.coords), self.shape, self.limits)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "SparseArray":
        """Put the values back."""
        made = object.__new__(cls)
        (made.values,), (pattern, made.shape, made.limits) = children, aux
        made.coords = pattern.coords
        return made

    @classmethod
    def from_scipy(cls, matrix: Any) -> "SparseArray":
        """Make one of a matrix of `scipy.sparse`, of any format."""
        coo = matrix.tocoo()
        return cls((coo.row, coo.col), coo.data, coo.shape)

    def to_scipy(self) -> Any:
        """Make a `scipy.sparse.coo_array`. Raises: ImportError without SciPy; ValueError unless it has two axes."""
        if self.ndim != 2:
            raise ValueError(
                f"to_scipy: {self!r} has {self.ndim} axes, and matrices of SciPy have 2.\n"
                "  A derivative has 2 if the function takes an array of one axis and returns one: reshape inside of it."
            )
        coords = [np.asarray(c) for c in self.coords]
        return importlib.import_module("scipy.sparse").coo_array((np.asarray(self.values), coords), self.shape)

    @classmethod
    def from_bcoo(cls, matrix: Any) -> "SparseArray":
        """Make one of an object that has `data` [entries], `indices` [entries, axes] and `shape`, as JAX's BCOO has."""
        indices = asarray(matrix.indices)
        return cls([indices[:, axis] for axis in range(indices.shape[1])], matrix.data, matrix.shape)

    def bcoo_indices(self) -> Array:
        """Return the coordinates as [entries, axes]."""
        return stack(self.coords, axis=1)


@pytree.register_pytree_node_class
class Relation(Entries):
    """A boolean array that is true at entries; each entry counts once.

    A node of pytrees, whose leaves are the coordinates: they may be arguments of jitted functions.
    """

    has_distinct_entries: ClassVar[bool] = True

    def __init__(self, coords: Sequence[Any], shape: Sequence[int]) -> None:
        super().__init__(coords, shape)
        if any(isinstance(c, Tracer) for c in self.coords):
            self._replace_coords(_once(self.coords), (None,) * self.ndim)
        else:
            distinct = np.unique(np.stack([np.asarray(c) for c in self.coords]), axis=1)
            self._replace_coords(tuple(map(_kept, distinct)), self.limits)

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Return the coordinates, and what is known of them."""
        return self.coords, (self.shape, self.limits)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "Relation":
        """Put coordinates back, of which as much is known."""
        made = object.__new__(cls)
        made.shape, limits = aux
        made._replace_coords(tuple(children), limits)
        return made

    def __repr__(self) -> str:
        n = self.coords[0].shape[0]
        if n > MOST_PRINTED or any(isinstance(x, Tracer) for x in self.coords):
            return f"Relation({n} entries, shape={self.shape})"
        entries = zip(*[np.asarray(x).tolist() for x in self.coords], strict=True)
        return f"Relation({{{', '.join(map(str, entries))}}}, shape={self.shape})"

    def __getitem__(self, items: Any) -> Array:
        form, _ = self.form(items)
        return ein(form.operands, [term((), form.sizes, [], form.brackets)], (), dtype=bool)

    def todense(self) -> Array:
        """Return it as a boolean array."""
        return _scattered(self, (), [])


def _once(coords: Sequence[Array]) -> tuple[Array, ...]:
    """Move all but the first of equal entries outside, to -1 along the first axis; the others come sorted."""
    wide = [c.astype(np.int64) if dtypes.kind(c.dtype) == "u" or c.dtype.itemsize > 4 else c.astype(np.int32)
            for c in coords]  # fmt: skip
    order = lexsort(wide)
    ordered = [c[order] for c in wide]
    is_again = zeros(order.shape, bool)
    if order.shape[0] > 1:
        same = [c[1:] == c[:-1] for c in ordered]
        is_again = is_again.at[1:].set(stack(same).all(0))
    first, *rest = ordered
    return where(is_again, -1, first), *rest


def _product(s: SparseArray, x: Array) -> Array:
    """Compute Σ[e, j] [i = row e] [j = column e] values[e] x[j, ..] for every i."""
    values, x = promoted_dtypes("matmul", s.values, x)
    (m, n), entry = s.shape, (variable(0),)
    i, j, rest = variable(1), variable(2), indices(range(3, 2 + x.ndim))
    brackets = [
        Lookup(v, axis, entry, limits, limits is not None)
        for axis, (v, limits) in enumerate(zip((i, j), s.limits, strict=True))
    ]
    sizes = (s.coords[0].shape[0], m, n, *x.shape[1:])
    product = term((i, *rest), sizes, [Read(2, entry), Read(3, (j, *rest))], brackets)
    return ein((*s.coords, values, x), [product], (m, *x.shape[1:]))


def _scattered(entries: Entries, operands: Sequence[Array], factors: Sequence[Read]) -> Array:
    """Write a product of factors, or true, to the coordinates of every entry, and add up."""
    entries.check_no_batch()
    written = indices(range(1, 1 + entries.ndim))
    entry = (variable(0),)
    brackets = [
        Lookup(v, len(operands) + axis, entry, limits, limits is not None)
        for axis, (v, limits) in enumerate(zip(written, entries.limits, strict=True))
    ]
    scattering = term(written, (entries.coords[0].shape[0], *entries.shape), factors, brackets)
    return ein((*operands, *entries.coords), [scattering], entries.shape, dtype=None if factors else bool)
