"""Recognise values as piecewise affine functions of their indices, and masks that compare such values.

Search terms: iota, induction variable, scalar evolution, index set splitting. Iotas, their sums and multiples are such
values, also moved and joined, as long as their dtype holds every number exactly: others wrap around, or are rounded.
Selects, clamps and remainders, which indexing writes, have a piece for each case. A comparison is 1 where a bracket
holds, else 0. Left out: quotients.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.index_rows import Combination, IndexRow, index_row
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Literal, Var
from tapeless.tracer.primitives import bits
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.rules import Table
from tapeless.tracer.terms.affine import Access, Affine, variable
from tapeless.tracer.terms.solve import FALSE, explicit, solve_term
from tapeless.tracer.terms.term import Bracket, IsZero, NotNegative, term, with_indices
from tapeless.tracer.types import ShapedArray

Definition = Callable[[Atom], Equation | None]
comparisons: Table[Callable[[Affine, Affine], Bracket]] = Table(
    "index comparisons",
    "bracket(a, b): where it is true of two affine functions of indices",
    absent="it is not a comparison, or is not true where a conjunction of brackets holds",
)
comparisons[e.eq_p] = lambda a, b: IsZero(a - b)
comparisons[e.lt_p] = lambda a, b: NotNegative(b - a - 1)
comparisons[e.le_p] = lambda a, b: NotNegative(b - a)
comparisons[e.gt_p] = lambda a, b: NotNegative(a - b - 1)
comparisons[e.ge_p] = lambda a, b: NotNegative(a - b)


class Piece(NamedTuple):
    """An affine function of indices where brackets hold, variable d along axis d; the value is None if unknown."""

    value: Affine | None
    brackets: tuple[Bracket, ...] = ()

    def where(self, *brackets: Bracket) -> "Piece":
        """Restrict the piece to where these brackets hold, too."""
        return Piece(self.value, (*self.brackets, *brackets))


_TRUE, _FALSE = Affine(1), Affine(0)
Pieces = tuple[Piece, ...]  # disjoint; together they cover all indices
UNKNOWN: Pieces = (Piece(None),)


def brackets_where(x: Atom, definition: Definition) -> tuple[Bracket, ...] | None:
    """Return the brackets that all hold where a boolean value is true, variable d being axis d; None if unknown.

    Args:
      definition: returns the equation that computes a variable, None for inputs and literals.
    """
    found = affine_pieces(x, definition)
    true = [p.brackets for p in found if p.value != Affine()]
    if any(p.value is None for p in found) or len(true) > 1:
        return None
    return true[0] if true else (FALSE,)


def affine_pieces(x: Atom, definition: Definition) -> Pieces:
    """Return a value as affine functions of its indices, each where brackets hold; booleans are 1 and 0."""
    return Values(definition, {}).pieces(x)


class Values:
    """The pieces of the values of one program, each computed once and kept in `known`."""

    def __init__(self, definition: Definition, known: dict[Var, Pieces]) -> None:
        self._definition, self._known = definition, known
        self._depth = 0

    def pieces(self, x: Atom) -> Pieces:
        """Return the pieces of a value."""
        if type(x) is Literal:
            return _number(np.asarray(x.value))
        assert isinstance(x, Var)
        found = self._known.get(x)
        if found is None:
            self._depth += 1
            found = self._known[x] = self._found(x)
            self._depth -= 1
        return found

    def _found(self, x: Var) -> Pieces:
        eqn = self._definition(x)
        rule = _rule(eqn.primitive) if eqn is not None else None
        if eqn is None or rule is None or 0 in x.aval.shape:
            return UNKNOWN
        if limits.DEFINITIONS.is_passed(self._depth, eqn.source):
            return UNKNOWN
        found = tuple([p for piece in rule(self, eqn) if (p := _known(piece, x.aval)) is not None])
        is_known = any(p.value is not None for p in found)
        return found if is_known and not limits.PIECES.is_passed(len(found), eqn.source) else UNKNOWN


def _number(value: Any) -> Pieces:
    return (Piece(Affine(int(value))),) if not value.shape and _is_integral(value) else UNKNOWN


def _is_integral(value: Any) -> bool:
    if value.dtype.kind in "iub":
        return True
    return dtypes.is_inexact(value.dtype) and value.dtype.kind != "c" and float(value).is_integer()


# ---- pieces --------------------------------------------------------------------------------------------------


def _known(p: Piece, aval: ShapedArray) -> Piece | None:
    """Drop the implied brackets of a piece, and its value if the dtype does not hold it; None if it is empty."""
    brackets = tuple(dict.fromkeys([b for b in p.brackets if not _is_implied(b, aval.shape)]))
    found = Piece(p.value, brackets)
    ends = bounds(found, aval.shape)
    if ends is None:
        return None
    return found if p.value is None or _holds(aval.dtype, *ends) else Piece(None, brackets)


def _is_implied(b: Bracket, shape: tuple[int, ...]) -> bool:
    low, high = b.index.bounds(shape)
    return low >= 0 if isinstance(b, NotNegative) else low == high == 0


@lru_cache(maxsize=4096)
def bounds(p: Piece, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the least and the greatest number of a piece, 0 and 0 if it is unknown; None if it is empty."""
    if not p.brackets:
        return (p.value or Affine()).bounds(shape)
    t = solve_term(term((p.value or Affine(),), shape, (), p.brackets))
    return None if t is None else t.out[0].bounds(t.sizes)


def _holds(dtype: Any, low: int, high: int) -> bool:
    """Tell whether a dtype holds every integer from `low` to `high` exactly."""
    return low >= 0 and high <= 1 if dtypes.is_bool(dtype) else dtypes.holds_integers(dtype, low, high)


def _complement(brackets: tuple[Bracket, ...]) -> Iterator[tuple[Bracket, ...]]:
    """Yield disjoint conjunctions of brackets that cover the indices where not all of these brackets hold."""
    for k, b in enumerate(brackets):
        others = (NotNegative(b.index - 1), NotNegative(-b.index - 1))
        for other in others if isinstance(b, IsZero) else others[1:]:
            yield (*brackets[:k], other)


def _together(f: Callable[[Affine, Affine], Iterable[Piece]], of_x: Pieces, of_y: Pieces) -> Iterator[Piece]:
    """Apply a function of two affine values to each pair of pieces."""
    for p in of_x:
        for q in of_y:
            if p.value is None or q.value is None:
                yield Piece(None).where(*p.brackets, *q.brackets)
            else:
                yield from [found.where(*p.brackets, *q.brackets) for found in f(p.value, q.value)]


# ---- rules ---------------------------------------------------------------------------------------------------

_rules: Table[Callable[[Values, Equation], Iterable[Piece]]] = Table(
    "affine values",
    "rule(values, eqn) -> the result in pieces, disjoint, one of them everywhere",
    absent="it is an index comparison, or its result is not a known affine function of indices",
)
_rules[s.iota_p] = lambda values, eqn: [Piece(variable(eqn.params["dimension"]))]


def _pairwise(f: Callable[[Affine, Affine], Iterable[Piece]]) -> Callable[[Values, Equation], Iterable[Piece]]:
    def rule(values: Values, eqn: Equation) -> Iterator[Piece]:
        of_x = values.pieces(eqn.invars[0])  # if it is unknown, the other need not be known
        return _together(f, of_x, UNKNOWN if of_x is UNKNOWN else values.pieces(eqn.invars[1]))

    return rule


def _times(a: Affine, b: Affine) -> Iterator[Piece]:
    a, b = (b, a) if a.is_constant else (a, b)
    yield Piece(a * b.constant if b.is_constant else None)


def _greater(a: Affine, b: Affine) -> tuple[Piece, Piece]:
    return Piece(a, (NotNegative(a - b),)), Piece(b, (NotNegative(b - a - 1),))


def _less(a: Affine, b: Affine) -> tuple[Piece, Piece]:
    return Piece(a, (NotNegative(b - a),)), Piece(b, (NotNegative(a - b - 1),))


def _negative(values: Values, eqn: Equation) -> Iterator[Piece]:
    for value, brackets in values.pieces(eqn.invars[0]):
        yield Piece(None if value is None else -value, brackets)


def _clamp(values: Values, eqn: Equation) -> Iterator[Piece]:
    low, x, high = map(values.pieces, eqn.invars)
    return _together(_less, tuple(_together(_greater, x, low)), high)


def _rem(values: Values, eqn: Equation) -> Iterator[Piece]:
    """Yield the pieces of the remainder by a constant, which has the sign of the dividend."""
    x, y = eqn.invars
    divisors = values.pieces(y)
    n = divisors[0].value if len(divisors) == 1 else None
    for p in values.pieces(x):
        ends = bounds(p, x.aval.shape)
        if n is None or not n.is_constant or not n.constant or p.value is None or ends is None:
            yield Piece(None, p.brackets)
            continue
        found = list(_remainders(p.value, abs(n.constant), *ends))
        yield from [q.where(*p.brackets) for q in found] if found else [Piece(None, p.brackets)]


def _remainders(a: Affine, n: int, low: int, high: int) -> Iterator[Piece]:
    """Yield a piece of the remainder by `n` for each quotient; none if there are too many."""
    first, last = [abs(end) // n * (1 if end >= 0 else -1) for end in (low, high)]
    for q in range(first, last + 1) if last - first < limits.QUOTIENTS else ():
        least, most = q * n - (n - 1 if q <= 0 else 0), q * n + (n - 1 if q >= 0 else 0)
        yield Piece(a - q * n, (NotNegative(a - least), NotNegative(most - a)))


def _select_n(values: Values, eqn: Equation) -> Iterator[Piece]:
    which, *cases = eqn.invars
    for value, brackets in values.pieces(which):
        if value is None:
            yield Piece(None, brackets)
        for k, case in enumerate(cases if value is not None else ()):
            here = Piece(None, (*brackets, *_is_case(value or _FALSE, k, len(cases) - 1)))
            if _known(here, which.aval) is not None:  # the case is selected somewhere
                yield from [q.where(*here.brackets) for q in values.pieces(case)]


def _is_case(value: Affine, k: int, last: int) -> tuple[Bracket, ...]:
    """Return the brackets that hold where a value, clamped to the range from 0 to `last`, is k."""
    if 0 < k < last:
        return (IsZero(value - k),)
    low, high = () if k == 0 else (NotNegative(value - k),), () if k == last else (NotNegative(k - value),)
    return (*low, *high)


def _convert_element_type(values: Values, eqn: Equation) -> Pieces:
    """Return the pieces of the operand, as conversions keep numbers that the new dtype holds; unknown for booleans."""
    x = eqn.invars[0]
    to_bool = dtypes.is_bool(eqn.params["dtype"]) and not dtypes.is_bool(x.aval.dtype)
    return UNKNOWN if to_bool else values.pieces(x)


for _primitive, _of_pair in (
    (e.add_p, lambda a, b: [Piece(a + b)]),
    (e.sub_p, lambda a, b: [Piece(a - b)]),
    (e.mul_p, _times), (e.max_p, _greater), (e.min_p, _less),
):  # fmt: skip
    _rules[_primitive] = _pairwise(_of_pair)
_rules[e.neg_p], _rules[e.clamp_p], _rules[e.rem_p] = _negative, _clamp, _rem
_rules[e.select_n_p], _rules[e.convert_element_type_p] = _select_n, _convert_element_type

# ---- booleans ------------------------------------------------------------------------------------------------


def _comparison(bracket: Callable[[Affine, Affine], Bracket], true: Affine, false: Affine) -> Any:
    def pieces(a: Affine, b: Affine) -> Iterator[Piece]:
        holds = (bracket(a, b),)
        yield Piece(true, holds)
        yield from [Piece(false, brackets) for brackets in _complement(holds)]

    return _pairwise(pieces)


def _rule(primitive: Primitive) -> Callable[[Values, Equation], Iterable[Piece]] | None:
    """Return the rule of a primitive, that of a comparison by its bracket; None if it has none."""
    bracket = comparisons.get(primitive)
    return _rules.get(primitive) if bracket is None else _comparison(bracket, _TRUE, _FALSE)


_rules[e.ne_p] = _comparison(comparisons[e.eq_p], _FALSE, _TRUE)


def _deciding(value: Affine) -> Callable[[Values, Equation], Iterable[Piece]]:
    """Make the rule of `and` or `or`: `value` where the first operand has it, else the second operand."""

    def rule(values: Values, eqn: Equation) -> Iterator[Piece]:
        x, y = eqn.invars
        for p in values.pieces(x) if dtypes.is_bool(x.aval.dtype) else UNKNOWN:
            yield from [p] if p.value in (value, None) else [q.where(*p.brackets) for q in values.pieces(y)]

    return rule


def _not(values: Values, eqn: Equation) -> Iterator[Piece]:
    x = eqn.invars[0]
    for value, brackets in values.pieces(x) if dtypes.is_bool(x.aval.dtype) else UNKNOWN:
        yield Piece(None if value is None else _TRUE - value, brackets)


_rules[bits.and_p], _rules[bits.or_p], _rules[bits.not_p] = _deciding(_FALSE), _deciding(_TRUE), _not

# ---- moves and joins -----------------------------------------------------------------------------------------


def _moves(values: Values, eqn: Equation) -> Iterator[Piece]:
    """Yield the pieces of the operands as functions of the indices of the result, by the index row."""
    row = index_row(eqn)
    found = None if row is None else _reads(row, eqn.outvars[0].aval.shape)
    for operand, access, inside in () if found is None else found:
        yield from [at_access(p, access).where(*inside) for p in values.pieces(eqn.invars[operand])]
    if found is None:
        yield from UNKNOWN


_Read = tuple[int, Access, tuple[Bracket, ...]]  # operand, its access, and where it is read, over result indices


@lru_cache(maxsize=4096)
def _reads(row: IndexRow, shape: tuple[int, ...]) -> tuple[_Read, ...] | None:
    """List the reads for the elements of a result of this shape; None if the row does more than move elements."""
    if row.combination is not Combination.TERMS:
        return None
    found = list[_Read]()
    for t in [t for each in row.results[0] if (t := explicit(each, shape)) is not None]:
        if len(t.sizes) != len(shape):
            return None
        found.append((t.factors[0].operand, t.factors[0].access, t.brackets))
    return tuple(found)


def at_access(p: Piece, access: Access) -> Piece:
    """Compose a piece with an access: the piece that is read there, over the variables of the access."""
    brackets = [with_indices(b, lambda a: a.at(access)) for b in p.brackets]
    return Piece(None if p.value is None else p.value.at(access), tuple(brackets))


for _primitive in (s.broadcast_in_dim_p, s.reshape_p, s.transpose_p, s.rev_p, s.slice_p, s.concatenate_p, s.pad_p):
    _rules[_primitive] = _moves
