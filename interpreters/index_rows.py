"""Index rows: which elements of the operands each element of a result depends on, and how they are combined.

A primitive has a row(params, avals) in interpreters/rules/<family>.py, or a reason why it has none. The rows of all
four combinations have accesses, which suffice to compute parts, to batch, and to find where an operand is read; only
TERMS can be composed and multiplied out.
Source: the interfaces of MLIR's `linalg` operations; maps and reductions of array languages, as in Futhark.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Access, Affine, variables
from tapeless.tracer.terms.term import Bracket, Coefficient, IsZero, Lookup, NotNegative, Read, Sum, Term, Use, term
from tapeless.tracer.types import ShapedArray

Params = Mapping[str, Any]
Shape = tuple[int, ...]
Avals = Sequence[ShapedArray]


class Combination(Enum):
    """The way in which the reads of a row are combined into the result.

    TERMS: the result is the sum of its terms; for booleans, the disjunction.
    POINTWISE: an element is a function of the elements that the factors of the only term read for it.
    MONOID: an element is the reduction, by an operation, of all that the terms, of one factor each, write to it; the
      neutral element if they write nothing.
    CORE: an element is any function of the elements read for it by the terms, of one factor each, and of its index
      along the axes that no operand is read along. The other axes are a batch.
    """

    TERMS = "terms"
    POINTWISE = "pointwise"
    MONOID = "monoid"
    CORE = "core"


class IndexRow(NamedTuple):
    """The terms of each result, over the operands of the equation, and how they are combined."""

    combination: Combination
    results: tuple[Sum, ...]
    operation: str | None = None  # of a monoid: the primitive that combines two elements, or `last` for the last write


rows: Table[Callable[[Params, Avals], IndexRow]] = Table(
    "index row",
    "row(params, avals of the operands) -> which elements each element of a result is made of, and how they combine",
    absent="it has a reason, or is a user's: its operands are read whole",
)
reasons: Table[str] = Table(
    "no index row",
    "why it has no index row",
    absent="it has an index row",
)


class Box:
    """The variables of a term that is being built, by their sizes."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def axes(self, shape: Iterable[int]) -> tuple[Affine, ...]:
        """Make a new variable for each size."""
        new, start = tuple(shape), len(self.sizes)
        self.sizes += new
        return variables(new, start)

    def axis(self, size: int) -> Affine:
        """Make a new variable."""
        return self.axes((size,))[0]

    def term(
        self,
        out: Sequence[Affine],
        *reads: Read,
        brackets: Sequence[Bracket] = (),
        coefficient: Coefficient = 1,
    ) -> Term:
        """Make the term with these reads, for all values of the variables."""
        return term(out, self.sizes, reads, brackets, coefficient)


# ---- the four ways -------------------------------------------------------------------------------------------


def terms(*sums: Iterable[Term]) -> IndexRow:
    """Make the row of a sum of terms for each result."""
    return IndexRow(Combination.TERMS, tuple(map(tuple, sums)))


def monoid(operation: str, *found: Term) -> IndexRow:
    """Make the row of one result, the reduction by an operation of all that the terms write to an element."""
    return IndexRow(Combination.MONOID, (tuple(found),), operation)


def pointwise(params: Params, avals: Avals, results: int = 1) -> IndexRow:
    """Make the row of an elementwise function of arrays of one shape and scalars."""
    return IndexRow(Combination.POINTWISE, ((elements(avals, range(len(avals))),),) * results)


def core(operands: Sequence[tuple[Shape, Mapping[int, int]]], *results: Shape) -> IndexRow:
    """Make the row of a function that reads whole axes of its operands, except for batch axes.

    Args:
      operands: the shape of each, and its batch axes as a map to the axes of the results.
      results: the shape of each.
    """
    return IndexRow(Combination.CORE, tuple([_core(operands, shape) for shape in results]))


def _core(operands: Sequence[tuple[Shape, Mapping[int, int]]], shape: Shape) -> Sum:
    found: list[Term] = []
    for k, (given, along) in enumerate(operands):
        box = Box()
        out = box.axes(shape)
        access = [out[along[d]] if d in along else box.axis(n) for d, n in enumerate(given)]
        found.append(box.term(out, Read(k, tuple(access))))
    return tuple(found)


def core_of_matrices(primitive: Primitive) -> Callable[[Params, Avals], IndexRow]:
    """Make the row function of a primitive on matrices, in the last two axes, that is batched over the axes before."""

    def row(params: Params, avals: Avals) -> IndexRow:
        results = primitive.type(tuple(avals), dict(params))
        return core([(x.shape, {d: d for d in range(x.ndim - 2)}) for x in avals], *[y.shape for y in results])

    return row


# ---- terms that many families share --------------------------------------------------------------------------


def elements(
    avals: Avals,
    at: Sequence[int],
    brackets: Callable[[Access], Sequence[Bracket]] = lambda i: (),
    uses: Sequence[Use] = (),
    coefficient: Coefficient = 1,
) -> Term:
    """Make the term of an elementwise product of the operands `at`; scalars are broadcast."""
    box = Box()
    i = box.axes(joint_shape(avals))
    used = uses or [Use.PLAIN] * len(at)
    reads = [Read(k, i if avals[k].shape else (), use) for k, use in zip(at, used, strict=True)]
    return box.term(i, *reads, brackets=brackets(i), coefficient=coefficient)


def joint_shape(avals: Avals) -> Shape:
    """Return the shape of an elementwise result of operands of one shape and scalars."""
    return max([x.shape for x in avals], key=len)


def same(params: Params, avals: Avals) -> IndexRow:
    """Make the row of an identity, whose results are its operands."""
    return terms(*[(elements([x], [0]).with_operands(lambda _, k=k: k),) for k, x in enumerate(avals)])


def window_index(box: Box, place: Affine, n: int, base: int) -> tuple[Affine, list[Bracket]]:
    """Return the index of the element at a place of an axis, and the brackets that hold if there is one.

    The axis has `n` elements, `base` apart.
    """
    if base == 1:
        return place, [NotNegative(place), NotNegative(n - 1 - place)]
    element = box.axis(n)
    return element, [IsZero(place - base * element)]


def without_row(reason: str, *primitives: Primitive) -> None:
    """Record the reason why primitives have no row."""
    for primitive in primitives:
        reasons[primitive] = reason


# ---- rows of equations ---------------------------------------------------------------------------------------


def index_row(eqn: Equation) -> IndexRow | None:
    """Look up the index row of an equation; None if its primitive has none. Rows are remembered, as types are."""
    if eqn.primitive not in rows:
        return None
    return _remembered(eqn.primitive, tuple(eqn.params.items()), tuple([v.aval for v in eqn.invars]))


@lru_cache(maxsize=4096)
def _remembered(primitive: Primitive, params: Any, avals: tuple[ShapedArray, ...]) -> IndexRow:
    return rows[primitive](dict(params), avals)


# ---- predicates of rows -----------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def is_elementwise(terms: Sum) -> bool:
    """Tell whether each element depends only on operand elements at its own index, and on scalars."""
    return bool(terms) and all(_is_at_one_place(t) for t in terms)


def _is_at_one_place(t: Term) -> bool:
    lookups = [b for b in t.brackets if isinstance(b, Lookup) and b.index.is_constant]
    reads = [*[f.access for f in t.factors], *[b.access for b in lookups]]
    known = len(lookups) == len(t.brackets) and t.out == variables(t.sizes)
    return known and all(access in (t.out, ()) for access in reads)
