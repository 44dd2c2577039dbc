"""Rules of `ein`: each derivative of a sum of terms is a sum of terms, with the same brackets.

With y[O(v)] += c [p(v)] a[A(v)] b[B(v)] and b constant, ȧ is pushed by the same terms, and ȳ pulled by swapping
accesses: ā[A(v)] += c [p(v)] ȳ[O(v)] b[B(v)]. Source: Bernstein et al. 2020, section 6.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import rows, terms
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, zeros_of
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.primitives.ein import ein, ein_p
from tapeless.tracer.primitives.elementwise import add, conj
from tapeless.tracer.terms.affine import Access, Affine, variable
from tapeless.tracer.terms.term import Bracket, Lookup, Read, Sum, Term, Use, looked_up, term, with_indices
from tapeless.tracer.types import ShapedArray

# ---- jvp -----------------------------------------------------------------------------------------------------


def _ein_jvp(primals: list[Any], tangents: list[Any], *, terms: Sum, shape: Any, dtype: Any, precision: Any) -> Any:
    """Apply the product rule: a term for each factor with a tangent, which takes its place; -ẋ / x² for a divisor."""
    out = ein_p.bind(*primals, terms=terms, shape=shape, dtype=dtype, precision=precision)
    moving = [k for k, t in enumerate(tangents) if type(t) is not Zero]
    place = {k: len(primals) + i for i, k in enumerate(moving)}
    pushed = [_pushed(t, at, place[f.operand]) for t in terms for at, f in enumerate(t.factors) if f.operand in place]
    if not pushed:
        return out, zeros_of(out)
    given = [*primals, *[tangents[k] for k in moving]]
    return out, (ein(given, pushed, shape, precision=precision),)


def _pushed(t: Term, at: int, tangent: int) -> Term:
    f = t.factors[at]
    if f.use is Use.DIVIDED:
        factors, sign = (*t.factors, f, Read(tangent, f.access)), -1
    else:
        factors, sign = (*t.factors[:at], f._replace(operand=tangent), *t.factors[at + 1 :]), 1
    return term(t.out, t.sizes, factors, t.brackets, sign * t.coefficient)


jvp.rules[ein_p] = _ein_jvp

# ---- transpose -----------------------------------------------------------------------------------------------


def _ein_transpose(
    cts: Sequence[Any], *args: Any, terms: Sum, shape: Any, dtype: Any, precision: Any
) -> tuple[Any, ...]:
    linear = frozenset(k for k, x in enumerate(args) if is_linear(x))
    swapped = [_swapped(t, at, len(args)) for t in terms if (at := _linear_factor(t, linear)) is not None]
    given = [*[cts[0] if k in linear else x for k, x in enumerate(args)], cts[0]]
    return tuple([_pulled(swapped, k, given, x.aval, precision) if is_linear(x) else None for k, x in enumerate(args)])


def _linear_factor(t: Term, linear: frozenset[int]) -> int | None:
    """Return the position of the linear factor; None if there is none, as the term is zero.

    Raises: NotImplementedError if two factors are linear, or one is a divisor.
    """
    found = [at for at, f in enumerate(t.factors) if f.operand in linear]
    if len(found) > 1:
        raise transpose.not_linear(ein_p, "it multiplies two values that are both linear (bilinear)")
    if found and t.factors[found[0]].use is Use.DIVIDED:
        raise transpose.not_linear(ein_p, "it divides by a linear value")
    return found[0] if found else None


class _SwappedTerm(NamedTuple):
    """A term after a swap of its result with the factor that reads `operand`, or its conjugate if `is_conjugated`."""

    operand: int
    term: Term
    is_conjugated: bool


def _swapped(t: Term, at: int, ct: int) -> _SwappedTerm:
    f = t.factors[at]
    factors = (*t.factors[:at], Read(ct, t.out), *t.factors[at + 1 :])
    return _SwappedTerm(f.operand, term(f.access, t.sizes, factors, t.brackets, t.coefficient), f.use is Use.CONJUGATED)


def _pulled(swapped: Sequence[_SwappedTerm], k: int, given: Sequence[Any], aval: ShapedArray, precision: Any) -> Any:
    """Compute the cotangent of operand k; terms that read it conjugated are summed apart, and the sum is conjugated."""
    total: Any = Zero(aval)
    for conjugate in (False, True):
        own = [s.term for s in swapped if s.operand == k and s.is_conjugated is conjugate]
        if own:
            found = ein(given, own, aval.shape, precision=precision)
            found = conj(found) if conjugate else found
            total = found if type(total) is Zero else add(total, found)
    return total


transpose.rules[ein_p] = _ein_transpose

# ---- vmap ----------------------------------------------------------------------------------------------------


def _ein_vmap(
    size: int, args: Sequence[Any], dims: Sequence[vmap.Dim], *, terms: Sum, shape: Any, dtype: Any, precision: Any
) -> Any:
    """Batch a sum of terms: one more index variable, which indexes the result and the mapped operands."""
    mapped = [_mapped(t, size, args, dims) for t in terms]
    return (ein(args, mapped, (size, *shape), dtype=dtype, precision=precision),), [0]


def _mapped(t: Term, size: int, args: Sequence[Any], dims: Sequence[vmap.Dim]) -> Term:
    """Add an index variable for the examples; symbols of mapped operands become it, or variables with lookups."""
    sizes, more = [*t.sizes, size], list[Bracket]()
    example = variable(len(t.sizes))

    def indexed(operand: int, access: Access) -> Access:
        d = dims[operand]
        return access if d is None else (*access[:d], example, *access[d:])

    symbols: dict[Any, Affine] = {}
    for s in dict.fromkeys([s for a in t.indices for s, _ in a.symbols if dims[s.operand] is not None]):
        if args[s.operand] is vmap.positions() and s.low <= 0 and s.high >= size - 1:
            symbols[s] = example
            continue
        symbols[s] = Affine(s.low, ((len(sizes), 1),))
        sizes.append(s.high - s.low + 1)
        more.append(Lookup(symbols[s], s.operand, (example,), (s.low, s.high)))

    def without_symbols(a: Affine) -> Affine:
        mapped = [(s, c) for s, c in a.symbols if s in symbols]
        kept = Affine(a.constant, a.variables, tuple([pair for pair in a.symbols if pair not in mapped]))
        return sum([c * symbols[s] for s, c in mapped], kept)

    factors = [Read(f.operand, indexed(f.operand, tuple(map(without_symbols, f.access))), f.use) for f in t.factors]
    brackets = [with_indices(b, without_symbols) for b in t.brackets]
    brackets = [replace(b, access=indexed(b.operand, b.access)) if isinstance(b, Lookup) else b for b in brackets]
    return term((example, *map(without_symbols, t.out)), sizes, factors, [*brackets, *more], t.coefficient)


vmap.rules[ein_p] = _ein_vmap

# ---- linearity -----------------------------------------------------------------------------------------------


def _check_linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    """Check the linearity of a sum of products: a product is linear in its one linear factor, which is no divisor."""
    if not dtypes.is_inexact(eqn.outvars[0].aval.dtype):
        return (check.primitive(eqn, facts),)
    given = [_of_product(check, eqn, t, facts) for t in eqn.params["terms"]]
    if {linearity.Fact.LINEAR, linearity.Fact.CONSTANT} <= set(given):
        raise check.error("affine", "ein adds a linear value to a constant", eqn)
    for fact in (linearity.Fact.LINEAR, linearity.Fact.CONSTANT):
        if fact in given:
            return (fact,)
    return (linearity.Fact.ZERO,)


def _of_product(check: linearity.Check, eqn: Equation, t: Term, facts: linearity.Facts) -> linearity.Fact:
    for k in looked_up(t):
        made = facts[k]
        if isinstance(made, Equation):
            raise check.decided(eqn, eqn.invars[k], made)
    found = [(f, facts[f.operand]) for f in t.factors]
    for f, fact in found:
        if isinstance(fact, Equation) or (fact is linearity.Fact.LINEAR and f.use is Use.DIVIDED):
            what = "divides by a linear value" if f.use is Use.DIVIDED else "multiplies what is made of a linear value"
            raise check.error("nonlinear primitive", f"ein {what}, operand {f.operand + 1}", eqn)
    every = [fact for _, fact in found]
    if every.count(linearity.Fact.LINEAR) > 1:
        raise check.error("bilinear", "ein multiplies two values that are both linear", eqn)
    ordered = (linearity.Fact.ZERO, linearity.Fact.LINEAR)
    return next((fact for fact in ordered if fact in every), linearity.Fact.CONSTANT)


linearity.rules[ein_p] = _check_linear

# ---- index rows ----------------------------------------------------------------------------------------------
# Its own terms.

rows[ein_p] = lambda params, avals: terms(params["terms"])
