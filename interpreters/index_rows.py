"""Index rows: which elements of its operands each element of a result is made of, and how they are combined.

A primitive has a row(params, avals) in interpreters/rows/<family>.py, or a reason why it has none. All four ways to
combine have accesses, which suffice to read parts, to batch, and to find where an operand matters; only terms multiply
out. Source: the interfaces of MLIR's `linalg` operations; maps and reductions of array languages, as in Futhark.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from tapeless.tracer.core import Primitive
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Access, Affine, variables
from tapeless.tracer.terms.term import Bracket, Coefficient, Lookup, Read, Sum, Term, Use, term
from tapeless.tracer.types import ShapedArray

Params = Mapping[str, Any]
Shape = tuple[int, ...]


class Combination(Enum):
    """The way in which the reads of a row are combined into the result.

    TERMS: the result is the sum of its terms; of booleans, whether one of them holds.
    POINTWISE: an element is a function of what the factors of the only term read for it.
    MONOID: an element is what an operation makes of all that its terms, of one factor each, write to it. Where none
      does it is the neutral element.
    CORE: an element is any function of what its terms, of one factor each, read for it, and of where it is along axes
      that no operand is read along. The others are a batch.
    """

    TERMS = "terms"
    POINTWISE = "pointwise"
    MONOID = "monoid"
    CORE = "core"


class IndexRow(NamedTuple):
    """Terms for each result, whose operands are those of the equation, and how they are combined."""

    combination: Combination
    results: tuple[Sum, ...]
    operation: str | None = None  # of a monoid: the primitive that joins two elements, or `last` of those written


rows: Table[Callable[[Params, Sequence[ShapedArray]], IndexRow]] = Table(
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
    """The variables of a term while it is being written."""

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
    """Make the row of one result, made by an operation of all that is written to an element."""
    return IndexRow(Combination.MONOID, (tuple(found),), operation)


def pointwise(params: Params, avals: Sequence[ShapedArray], results: int = 1) -> IndexRow:
    """Make the row of a function of elements at the same place, and of scalars."""
    return IndexRow(Combination.POINTWISE, ((elements(avals, range(len(avals))),),) * results)


def core(operands: Sequence[tuple[Shape, Mapping[int, int]]], *results: Shape) -> IndexRow:
    """Make the row of a function of whole axes.

    Args:
      operands: shapes, and which axes of operands go with which axes of each result; the others are read whole.
      results: shapes.
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


def core_of_matrices(primitive: Primitive) -> Callable[[Params, Sequence[ShapedArray]], IndexRow]:
    """Make the row of a function of matrices, the last two axes, for each index of the axes before."""

    def row(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
        results = primitive.type(tuple(avals), dict(params))
        return core([(x.shape, {d: d for d in range(x.ndim - 2)}) for x in avals], *[y.shape for y in results])

    return row


# ---- terms that many families have ---------------------------------------------------------------------------


def elements(
    avals: Sequence[ShapedArray],
    at: Sequence[int],
    brackets: Callable[[Access], Sequence[Bracket]] = lambda i: (),
    uses: Sequence[Use] = (),
    coefficient: Coefficient = 1,
) -> Term:
    """Make the product of elements of some operands at the same place; scalars are repeated."""
    box = Box()
    i = box.axes(joint_shape(avals))
    used = uses or [Use.PLAIN] * len(at)
    reads = [Read(k, i if avals[k].shape else (), use) for k, use in zip(at, used, strict=True)]
    return box.term(i, *reads, brackets=brackets(i), coefficient=coefficient)


def joint_shape(avals: Sequence[ShapedArray]) -> Shape:
    """Find the shape of what is elementwise in operands of one shape and scalars."""
    return max([x.shape for x in avals], key=len)


def same(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of what hands each operand on as a result."""
    return terms(*[(elements([x], [0]).with_operands(lambda _, k=k: k),) for k, x in enumerate(avals)])


def without_row(reason: str, *primitives: Primitive) -> None:
    """State why primitives have no row."""
    for primitive in primitives:
        reasons[primitive] = reason


# ---- questions about rows ---------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def is_elementwise(terms: Sum) -> bool:
    """Tell whether each element is made of those at its place, and of scalars."""
    return bool(terms) and all(_is_at_one_place(t) for t in terms)


def _is_at_one_place(t: Term) -> bool:
    lookups = [b for b in t.brackets if isinstance(b, Lookup) and b.index.is_constant]
    reads = [*[f.access for f in t.factors], *[b.access for b in lookups]]
    known = len(lookups) == len(t.brackets) and t.out == variables(t.sizes)
    return known and all(access in (t.out, ()) for access in reads)
