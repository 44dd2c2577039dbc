"""Sums of products in bodies of the index language as contractions: one `ein` for a sum and the products that it adds.

Search terms: einsum, producer-consumer fusion. Fusion leaves a sum of products as it stands if their array is no larger
than what they are products of, for who writes arrays may have had a reason; who writes elements had none. So the
product of a matrix and a vector is one operation. Inner products stay products that are added, in one loop. What is a
sum over entries itself, as reads of relations and sparse arrays are, is added without its zeros: never as an array of
all elements. Of truth values `or` is the sum, and `and` the product.
"""

from collections.abc import Iterator

from tapeless.interpreters import limits
from tapeless.interpreters.index.entry_extremes import extreme_of_entries
from tapeless.interpreters.index_rows import Combination, rows
from tapeless.interpreters.simplifications.fusion.fuse import as_one_ein
from tapeless.interpreters.simplifications.fusion.licence import find_summed
from tapeless.interpreters.simplifications.fusion.statements import (
    MOVES,
    Statement,
    statement,
)
from tapeless.interpreters.terms.compose import Composer, NumberedAtoms, Substitution, compress_numbers, may_compose
from tapeless.interpreters.writer import Writer, uses
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives.bits import and_p, not_p, or_p
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.elementwise import add_p, mul_p, neg_p, sub_p
from tapeless.tracer.primitives.reduction import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_sum_p,
)
from tapeless.tracer.terms.solve import solve_term
from tapeless.tracer.terms.term import Lookup, Sum, Term, is_case, looked_up, variables_in, variables_of

_PRODUCTS = frozenset((mul_p, ein_p, *MOVES))
_SUMS = frozenset((add_p, sub_p, neg_p, and_p, or_p))  # composed with if something in them is a sum over entries

_COMPOSER = Composer(pending=limits.CONTRACTED_TERMS, factors=limits.CONTRACTED_FACTORS)


def with_contractions(jaxpr: Jaxpr) -> Jaxpr:
    """Write each sum of products that nothing else reads as one `ein`, and each sum of what is a sum over entries."""
    w, read = Writer(jaxpr), uses(jaxpr)
    for eqn in jaxpr.eqns:
        now, w.source = w.renamed(eqn), eqn.source
        found = _reduction(w, now, read)
        if found is None or not w.replace(eqn, found):
            w.keep(now)
    return w.finish()


def _reduction(w: Writer, eqn: Equation, read: dict[Var, int]) -> Atom | None:
    if eqn.primitive in (reduce_sum_p, reduce_or_p):
        return _contraction(w, eqn, read)
    if eqn.primitive in (reduce_max_p, reduce_min_p):
        return extreme_of_entries(w, eqn)
    negated = w.made_by(eqn.invars[0], not_p) if eqn.primitive is reduce_and_p else None
    if negated is None or not _is_sparse(w, negated.invars[0]):
        return None
    found = _contraction(w, Equation(reduce_or_p, negated.invars, eqn.params, eqn.outvars), read)
    return None if found is None else w.write(not_p, found)


def _contraction(w: Writer, eqn: Equation, read: dict[Var, int]) -> Atom | None:
    operands = NumberedAtoms([eqn.invars[0]])
    found = _statement(w, eqn, operands)
    if found is None or len(found.terms) != 1:
        return None
    done, passed = _COMPOSER.composed(found.numbered_terms, lambda t: next(_substitutions(w, t, operands, read), None))
    passed = passed or _COMPOSER.passed_by(done)
    if passed is not None:
        passed.stop(eqn.source)
        return None
    if not done or not (any(map(_looks_entries_up, done)) or all(map(_has_a_free_index, done))):
        return None
    return as_one_ein(w, tuple(done), operands.atoms, eqn.outvars[0].aval, found.precision)


def _statement(w: Writer, eqn: Equation, operands: NumberedAtoms) -> Statement | None:
    """Express what an equation computes as terms; of truth values, too, whose sums are in any order."""
    if not dtypes.is_bool(eqn.outvars[0].aval.dtype):
        return statement(eqn, w.definition, operands.number)
    row = rows[eqn.primitive](eqn.params, [x.aval for x in eqn.invars])
    if row.combination is not Combination.TERMS or any(0 in x.aval.shape for x in eqn.invars):
        return None
    terms = [solve_term(t.with_operands(lambda k: operands.number(eqn.invars[k]))) for t in row.results[0]]
    return Statement(*compress_numbers(tuple([t for t in terms if t is not None])), guarded=True)


def _has_a_free_index(t: Term) -> bool:
    """Tell whether a factor lacks an index of the result that another has: else it is an inner product of elements."""
    kept = variables_in(t.out)
    own = [variables_in(f.access) & kept for f in t.factors]
    return any(x != own[0] for x in own)


def _substitutions(w: Writer, t: Term, operands: NumberedAtoms, read: dict[Var, int]) -> Iterator[Substitution]:
    """Yield for factors of a term what computes them: a product, a move, or a sum that is one over entries."""
    for k, f in enumerate(t.factors):
        v = operands.atoms[f.operand]
        eqn = w.definition(v)
        if eqn is None or eqn.primitive not in _PRODUCTS | _SUMS:
            continue
        if eqn.primitive is not ein_p and v.aval.dtype != eqn.invars[0].aval.dtype:
            continue
        sparse = _is_sparse(w, v)
        if eqn.primitive in _SUMS and not sparse:
            continue
        found = _statement(w, eqn, operands)
        terms = None if found is None else found.numbered_terms
        if terms is None or f.operand in looked_up(t) or not may_compose((t,), f.operand, terms):
            continue
        if sparse or _may_be_written_in(terms, read.get(v, 0)):  # type: ignore[arg-type]
            yield Substitution(k, terms)


def _may_be_written_in(producer: Sum, readers: int) -> bool:
    """Tell whether a product is computed once all the same, or only moves."""
    if len(producer) != 1:
        return False
    (p,) = producer
    return not find_summed(p) and ((len(p.factors) == 1 and p.coefficient == 1) or readers == 1)


def _is_sparse(w: Writer, x: Atom) -> bool:
    """Tell whether a value is a sum over entries, or a sum or a move of such."""
    todo, seen = [x], 0
    while todo and seen < limits.CONTRACTED_TERMS:
        eqn, seen = w.definition(todo.pop()), seen + 1
        if eqn is not None and eqn.primitive is ein_p and any(map(_looks_entries_up, eqn.params["terms"])):
            return True
        if eqn is not None and (eqn.primitive in _SUMS or eqn.primitive in MOVES):
            todo += eqn.invars
    return False


def _looks_entries_up(t: Term) -> bool:
    """Tell whether a term is summed over entries: some array holds where they are."""
    accesses = [b.access for b in t.brackets if isinstance(b, Lookup) and not is_case(b)]
    return not find_summed(t).isdisjoint([v for access in accesses for a in access for v in variables_of(a)])
