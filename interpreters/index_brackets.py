"""Brackets in the bodies of the index language: products with conditions become choices.

Search terms: Iverson bracket, predicate. Where p is false, `p * e` is 0 whatever e is: `select_n(p, 0, e)`, whose
derivatives are as safe as those of any choice (`simplifications/masks/`), and which the simplifier reads as a bracket
of indices if p compares these. Source: Bernstein et al. 2020, section 4.
"""

from tapeless.interpreters.index_rows import Combination
from tapeless.interpreters.rows import index_row
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.terms.term import Read, Use, term


def with_brackets(jaxpr: Jaxpr) -> Jaxpr:
    """Write products with booleans as choices."""
    w, conditions = Writer(jaxpr), dict[Atom, Atom]()  # what was converted to numbers, to the booleans
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        w.place = eqn.source
        _note(w, conditions, now)
        if now.primitive is not e.mul_p or not _replaced(w, conditions, eqn, now):
            w.keep(now)
    return w.finish()


def _note(w: Writer, conditions: dict[Atom, Atom], eqn: Equation) -> None:
    """Note a boolean that is converted to a number, and repeated."""
    if eqn.primitive not in (e.convert_element_type_p, broadcast_in_dim_p):
        return
    x, out = eqn.invars[0], eqn.outvars[0]
    if eqn.primitive is broadcast_in_dim_p and x in conditions:
        conditions[out] = w.write(broadcast_in_dim_p, conditions[x], **eqn.params)
    elif eqn.primitive is e.convert_element_type_p and dtypes.is_bool(x.aval.dtype):
        conditions[out] = x


def _replaced(w: Writer, conditions: dict[Atom, Atom], eqn: Equation, now: Equation) -> bool:
    factors = [v for v in now.invars if v in conditions]
    if not factors:
        return False
    condition, x = conditions[factors[0]], now.invars[1] if factors[0] is now.invars[0] else now.invars[0]
    related = _related(w, condition, x)
    return w.replace(eqn, related or w.write(e.select_n_p, condition, filled(w, 0, x.aval), x))


def _related(w: Writer, condition: Atom, x: Atom) -> Atom | None:
    """Write the product of a number with the read of a relation, over the entries of that; None if it is no such.

    A function such as log, whose derivative may be infinite where the relation does not hold, is chosen there, too.
    """
    read = w.made_by(condition, ein_p)
    if read is None or x.aval.shape or len(read.params["terms"]) != 1 or read.params["terms"][0].factors:
        return None
    (t,), n = read.params["terms"], len(read.invars)
    if not _is_polynomial(w, x):
        x = w.write(e.select_n_p, condition, filled(w, 0, x.aval), x)
    params = {**read.params, "terms": (term((), t.sizes, [Read(n, ())], t.brackets),), "dtype": None}
    return w.write(ein_p, *read.invars, x, **params)


def _is_polynomial(w: Writer, x: Atom) -> bool:
    """Tell whether a value is made of sums and products of others alone: its derivative is finite where they are."""
    todo, met = [x], set[Atom]()
    while todo:
        v = todo.pop()
        eqn = w.definition(v)
        if eqn is None or v in met:
            continue
        row = index_row(eqn)
        terms = row.results if row is not None and row.combination is Combination.TERMS else None
        if terms is None or any(f.use is Use.DIVIDED for found in terms for t in found for f in t.factors):
            return False
        met.add(v)
        todo += eqn.invars
    return True
