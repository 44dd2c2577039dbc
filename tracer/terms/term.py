"""Terms: `out[O(v)] += c · Π [brackets(v)] · Π factor[A(v)]` for all v in a box, interned in canonical form.

Search terms: tensor comprehension, polyhedral statement, Iverson bracket, canonical form up to renaming of bound
indices. Sources: MLIR's `linalg.generic`; Bernstein et al. 2020, section 5, for brackets. Here the result has an
access, too: a reshape, a pad and a scatter are terms as slices and gathers are.

A value is a sum of terms; what none of them writes is 0. Where a bracket fails nothing is read and nothing is written,
so that [false]·inf is 0, and accesses need to be inside of their arrays only where the brackets hold.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from itertools import islice, permutations, product
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.terms.affine import Access, Affine, Variable

if TYPE_CHECKING:
    from tapeless.tracer.terms import term_limits
else:
    term_limits = LateModule("tapeless.tracer.terms.term_limits")  # which few terms need

Coefficient = Any  # a Python number


class Use(IntEnum):
    """Role of a factor in a product: factor, conjugated factor or divisor."""

    PLAIN = 0
    CONJUGATED = 1
    DIVIDED = 2


class Read(NamedTuple):
    """Operand number `operand`, read at `access`."""

    operand: int
    access: Access
    use: Use = Use.PLAIN


@dataclass(frozen=True, slots=True)
class IsZero:
    """The bracket [index = 0]."""

    index: Affine


@dataclass(frozen=True, slots=True)
class NotNegative:
    """The bracket [index >= 0]."""

    index: Affine


@dataclass(frozen=True, slots=True)
class Lookup:
    """The bracket [index = t[access]], of an integer or boolean operand t; with limits, of clip(t[access], *limits).

    With an index that is a number it is a case of a choice, `[b[i] = 1]`; else t is an array of positions.
    `is_within`: all elements read of t are within the limits; somebody has checked this, so nothing need be clipped.
    `key`: for given indices, so many lookups of such arrays at one access hold at one place at most, which somebody has
    checked, too, as of the coordinates of distinct entries; 0 if that is not known.
    """

    index: Affine
    operand: int
    access: Access
    limits: tuple[int, int] | None = None
    is_within: bool = False
    key: int = 0


Bracket = IsZero | NotNegative | Lookup
_KINDS: dict[type[Any], int] = {IsZero: 0, NotNegative: 1, Lookup: 2}


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Term:
    """A product, for all values of variables 0 <= v < sizes[v], added to the result at `out`. Made by `term`."""

    out: Access
    sizes: tuple[int, ...]
    factors: tuple[Read, ...]
    brackets: tuple[Bracket, ...]
    coefficient: Coefficient

    def scaled(self, k: Coefficient) -> "Term":
        return _interned(self.out, self.sizes, self.factors, self.brackets, self.coefficient * k)

    @property
    def unit(self) -> "Term":
        """Return the term with coefficient 1."""
        return _interned(self.out, self.sizes, self.factors, self.brackets, 1)

    @property
    def indices(self) -> Access:
        """List every index, of the result, of factors and of brackets."""
        reads = [a for f in self.factors for a in f.access]
        return (*self.out, *reads, *[a for b in self.brackets for a in indices_of(b)])

    @property
    def reads(self) -> tuple[tuple[int, Access], ...]:
        """List the operands with their accesses: of factors, in order, then of lookups."""
        lookups = [(b.operand, b.access) for b in self.brackets if isinstance(b, Lookup)]
        return (*[(f.operand, f.access) for f in self.factors], *lookups)

    def changed(self, change: Callable[[Affine], Affine]) -> "tuple[Access, tuple[Read, ...], tuple[Bracket, ...]]":
        """Change every index; return where the result is written, the factors and the brackets."""
        return _changed(self.out, self.factors, self.brackets, change)

    def with_indices(
        self, change: Callable[[Affine], Affine], sizes: "Sequence[int] | Mapping[Variable, int] | None" = None
    ) -> "Term":
        """Change every index, over variables of these sizes; None for those of the term."""
        out, factors, brackets = self.changed(change)
        return term(out, self.sizes if sizes is None else sizes, factors, brackets, self.coefficient)

    def with_brackets(self, brackets: "Sequence[Bracket]") -> "Term":
        """Put these brackets in the place of all."""
        return term(self.out, self.sizes, self.factors, brackets, self.coefficient)

    def with_operands(self, number: Callable[[int], int]) -> "Term":
        """Renumber operand k as number(k)."""
        factors = [f._replace(operand=number(f.operand), access=_each(f.access, number)) for f in self.factors]
        brackets = [_with_operands(b, number) for b in self.brackets]
        return term(_each(self.out, number), self.sizes, factors, brackets, self.coefficient)


Sum = tuple[Term, ...]


def term(
    out: Sequence[Affine],
    sizes: Sequence[int] | Mapping[Variable, int],
    factors: Sequence[Read] = (),
    brackets: Sequence[Bracket] = (),
    coefficient: Coefficient = 1,
) -> Term:
    """Make a term in canonical form, which names of variables and the order of factors and brackets do not change.

    Variables are numbered in the order of their first use: in `out`, in factors by operand, in brackets. Where this
    leaves orders open, as among factors of one operand, it is the one with the least form, of at most `ORDERS`.
    """
    numbers = range(len(sizes)) if not isinstance(sizes, Mapping) else sorted(sizes)
    different = tuple(dict.fromkeys(map(_with_sign, brackets)))  # a copy must not decide names
    given = _Unordered(tuple(out), {v: sizes[v] for v in numbers}, tuple(factors), different)
    order = _only_order(given)
    if order is not None:
        form = _sorted(_with_names(given, order))
    else:
        form = min([_renamed(given, o) for o in islice(_orders(given), term_limits.ORDERS)], key=_form_key)
    return _interned(
        form.out, tuple([form.sizes[v] for v in sorted(form.sizes)]), form.factors, form.brackets, coefficient
    )


def conjugate(t: Term, real: frozenset[int]) -> Term:
    """Conjugate a term that divides by real operands only; those in `real` are their own conjugates."""
    swapped = {Use.PLAIN: Use.CONJUGATED, Use.CONJUGATED: Use.PLAIN, Use.DIVIDED: Use.DIVIDED}
    factors = [f if f.operand in real else f._replace(use=swapped[f.use]) for f in t.factors]
    return term(t.out, t.sizes, factors, t.brackets, t.coefficient.conjugate())


def variables_of(index: Affine) -> Iterator[Variable]:
    """List the variables of an index."""
    return (v for v, _ in index.variables)


def variables_in(indices: Iterable[Affine]) -> frozenset[Variable]:
    """Collect the variables of indices."""
    return frozenset([v for a in indices for v, _ in a.variables])


def indices_of(bracket: Bracket) -> Access:
    """List all indices in a bracket."""
    return (bracket.index, *bracket.access) if isinstance(bracket, Lookup) else (bracket.index,)


def with_indices(bracket: Bracket, change: Callable[[Affine], Affine]) -> Bracket:
    """Change every index of a bracket."""
    if isinstance(bracket, Lookup):
        access = tuple(map(change, bracket.access))
        return Lookup(change(bracket.index), bracket.operand, access, bracket.limits, bracket.is_within, bracket.key)
    return type(bracket)(change(bracket.index))


def _changed(
    out: Access, factors: Sequence[Read], brackets: Sequence[Bracket], change: Callable[[Affine], Affine]
) -> tuple[Access, tuple[Read, ...], tuple[Bracket, ...]]:
    reads = tuple([f._replace(access=tuple(map(change, f.access))) for f in factors])
    return tuple(map(change, out)), reads, tuple([with_indices(b, change) for b in brackets])


def is_case(bracket: Bracket) -> TypeGuard[Lookup]:
    """Tell whether a bracket is a case of a choice."""
    return isinstance(bracket, Lookup) and bracket.index.is_constant


@lru_cache(maxsize=4096)
def looked_up(t: Term) -> frozenset[int]:
    """Find the operands that are positions, cases or symbols."""
    symbols = {s.operand for a in t.indices for s, _ in a.symbols}
    return frozenset(symbols | {b.operand for b in t.brackets if isinstance(b, Lookup)})


def _each(access: Access, number: Callable[[int], int]) -> Access:
    return tuple([a.with_operands(number) for a in access])


def _with_operands(bracket: Bracket, number: Callable[[int], int]) -> Bracket:
    changed = with_indices(bracket, lambda a: a.with_operands(number))
    return replace(changed, operand=number(changed.operand)) if isinstance(changed, Lookup) else changed


# ---- interning -----------------------------------------------------------------------------------------------

_known: "weakref.WeakValueDictionary[Any, Term]" = weakref.WeakValueDictionary()


def _interned(
    out: Access, sizes: tuple[int, ...], factors: tuple[Read, ...], brackets: tuple[Bracket, ...], c: Coefficient
) -> Term:
    key = out, sizes, factors, brackets, c, type(c)
    found = _known.get(key)
    if found is None:
        _known[key] = found = Term(out, sizes, factors, brackets, c)
    return found


# ---- canonical form ------------------------------------------------------------------------------------------


class _Unordered(NamedTuple):
    out: Access
    sizes: Mapping[Variable, int]
    factors: tuple[Read, ...]
    brackets: tuple[Bracket, ...]


def _only_order(given: _Unordered) -> dict[Variable, int] | None:
    """Number variables by first use, if nothing leaves an order open; this is so for most terms."""
    names: dict[Variable, int] = {}
    keys = [(f.operand, f.use) for f in given.factors]
    if len(set(keys)) < len(keys):
        return None
    factors = given.factors if keys == sorted(keys) else sorted(given.factors, key=lambda f: (f.operand, f.use))
    for access in (given.out, *[f.access for f in factors]):
        for index in access:
            new = [v for v, _ in index.variables if v not in names]
            if len(new) > 1:
                new.sort(key=lambda v, index=index: -index.coefficient(v))
                if len({index.coefficient(v) for v in new}) < len(new):
                    return None
            for v in new:
                names[v] = len(names)
    return names if len(names) == len(given.sizes) else None


def _orders(given: _Unordered) -> Iterator[list[Variable]]:
    """List the orders of variables that their places leave open, one if these tell all of them apart."""
    marks = _marks(given)
    while (finer := _refined(given, marks)) != marks:
        marks = finer
    classes: dict[int, list[Variable]] = {}
    for v in sorted(given.sizes):
        classes.setdefault(marks[v], []).append(v)
    ordered = [classes[m] for m in sorted(classes)]
    for choice in product(*[permutations(c) for c in ordered]):
        yield [v for c in choice for v in c]


def _marks(given: _Unordered) -> dict[Variable, int]:
    """Rank each variable by where it occurs, the first places first."""
    places: dict[Variable, list[Any]] = {v: [] for v in given.sizes}
    for label, access in _items(given):
        for axis, index in enumerate(access):
            for v, c in index.variables:
                places[v].append((*label, axis, -c, index.constant))
    return _ranked({v: (_first(sorted(found)), given.sizes[v]) for v, found in places.items()})


def _first(found: list[Any]) -> Any:
    return found or [(3,)]  # what nothing reads comes last


def _items(given: _Unordered) -> Iterator[tuple[tuple[int, ...], Access]]:
    """List result, factors and brackets, with labels that do not depend on names and order."""
    yield (0, 0, 0), given.out
    for f in given.factors:
        yield (1, f.operand, f.use), f.access
    for b in given.brackets:
        indices = (_unsigned(b.index),) if isinstance(b, IsZero) else indices_of(b)
        yield (2, _KINDS[type(b)], b.operand if isinstance(b, Lookup) else 0), indices


def _refined(given: _Unordered, marks: dict[Variable, int]) -> dict[Variable, int]:
    """Refine marks: tell variables apart whose neighbours differ."""
    if len(set(marks.values())) == len(marks):
        return marks
    near: dict[Variable, list[Any]] = {v: [] for v in marks}
    for label, access in _items(given):
        inside = [(axis, marks[v], c) for axis, index in enumerate(access) for v, c in index.variables]
        for axis, index in enumerate(access):
            for v, c in index.variables:
                near[v].append((*label, axis, c, sorted(inside)))
    return _ranked({v: (marks[v], sorted(found)) for v, found in near.items()})


def _ranked(keys: dict[Variable, Any]) -> dict[Variable, int]:
    """Rank each variable's key; equal ones have equal ranks."""
    order: list[Any] = []
    ranks: dict[Variable, int] = {}
    for v in sorted(keys, key=keys.__getitem__):
        if not order or order[-1] != keys[v]:
            order.append(keys[v])
        ranks[v] = len(order) - 1
    return ranks


def _renamed(given: _Unordered, order: list[Variable]) -> _Unordered:
    """Rename: variables numbered in this order, then factors and brackets sorted, then numbered by first use."""
    sorted_form = _sorted(_with_names(given, {v: i for i, v in enumerate(order)}))
    used: dict[Variable, int] = {}
    for _, access in _items(sorted_form):
        for index in access:
            for v in variables_of(index):
                used.setdefault(v, len(used))
    for v in sorted(sorted_form.sizes):
        used.setdefault(v, len(used))
    return sorted_form if all(v == n for v, n in used.items()) else _sorted(_with_names(sorted_form, used))


def _with_names(given: _Unordered, names: Mapping[Variable, int]) -> _Unordered:
    if all(v == n for v, n in names.items()):
        return given
    renamed = _changed(given.out, given.factors, given.brackets, lambda index: index.renamed(names.__getitem__))
    out, factors, brackets = renamed
    return _Unordered(out, {names[v]: n for v, n in given.sizes.items()}, factors, brackets)


def _sorted(given: _Unordered) -> _Unordered:
    factors, brackets = given.factors, given.brackets
    if len(factors) > 1:
        factors = tuple(sorted(factors, key=_factor_key))
    if brackets:
        brackets = tuple(sorted(map(_with_sign, brackets), key=_bracket_key))
    return given._replace(factors=factors, brackets=brackets)


def _unsigned(a: Affine) -> Affine:
    return Affine(abs(a.constant), tuple([(v, abs(c)) for v, c in a.variables]), a.symbols)


def _with_sign(b: Bracket) -> Bracket:
    """[index = 0] as that one of [index = 0] and [-index = 0] whose first coefficient is positive."""
    if not isinstance(b, IsZero):
        return b
    first = next(iter((*b.index.variables, *b.index.symbols)), (None, 1))
    return IsZero(-b.index) if first[1] < 0 else b


def _factor_key(f: Read) -> Any:
    return f.operand, f.use, _access_key(f.access)


def _bracket_key(b: Bracket) -> Any:
    if isinstance(b, Lookup):
        return 2, b.operand, _access_key(b.access), (*(b.limits or ()), b.is_within, b.key), _affine_key(b.index)
    return _KINDS[type(b)], 0, _access_key((b.index,)), (), ()


def _access_key(access: Access) -> Any:
    return [_affine_key(a) for a in access]


def _affine_key(a: Affine) -> Any:
    return a.variables, a.constant, a.symbols


def key_of(t: Term) -> Any:
    """Return what terms are sorted by, coefficients aside."""
    return _form_key(_Unordered(t.out, dict(enumerate(t.sizes)), t.factors, t.brackets))


def _form_key(g: _Unordered) -> Any:
    sizes = [g.sizes[v] for v in sorted(g.sizes)]
    return _access_key(g.out), sizes, list(map(_factor_key, g.factors)), list(map(_bracket_key, g.brackets))
