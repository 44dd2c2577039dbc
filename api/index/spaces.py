"""Abstract operands of formulas: a name, a shape of sizes or ranges, a dtype, and symmetries that merge terms.

A range is periodic if indices are counted modulo its size, or symmetric about 0.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.formulas.symmetries import Symmetry, transposed_access
from tapeless.tracer.indices.index import Index, Variable
from tapeless.tracer.indices.sizes import are_bound, names_of
from tapeless.tracer.types import ShapedArray


@dataclass(frozen=True, slots=True)
class Range:
    """A range of an index, for shapes of `Space`s and bodies.

    An index of a periodic range reads an array modulo the size. An index of a symmetric range is from -m to m, and the
    size is 2 m + 1: alone, or negated, it reads an axis of that size from its middle; with a number added, it counts
    from 0. Formulas keep sums over a range with `eliminate=False`.
    """

    name: str
    size: int
    periodic: bool = False
    symmetric: bool = False
    eliminate: bool = True

    def __index__(self) -> int:
        return self.size

    def index(self, variable: Index) -> Index:
        """Make the index of this range from a variable, whose values are from 0 to the size - 1."""
        ((part, _),) = variable.parts.items()
        assert isinstance(part, Variable)
        period, middle = self.size if self.periodic else None, self.size // 2 if self.symmetric else None
        own = Variable(part.value, part.size, period, middle, part.name, not self.eliminate, self.name)
        return Index(-(middle or 0), {own: 1})


def place_in(r: Any, index: Index) -> Index:
    """Convert an index of a range, or of a number of values, to its position, which counts from 0."""
    if isinstance(r, Range) and r.periodic:
        return index % r.size
    return index + r.size // 2 if isinstance(r, Range) and r.symmetric else index


def range_of(name: str, n: int, *, periodic: bool = False, symmetric: bool = False, eliminate: bool = True) -> Range:
    """Make a named range of an index.

    Args:
      name: as errors call it.
      n: how many values an index has.
      periodic: from 0 to n - 1, and reading is modulo n: `x[k + 1]` and `x[k - 1]` are inside of x for every k.
      symmetric: from -m to m, n being 2 m + 1.
      eliminate: whether formulas may solve equations for the index, and write `w[a]` for `Σ[b] [a = b] w[b]`. If not,
        sums over indices that read an array, `w[b]`, stay, and so do their brackets; equations are solved for other
        indices. The computation is the same.
    Raises: TypeError if n is no integer; ValueError if n is negative, or even and the range symmetric, or it is both.

    >>> import tapeless as tl
    >>> from tapeless import index as ix
    >>> k = ix.range("k", 4, periodic=True)
    >>> x = tl.numpy.array([1, 2, 3, 4])
    >>> ix.build(k, lambda k: x[k + 1] - x[k])
    Array([ 1,  1,  1, -3], dtype=int32)
    """
    n = int(n.__index__())
    if n < 0 or (symmetric and n % 2 == 0):
        raise ValueError(
            f"index.range: {name} has {n} values; expected {'an odd number' if symmetric else 'at least 0'}."
        )
    if periodic and symmetric:
        raise ValueError(f"index.range: {name} is periodic or symmetric, not both.")
    return Range(name, n, periodic, symmetric, eliminate)


KINDS = {"id": (False, 1), "conj": (True, 1), "neg": (False, -1)}
Declared = str | Sequence[tuple[Sequence[int], str]]


class Space:
    """A named array type, for which formulas are derived without data.

    Args:
      name: as formulas call it.
      shape: of the arrays that it stands for; of numbers, of ranges (`index.range`), with axes read modulo their size
        if they are periodic, and of sizes that stand for any (`index.size`).
      dtype: of these; float in the default width if None.
      symmetries: pairs (permutation, kind) that say what the array is: its transpose for kind "id", the conjugate of
        that for "conj", its negative for "neg". "symmetric" is all transposes, "hermitian" that of a matrix, "conj".
      even: the axes along which, reversed together, the array stays as it is; True for all.
    Raises: TypeError if the name is not a Python identifier; ValueError for a symmetry that does not fit the shape, or
      if all of them together say that the array is 0.

    >>> Space("A", (2, 2), complex, symmetries=[((1, 0), "conj")])
    Space('A', complex64[2,2], hermitian)
    """

    __slots__ = ("_declared", "_dtype", "_even", "_shape", "name", "periods", "stays")

    def __init__(
        self,
        name: str,
        shape: Sequence[int | Range],
        dtype: Any = None,
        symmetries: Declared = (),
        even: bool | Sequence[int] = (),
    ) -> None:
        if not name.isidentifier():
            raise TypeError(f"Space: the name {name!r} is not a Python identifier.")
        self.name: str = name
        self._shape, self._dtype = tuple(shape), dtypes.canonical(float if dtype is None else dtype)
        aval = self._some_type
        self.periods: tuple[int, ...] = tuple(
            [d for d, n in enumerate(self._shape) if isinstance(n, Range) and n.periodic]
        )
        self.stays: tuple[int, ...] = tuple(
            [d for d, n in enumerate(self._shape) if isinstance(n, Range) and not n.eliminate]
        )
        axes = tuple(range(aval.ndim)) if even is True else tuple(even or ())
        self._declared, self._even = checked_symmetries(name, aval, symmetries), axes
        _even(name, aval, axes)

    @property
    def aval(self) -> ShapedArray:
        """The type. Raises: TypeError for sizes that have no values here."""
        return ShapedArray(tuple([operator.index(n) for n in self._shape]), self._dtype)

    @property
    def _some_type(self) -> ShapedArray:
        """The type, for some numbers in the place of sizes that have no values: equal ones for equal sizes."""
        if are_bound() or not self.sizes:
            return self.aval
        numbers = {n: k for k, n in enumerate(dict.fromkeys(self._shape), 2)}
        return ShapedArray(tuple([numbers[n] for n in self._shape]), self._dtype)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Return what the array is by its permutations and reflections, which depend on the sizes."""
        return (*self._declared, *_even(self.name, self._some_type, self._even))

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape, in which sizes stay symbols where they have no values."""
        return self.aval.shape if are_bound() else self._shape

    @property
    def declared_shape(self) -> tuple[Any, ...]:
        """The shape, in which sizes are always symbols."""
        return self._shape

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of the sizes of its shape that are symbols."""
        return tuple(dict.fromkeys(names_of(self._shape)))

    @property
    def dtype(self) -> Any:
        return self._dtype

    def __repr__(self) -> str:
        axes = ",".join(map(str, self._shape))
        said = ", ".join([f"{self._dtype}[{axes}]", *[described(s) for s in self.symmetries]])
        return f"Space({self.name!r}, {said})"


def checked_symmetries(name: str, aval: ShapedArray, declared: Declared) -> tuple[Symmetry, ...]:
    """Read the symmetries that are declared of an array. Raises: ValueError if there are no such."""
    found = tuple([_symmetry(name, aval, s) for s in _spelled_out(name, aval, declared)])
    if _is_zero(found, aval):
        raise ValueError(f"{name}: {', '.join(map(described, found))} together say that it is 0.")
    return found


def _even(name: str, aval: ShapedArray, axes: tuple[int, ...]) -> tuple[Symmetry, ...]:
    """Write down that an array is its own mirror image. Raises: ValueError if there is no such axis."""
    if not set(axes) <= set(range(aval.ndim)):
        raise ValueError(f"{name}: even={axes} are no axes of {aval}.")
    mirrored = tuple([(d, aval.shape[d]) for d in axes])
    return (Symmetry(tuple(range(aval.ndim)), mirrored=mirrored),) if axes else ()


def _spelled_out(name: str, aval: ShapedArray, declared: Declared) -> Sequence[tuple[Sequence[int], str]]:
    if not isinstance(declared, str):
        return declared
    if declared == "hermitian" and aval.ndim == 2:
        return [((1, 0), "conj")]
    if declared == "symmetric" and aval.ndim >= 2:
        n = aval.ndim
        swaps = [(*range(k), k + 1, k, *range(k + 2, n)) for k in range(n - 1)]  # of neighbours: they generate all
        return [(swap, "id") for swap in swaps]
    raise ValueError(f"{name}: symmetries={declared!r} is not known of {aval}; use pairs (permutation, kind).")


def _symmetry(name: str, aval: ShapedArray, given: tuple[Sequence[int], str]) -> Symmetry:
    permutation, kind = given
    p = tuple(permutation)
    if sorted(p) != list(range(aval.ndim)) or tuple([aval.shape[d] for d in p]) != aval.shape:
        raise ValueError(f"{name}: {p} is no permutation of axes that leaves the shape {aval.shape} as it is.")
    if kind not in KINDS:
        raise ValueError(f"{name}: the kind of the symmetry {p} is {kind!r}, none of {', '.join(map(repr, KINDS))}.")
    is_conjugated, sign = KINDS[kind]
    return Symmetry(p, is_conjugated and dtypes.is_complex(aval.dtype), sign)


def _is_zero(symmetries: Sequence[Symmetry], aval: ShapedArray) -> bool:
    """Tell whether an array is its own negative, as some product of symmetries has it."""
    start = Symmetry(tuple(range(aval.ndim)))
    found, todo = {start}, [start]
    while todo:
        s = todo.pop()
        for g in symmetries:
            product = tuple([s.permutation[d] for d in g.permutation])
            new = Symmetry(product, s.conjugated != g.conjugated, s.sign * g.sign)
            if new not in found:
                found.add(new)
                todo.append(new)
    return start._replace(sign=-1) in found


def described(s: Symmetry) -> str:
    """Name a symmetry."""
    if s.mirrored:
        return f"even along {', '.join([str(d) for d, _ in s.mirrored])}"
    if s.permutation == (1, 0):
        return {(False, 1): "symmetric", (True, 1): "hermitian", (False, -1): "antisymmetric"}[s.conjugated, s.sign]
    kind = next(kind for kind, given in KINDS.items() if given == (s.conjugated, s.sign))
    return f"{s.permutation} {kind}"


def symmetry_text(name: str, s: Symmetry) -> str:
    """Write a symmetry as an equation: `A[i,j] = conj(A[j,i])`."""
    letters = [f"{'ijklmnpq'[d % 8]}{d // 8 or ''}" for d in range(len(s.permutation))]
    access = list(transposed_access(letters, s.permutation))
    for d, n in s.mirrored:
        access[d] = f"{n - 1} - {access[d]}"
    other = f"{name}[{','.join(access)}]"
    return f"{name}[{','.join(letters)}] = {'-' if s.sign < 0 else ''}{f'conj({other})' if s.conjugated else other}"


def periodic_text(name: str, aval: ShapedArray, axis: int) -> str:
    """Write that an axis is read modulo its size as an equation: `U[i + 4,j] = U[i,j]`."""
    letters = [f"{'ijklmnpq'[d % 8]}{d // 8 or ''}" for d in range(aval.ndim)]
    shifted = [f"{x} + {aval.shape[axis]}" if d == axis else x for d, x in enumerate(letters)]
    return f"{name}[{','.join(shifted)}] = {name}[{','.join(letters)}]"


def check_symmetries(name: str, x: Any, symmetries: Sequence[Symmetry]) -> None:
    """Check that `x` has the symmetries, up to rounding. Raises: ValueError naming array and symmetry."""
    for s in symmetries:
        other = s.sign * np.transpose(x, s.permutation)
        other = np.conj(other) if s.conjugated else other
        other = np.flip(other, tuple([d for d, _ in s.mirrored])) if s.mirrored else other
        scale = np.max(np.abs(x), initial=0)
        tolerance = 64 * dtypes.finfo(x.dtype).eps * scale if dtypes.is_inexact(x.dtype) else 0
        gap = np.max(np.abs(x - other), initial=0)
        if not gap <= tolerance:
            raise ValueError(
                f"{name} does not have the declared symmetry, {symmetry_text(name, s)}: they differ by {gap:.3g}.\n"
                "  Give an array that has it, do not declare it, or leave the check out with check=False."
            )
