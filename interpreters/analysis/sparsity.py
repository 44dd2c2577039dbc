"""Sparsity analysis: supersets of the nonzero positions of values, through padding, masks, one-hots and writes.

One forward pass finds, for each value, a superset of the positions where it may be nonzero (its support); for values
computed from constants alone, such as masks and indices, the elements. Index rows are evaluated over booleans and over
counts; sparsity_rules.py has the zeros of elementwise functions, which rows do not say. Knowingly simple: an array of
more than `SPARSE_ELEMENTS` elements is zero everywhere or may be nonzero everywhere, and so is one that is read or
written at unknown positions.
Source: Bernstein et al. 2020, section 5, the brackets.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.interpreters import jvp, limits
from tapeless.interpreters.analysis.sparsity_rules import FunctionFacts, Support, functions
from tapeless.interpreters.index_rows import Combination, index_row
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives.control_flow import element_type
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.indexing import gather_p
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.evaluate import BOOLEANS, COUNTS, Semiring, evaluate_sum, numbers, products_of
from tapeless.tracer.terms.term import Lookup, Sum, Term, Use, is_case, looked_up, term, variables_in, variables_of
from tapeless.tracer.types import ShapedArray, aval_of

_NOT_COVERING: Final = (ein_p, gather_p)  # primitives whose terms may write less than the whole result
_elements: ContextVar[int] = ContextVar("elements told apart", default=limits.SPARSE_ELEMENTS)


def elements_told_apart() -> int:
    """Return of how many elements an array may be at most for its zeros to be told apart."""
    return _elements.get()


@contextmanager
def telling_apart(elements: int) -> Generator[None, None, None]:
    """Tell the zeros of arrays of up to so many elements apart."""
    token = _elements.set(elements)
    try:
        yield
    finally:
        _elements.reset(token)


class SparsityFact(NamedTuple):
    """Abstract value of the sparsity analysis: a superset of the nonzero positions, and the elements if they are known.

    static: it depends on no input. binary: positions where it is known to be zero or one, so a bracket and no factor.
    """

    aval: ShapedArray
    support: Support = True
    value: Any = None
    static: bool = False
    binary: Support = False

    @property
    def hits(self) -> int:
        """Count the scalars that may be nonzero."""
        return hits(self.support, self.aval.shape)

    @property
    def mask(self) -> Any:
        """Return the support as a boolean array of the value's shape."""
        return broadcast_mask(self.support, self.aval)


def broadcast_mask(mask: Support, aval: ShapedArray) -> Any:
    """Broadcast a mask to a boolean array of the value's shape."""
    return np.broadcast_to(np.asarray(mask), aval.shape)


def hits(support: Support, shape: tuple[int, ...]) -> int:
    """Count the positions of a support in an array."""
    if isinstance(support, bool):
        return prod(shape) * support
    return int(np.count_nonzero(np.broadcast_to(support, shape)))


def abstract_constant(x: Any, static: bool = False) -> SparsityFact:
    """Make the abstract value of a constant: its elements, if it has at most `SPARSE_ELEMENTS`."""
    aval = aval_of(x)
    value = known_elements(x) if aval.size <= elements_told_apart() and _is_number(aval) else None
    return SparsityFact(aval) if value is None else _of_value(aval, value, static)


def _is_number(aval: ShapedArray) -> bool:
    return any(of(aval.dtype) for of in (dtypes.is_bool, dtypes.is_integer, dtypes.is_inexact))


def results(eqn: Equation, given: Sequence[SparsityFact]) -> list[SparsityFact]:
    """Compute the abstract values of the results of an equation without bodies."""
    static = all(k.static for k in given) and eqn.primitive.effect is None
    avals = [v.aval for v in eqn.outvars]
    values = _values(eqn, given) if all(k.value is not None for k in given) and _is_small(eqn) else None
    if values is not None:
        return [_of_value(aval, _converted(x, aval), static) for aval, x in zip(avals, values, strict=True)]
    found = zip(avals, _facts(eqn, given), strict=True)
    return [SparsityFact(aval, s, None, static, dtypes.is_bool(aval.dtype) or _or_zero(b, s)) for aval, (s, b) in found]


def join(a: SparsityFact, b: SparsityFact) -> SparsityFact:
    """Join two abstract values: the facts that hold for both."""
    same = a.value is not None and b.value is not None and np.array_equal(a.value, b.value)
    support, value = _simple(a.support | b.support), a.value if same else None
    return SparsityFact(a.aval, support, value, a.static and b.static, _simple(a.binary & b.binary))


def _of_value(aval: ShapedArray, value: Any, static: bool) -> SparsityFact:
    binary = np.asarray((value == 0) | (value == 1))
    return SparsityFact(aval, _simple(np.asarray(value != 0)), value, static, _simple(binary))


def _or_zero(binary: Support, support: Support) -> Support:
    if isinstance(support, bool):
        return binary if support else True
    return True if binary is True else _simple(np.logical_or(binary, ~support))


def _converted(x: Any, aval: ShapedArray) -> Any:
    x = np.asarray(x)
    return (x if dtypes.is_complex(aval.dtype) else x.real).astype(aval.dtype)


def _simple(support: Support) -> Support:
    """Simplify a mask that is true everywhere, or nowhere, to True or False."""
    if isinstance(support, bool):
        return support
    n = np.count_nonzero(support)
    return bool(n) if n in (0, np.size(support)) else support


def _is_small(eqn: Equation) -> bool:
    return all(v.aval.size <= elements_told_apart() for v in (*eqn.invars, *eqn.outvars))


def _coarse(k: SparsityFact) -> SparsityFact:
    return k._replace(support=k.support is not False, value=None, binary=k.binary is True)


def fact_key(k: SparsityFact) -> Any:
    """Return what is compared to tell whether an abstract value has changed."""
    value = None if k.value is None else np.asarray(k.value).tobytes()
    return _bits(k.support), value, k.static, _bits(k.binary)


def _bits(mask: Support) -> Any:
    return mask if isinstance(mask, bool) else (np.shape(mask), np.packbits(mask).tobytes())


# ---- elements of sequences -----------------------------------------------------------------------------------


def element_fact(x: SparsityFact, k: int) -> SparsityFact:
    """Return the abstract value of element k along the first axis."""
    support, binary = [
        mask if isinstance(mask, bool) else broadcast_mask(mask, x.aval)[k] for mask in (x.support, x.binary)
    ]
    return SparsityFact(element_type(x.aval), support, None if x.value is None else x.value[k], x.static, binary)


def joined_elements(x: SparsityFact) -> SparsityFact:
    """Join the abstract values of all elements along the first axis."""
    support = x.support if isinstance(x.support, bool) else x.mask.any(0)
    binary = x.binary if isinstance(x.binary, bool) else broadcast_mask(x.binary, x.aval).all(0)
    return SparsityFact(element_type(x.aval), support, None, x.static, binary)


def stacked_facts(aval: ShapedArray, elements: Sequence[SparsityFact]) -> SparsityFact:
    """Stack abstract values along a new first axis."""
    static, binary = all(k.static for k in elements), all(k.binary is True for k in elements)
    supports, are_small = [k.support for k in elements], aval.size <= elements_told_apart()
    if are_small and elements and all(k.value is not None for k in elements):
        return _of_value(aval, np.stack([k.value for k in elements]), static)
    if (all(isinstance(s, bool) for s in supports) and len(set(supports)) <= 1) or not are_small:
        return SparsityFact(aval, any(s is not False for s in supports), None, static, binary)
    return SparsityFact(aval, np.stack([k.mask for k in elements]), None, static, binary)


# ---- elements ------------------------------------------------------------------------------------------------


def _values(eqn: Equation, given: Sequence[SparsityFact]) -> Sequence[Any] | None:
    """Compute the elements of results from those of operands; None if they might depend on the order of operations."""
    operands = [k.value for k in given]
    with np.errstate(all="ignore"):
        function = functions.get(eqn.primitive)
        if function is not None and function.value is not None:
            return function.value(eqn, *operands)
        row = index_row(eqn)
        if row is None or row.combination is not Combination.TERMS:
            return None
        outs = [v.aval for v in eqn.outvars]
        if not all(_is_exact(s, y) for s, y in zip(row.results, outs)):
            return None
        return [evaluate_sum(s, y.shape, operands, numbers(y.dtype)) for s, y in zip(row.results, outs)]


def _is_exact(terms: Sum, out: ShapedArray) -> bool:
    """Tell whether evaluating terms is exact: integers, or no term sums over a variable, or divides."""
    return not dtypes.is_inexact(out.dtype) or all(
        not _is_sum(t) and all(f.use is not Use.DIVIDED for f in t.factors) for t in terms
    )


# ---- where results may be nonzero ----------------------------------------------------------------------------


def _facts(eqn: Equation, given: Sequence[SparsityFact]) -> Sequence[tuple[Support, Support]]:
    """Find where each result may be nonzero, and where it is zero or one."""
    is_dense = given and all(k.support is True and k.binary is False and k.aval.size for k in given)
    if is_dense and eqn.primitive not in _NOT_COVERING:
        return [(True, False)] * len(eqn.outvars)
    row = index_row(eqn)
    if row is None:
        return [(True, False)] * len(eqn.outvars)
    if row.combination is Combination.POINTWISE:
        given = given if _is_small(eqn) else [_coarse(k) for k in given]
        function = functions.get(eqn.primitive, FunctionFacts())
        found = function.support(eqn.params, *[k.support for k in given])
        binary = function.binary(given[0].support, given[0].binary)
        return [(_simple(found), _simple(binary))] * len(eqn.outvars)
    sums = row.results if row.combination is not Combination.CORE else [_linear_part(eqn, s) for s in row.results]
    facts = [_Products(s, v.aval.shape, given) for s, v in zip(sums, eqn.outvars, strict=True)]
    if row.combination is Combination.MONOID:
        return [(facts[0].joined(row.operation), False)]
    if row.combination is Combination.CORE:
        return [(f.support() if f.terms else True, False) for f in facts]
    outs = [v.aval for v in eqn.outvars]
    return [(f.support(), dtypes.is_bool(y.dtype) or f.binary()) for f, y in zip(facts, outs)]


def _linear_part(eqn: Equation, terms: Sum) -> Sum:
    """Keep the terms that read linear operands of a function: where all these are zero, the result is."""
    linear = jvp.structurally_linear.get(eqn.primitive)
    return tuple([t for t in terms if isinstance(linear, tuple) and t.factors and t.factors[0].operand in linear])


def meeting(eqn: Equation, given: Sequence[SparsityFact]) -> Any:
    """Count the products that may be nonzero in each element of a sum; None if they are not distinguished."""
    row = index_row(eqn)
    assert row is not None
    return products_that_meet(row.results[0], eqn.outvars[0].aval.shape, given)


def products_that_meet(terms: Sum, shape: Sequence[int], given: Sequence[SparsityFact]) -> Any:
    """Count the products of terms that may be nonzero in each element; None if they are not distinguished."""
    products = _Products(terms, shape, given)
    return products.counts() if products.are_told_apart else None


class _Products:
    """The products of a sum of terms, over operands with these abstract values.

    Products of large arrays, and at unknown positions, are not distinguished (`are_told_apart`); all cases of a select
    by an unknown index count.
    """

    def __init__(self, terms: Sum, shape: Sequence[int], given: Sequence[SparsityFact]) -> None:
        self._shape, self._given = tuple(shape), given
        there = [t for t in terms if 0 not in t.sizes]
        self.terms = tuple([_without_unknown_choice(t, given) if t.brackets else t for t in there])
        self._is_choice = any(t is not u for t, u in zip(self.terms, there)) and _are_cases(there)
        self._places = {k for t in self.terms for k in looked_up(t)}
        self._live = tuple([t for t in self.terms if all(k.support is not False for k in self._factors(t))])
        self.are_told_apart = (
            max([prod(self._shape), *[k.aval.size for k in given]]) <= elements_told_apart()
            and all(given[k].value is not None for k in self._places)
            and all(products_of(t) <= limits.SPARSE_PRODUCTS for t in self.terms)
        )

    def support(self) -> Support:
        """Find where a product may be nonzero."""
        everywhere = all(k.support is True for t in self.terms for k in self._factors(t))
        everywhere = everywhere and any(_covers(t, self._shape) for t in self._live)
        if not self._live or everywhere or not self.are_told_apart:
            return bool(self._live)
        return _simple(self._evaluated(self._live, BOOLEANS))

    def counts(self) -> Any:
        """Count the products that may be nonzero in each element."""
        if self._is_choice:
            return np.max([self._evaluated((t,), COUNTS) for t in self._live], axis=0)
        return self._evaluated(self._live, COUNTS)

    def binary(self) -> Support:
        """Find where the sum is zero or one: at most one product is nonzero there, and it is one."""
        live = self._live
        if not live or not any(all(map(_has_ones, self._factors(t))) for t in live):
            return not live
        alone = (len(live) == 1 or self._is_choice) and not any(map(_is_sum, live))
        ones = all(_is_plain(t) and all(k.binary is True for k in self._factors(t)) for t in live)
        if not self.are_told_apart or (alone and ones):
            return alone and ones
        others = tuple([u for t in live for u in self._not_one(t)])
        beyond = [k.mask & ~broadcast_mask(k.binary, k.aval) for k in self._given]
        found = ~evaluate_sum(others, self._shape, [*self._masks, *beyond], BOOLEANS)
        return _simple(found if alone else found & (self.counts() <= 1))

    def joined(self, operation: str | None) -> Support:
        """Find where the reduction of the products by the operation of a monoid may be nonzero."""
        multiplies = operation in ("mul", "and")
        covers = bool(self.terms) and not self.terms[0].brackets
        if covers and operation != "logaddexp" and (not self._live or (multiplies and self.terms[0] not in self._live)):
            return False
        if operation == "logaddexp" or not self.are_told_apart or all(k.support is True for k in self._given):
            return True
        if multiplies:
            return _simple(~self._evaluated(self.terms, BOOLEANS, lambda k: ~_mask(k)))
        found = self._evaluated(self._live, BOOLEANS)
        if operation not in ("or", "xor"):  # whose neutral element is zero
            found |= ~self._evaluated(self.terms, BOOLEANS, lambda _: np.asarray(True))
        return _simple(found)

    def _factors(self, t: Term) -> list[SparsityFact]:
        return [self._given[f.operand] for f in t.factors if f.use is not Use.DIVIDED]

    def _not_one(self, t: Term) -> Iterator[Term]:
        """Yield terms covering the products that may be neither zero nor one.

        The mask of where operand k is neither has number k after all operands.
        """
        if not _is_plain(t):
            yield t
        for k, f in enumerate(t.factors):
            if self._given[f.operand].binary is not True:
                other = f._replace(operand=f.operand + len(self._given))
                yield term(t.out, t.sizes, [*t.factors[:k], other, *t.factors[k + 1 :]], t.brackets)

    @cached_property
    def _masks(self) -> list[Any]:
        return self._operands(_mask)

    def _operands(self, mask: Callable[[SparsityFact], Any]) -> list[Any]:
        return [k.value if i in self._places else mask(k) for i, k in enumerate(self._given)]

    def _evaluated(self, terms: Sum, ring: Semiring, mask: Callable[[SparsityFact], Any] | None = None) -> Any:
        return evaluate_sum(terms, self._shape, self._operands(mask) if mask else self._masks, ring)


def _mask(k: SparsityFact) -> Any:
    """Return the support as a boolean array of the value's shape, or a scalar if it is everywhere or nowhere."""
    return np.asarray(k.support) if isinstance(k.support, bool) else k.mask


def _without_unknown_choice(t: Term, given: Sequence[SparsityFact]) -> Term:
    """Drop the brackets of a term that are cases of a select, if the index of the select is unknown."""
    kept = [b for b in t.brackets if not (is_case(b) and given[b.operand].value is None)]
    return t if len(kept) == len(t.brackets) else t.with_brackets(kept)


def _are_cases(terms: Sequence[Term]) -> bool:
    """Tell whether terms are distinct cases of one select and write to the same elements."""
    cases = [[b for b in t.brackets if is_case(b)] for t in terms]
    if any(len(own) != 1 for own in cases) or len({t.out for t in terms}) > 1:
        return False
    read = {(b.operand, b.access) for (b,) in cases}
    return len(read) == 1 and len({b.index for (b,) in cases}) == len(terms)


def _covers(t: Term, shape: tuple[int, ...]) -> bool:
    """Tell whether a term writes every element, whatever its brackets are of."""
    return not t.brackets and t.sizes[: len(shape)] == shape and t.out == variables(shape)


def _has_ones(k: SparsityFact) -> bool:
    """Tell whether some position that may be nonzero is known to be zero or one."""
    if isinstance(k.binary, bool) or isinstance(k.support, bool):
        return k.binary is not False and k.support is not False
    return bool((k.binary & k.support).any())


def _is_plain(t: Term) -> bool:
    return t.coefficient == 1 and all(f.use is not Use.DIVIDED for f in t.factors)


@lru_cache(maxsize=4096)
def _is_sum(t: Term) -> bool:
    """Tell whether a term may add several products in one element: over a variable, or at looked-up positions."""
    free = variables_in(t.out)
    given = {v for b in t.brackets if isinstance(b, Lookup) for v in variables_of(b.index)}
    return bool(given & free) or any(n > 1 and v not in free | given for v, n in enumerate(t.sizes))
