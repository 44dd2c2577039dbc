"""Passes of the index language, each with the predicate of the normal form that it attains.

Search terms: A-normal form, lambda lifting, struct of arrays, tensor SSA, normal form, confluence. A pass maps a
program to a program; bodies of equations are rewritten, too. `index_bodies.py` writes bodies as bulk operations while
they are traced, which leaves little for the first passes. The simplifier runs steps of the later ones where they gain.
Source: Bernstein et al. 2020, sections 5 and 6.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from tapeless.interpreters.analysis.cost import equation_cost, work
from tapeless.interpreters.index_rows import index_row
from tapeless.interpreters.inline import fully_inlined, is_inlined
from tapeless.interpreters.simplifications.common_subexpressions import without_common_subexpressions
from tapeless.interpreters.simplifications.fusion.fuse import as_ein, fuse_contractions
from tapeless.interpreters.simplifications.fusion.statements import MOVES
from tapeless.interpreters.terms.lower_ein import without_ein
from tapeless.interpreters.writer import Writer, fill_array
from tapeless.tracer.core import memoize_by_program
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Literal, map_carried
from tapeless.tracer.primitives.ein import ReducedSum, ein_p, operands_of, reduce_terms
from tapeless.tracer.primitives.elementwise import convert_element_type_p
from tapeless.tracer.terms.solve import compose_terms, explicit, is_solved, merge_terms
from tapeless.tracer.terms.term import Sum, Term, Use, looked_up
from tapeless.tracer.types import ShapedArray


class NormalForm(NamedTuple):
    """A pass, and the predicate that its results fulfil."""

    apply: Callable[[Jaxpr], Jaxpr]
    holds: Callable[[Jaxpr], bool]


Change = Callable[[Writer, Equation], bool]  # writes a replacement of an equation, and tells whether there is one


def _everywhere(change: Change) -> Callable[[Jaxpr], Jaxpr]:
    """Return the pass that applies `change` to each equation, first to those of bodies."""

    def changed(jaxpr: Jaxpr) -> Jaxpr:
        w = Writer(jaxpr)
        for eqn in jaxpr.eqns:
            now, w.source = w.renamed(eqn), eqn.source
            if not change(w, now):
                w.keep(now)
        return w.finish()

    return _innermost_first(changed)


def _innermost_first(apply: Callable[[Jaxpr], Jaxpr]) -> Callable[[Jaxpr], Jaxpr]:
    """Return the pass that applies `apply` to each body once, however often it is called, then to the program."""

    @memoize_by_program
    def applied(jaxpr: Jaxpr) -> Jaxpr:
        return apply(_with_programs(applied, jaxpr))

    return applied


def _with_programs(change: Callable[[Jaxpr], Jaxpr], jaxpr: Jaxpr) -> Jaxpr:
    """Apply `change` to the bodies of the equations of a program; the same object if none changes."""
    w = Writer(jaxpr)
    for eqn in jaxpr.eqns:
        params = map_carried(change, eqn)
        w.changed |= params is not eqn.params
        w.keep(eqn if params is eqn.params else eqn.replace(params=params))
    return w.finish()


def _until_nothing_changes(apply: Callable[[Jaxpr], Jaxpr]) -> NormalForm:
    """Return the normal form of an idempotent pass: it holds if the pass changes nothing."""
    return NormalForm(apply, lambda jaxpr: apply(jaxpr) is jaxpr)


def _of_all(holds: Callable[[Jaxpr], bool]) -> Callable[[Jaxpr], bool]:
    """Return the predicate that `holds` is true of a program and of all bodies in it."""

    def of_all(jaxpr: Jaxpr) -> bool:
        todo, found = [jaxpr], {jaxpr}
        while todo:
            program = todo.pop()
            if not holds(program):
                return False
            todo += [p for p in dict.fromkeys(program.programs) if p not in found]
            found.update(todo)
        return True

    return of_all


def _of_equations(holds: Callable[[Equation], bool]) -> Callable[[Jaxpr], bool]:
    return _of_all(lambda jaxpr: all(map(holds, jaxpr.eqns)))


def _terms(eqn: Equation) -> Sum:
    return eqn.params["terms"] if eqn.primitive is ein_p else ()


# ---- lets, pairs, reads of built arrays ----------------------------------------------------------------------


def _has_arrays_only(jaxpr: Jaxpr) -> bool:
    variables = [*jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars]]
    return all(type(v.aval) is ShapedArray for v in variables)


def _moved(eqn: Equation | None) -> Term | None:
    """Return the term by which a result only moves elements of one operand; None if it computes or fills any."""
    if eqn is None or (eqn.primitive not in MOVES and eqn.primitive is not ein_p):
        return None
    row, shape = index_row(eqn), eqn.outvars[0].aval.shape
    (t, *others) = row.results[0] if row is not None and 0 not in shape and row.results[0] else (None,)
    if t is None or others or len(t.factors) != 1 or t.factors[0].use is not Use.PLAIN or t.coefficient != 1:
        return None
    found = explicit(t, shape)
    is_move = found is not None and not found.brackets and not looked_up(found) and len(found.sizes) == len(shape)
    return found if is_move else None


def _pushed_out(w: Writer, eqn: Equation) -> bool:
    """Compose the terms of an equation with the moves that compute its operands, to read the sources of these."""
    operands, terms = list(eqn.invars), _terms(eqn)
    found = tuple([_through_moves(w, t, operands) for t in terms])
    return found != terms and _replaced(w, eqn, found, operands)


def _through_moves(w: Writer, t: Term, operands: list[Atom]) -> Term:
    """Compose a term with all moves that its factors read; appends the sources of the moves to `operands`."""
    after: Term | None = t
    while after is not None:
        t, after = after, next(_shorter(w, after, operands), None)
    return t


def _shorter(w: Writer, t: Term, operands: list[Atom]) -> Iterator[Term]:
    """Yield the term composed with the move read by one factor, for each factor for which this adds no bracket.

    Appends the source of the move to `operands`.
    """
    for k, f in enumerate(t.factors):
        eqn = w.definition(operands[f.operand])
        move = _moved(eqn)
        if eqn is None or move is None or isinstance(source := eqn.invars[move.factors[0].operand], Literal):
            continue  # a broadcast number stays: it is a constant
        number = len(operands)
        found = compose_terms(t, k, move.with_operands(lambda _, number=number: number))
        if found is not None and len(found.brackets) <= len(t.brackets):
            operands.append(source)
            yield found


# ---- tensor SSA ------------------------------------------------------------------------------------------------


def _raised(w: Writer, eqn: Equation) -> bool:
    """Rewrite an equation that has terms as `ein`; masks that compare affine indices become brackets.

    Conversions stay: as an `ein` they would still need the conversion, since its operands have one dtype. So does what
    would be more work, as a reshape without common digits, whose terms are masked.
    """
    found = None if eqn.primitive in (ein_p, convert_element_type_p) else as_ein(w, eqn)
    if found is None:
        return False
    made = w.definition(found)
    is_cheap = made is None or equation_cost(made).work <= equation_cost(eqn).work
    return is_cheap and w.replace(eqn, found)


_shared = _innermost_first(without_common_subexpressions)


def _in_tensor_ssa(jaxpr: Jaxpr) -> Jaxpr:
    """Inline, raise and share; equal equations are one before that, too, since calls may repeat them."""
    return _shared(raise_terms.apply(_shared(fully_inlined(jaxpr))))


# ---- brackets, equal terms, producers --------------------------------------------------------------------------


def _solved(w: Writer, eqn: Equation) -> bool:
    """Solve the brackets of each term of an `ein`."""
    avals, out = [x.aval for x in eqn.invars], eqn.outvars[0].aval if eqn.primitive is ein_p else None
    if out is None:
        return False
    found = [reduce_terms([t], avals, out.shape, out.dtype) for t in _terms(eqn)]
    terms = tuple([t.with_operands(one.operands.__getitem__) for one in found for t in one.terms])
    return terms != _terms(eqn) and _replaced(w, eqn, terms, eqn.invars)


def _merged(w: Writer, eqn: Equation) -> bool:
    """Add up the terms of an `ein` that differ in their coefficients only, or are all cases of one select."""
    terms = merge_terms(_terms(eqn))
    return terms != _terms(eqn) and _replaced(w, eqn, terms, eqn.invars)


def _is_merged(eqn: Equation) -> bool:
    """Tell whether no two terms differ in their coefficients only, and no terms are all cases of one select."""
    terms = _terms(eqn)
    return len({t.unit for t in terms}) == len(terms) and len(merge_terms(terms)) == len(terms)


def _fused(jaxpr: Jaxpr) -> Jaxpr:
    """Fuse contractions until nothing is gained; each step lowers work or memory, so it ends."""
    while (after := _fused_once(jaxpr)) is not jaxpr:
        jaxpr = after
    return jaxpr


def _fused_once(jaxpr: Jaxpr) -> Jaxpr:
    """Run `fuse_contractions`; return `jaxpr` if `work` rises: the pass itself counts the best order of products."""
    after = fuse_contractions(jaxpr)
    return after if work(after) <= work(jaxpr) else jaxpr


def _replaced(w: Writer, eqn: Equation, terms: Sum, operands: Sequence[Atom]) -> bool:
    """Substitute an `ein` of these terms for an equation, over those of the operands that they read; zeros if none."""
    if not terms:
        return w.replace(eqn, fill_array(w, 0, eqn.outvars[0].aval))
    first = {x: k for k, x in reversed(list(enumerate(operands)))}
    terms = tuple([t.with_operands(lambda k: first[operands[k]]) for t in terms])
    used = sorted({k for t in terms for k in operands_of(t)})
    out = eqn.outvars[0]
    found = ReducedSum(tuple([t.with_operands(used.index) for t in terms]), tuple(used))
    params = found.params(out.aval.shape, out.aval.dtype, eqn.params["precision"])
    return w.replace(eqn, w.write(ein_p, *[operands[k] for k in used], **params))


# ---- the passes ------------------------------------------------------------------------------------------------

let_lift: Final = NormalForm(fully_inlined, _of_all(is_inlined))
pair_eliminate: Final = NormalForm(lambda jaxpr: jaxpr, _of_all(_has_arrays_only))
gen_push_out: Final = _until_nothing_changes(_everywhere(_pushed_out))
raise_terms: Final = _until_nothing_changes(_everywhere(_raised))
tensor_ssa: Final = NormalForm(
    _in_tensor_ssa,
    lambda jaxpr: let_lift.holds(jaxpr) and raise_terms.holds(jaxpr) and _shared(jaxpr) is jaxpr,
)
solve: Final = NormalForm(_everywhere(_solved), _of_equations(lambda eqn: all(map(is_solved, _terms(eqn)))))
merge: Final = NormalForm(_everywhere(_merged), _of_equations(_is_merged))
fuse: Final = _until_nothing_changes(_innermost_first(_fused))
lower_terms: Final = NormalForm(without_ein, _of_equations(lambda eqn: eqn.primitive is not ein_p))
