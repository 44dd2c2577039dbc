"""Brackets in the bodies of the index language: rewrite products with conditions as selects.

Search terms: Iverson bracket, predicate. Where p is false, `p * e` is 0 whatever e is: `select_n(p, 0, e)`. Mask
sinking keeps its derivatives finite, as for any select (`simplifications/masks/`), and the simplifier turns it into a
bracket if p compares indices. Source: Bernstein et al. 2020, section 4.
"""

from typing import NamedTuple

from tapeless.interpreters.index_rows import Combination
from tapeless.interpreters.rows import index_row
from tapeless.interpreters.simplify import Writer, filled
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.terms.term import Read, Use, term


class _BracketedProduct(NamedTuple):
    """A product with conditions: `value` where all hold (1 if it is None), 0 elsewhere."""

    conditions: tuple[Atom, ...]
    value: Atom | None


_CHOSEN = frozenset((e.mul_p, e.div_p))
_MOVES = frozenset((e.neg_p, e.convert_element_type_p, broadcast_in_dim_p))


def with_brackets(jaxpr: Jaxpr) -> Jaxpr:
    """Rewrite products with booleans, and quotients of such products, as selects of the product of all other factors.

    The order in which factors are multiplied does not matter.
    """
    w, products = Writer(jaxpr), dict[Atom, _BracketedProduct]()
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        w.place = eqn.source
        product = _product(w, products, now)
        if product is None or now.primitive not in _CHOSEN or not w.replace(eqn, _choice(w, product, now)):
            w.keep(now)
        if product is not None:
            products[w.now(eqn.outvars[0])] = product
    return w.finish()


def _product(w: Writer, products: dict[Atom, _BracketedProduct], eqn: Equation) -> _BracketedProduct | None:
    """Return the result of an equation as a product with conditions, or None; writes the product of the values."""
    primitive = eqn.primitive
    if primitive not in _CHOSEN | _MOVES:
        return None
    x, *others = [products.get(v, _BracketedProduct((), v)) for v in eqn.invars]
    if primitive is e.convert_element_type_p and dtypes.is_bool(eqn.invars[0].aval.dtype):
        return _BracketedProduct((eqn.invars[0],), None)
    if primitive is e.mul_p and others[0].conditions:
        return _BracketedProduct((*x.conditions, *others[0].conditions), _multiplied(w, x.value, others[0].value))
    if not x.conditions:
        return None
    conditions = x.conditions
    if primitive is broadcast_in_dim_p:
        conditions = tuple([w.write(primitive, c, **eqn.params) for c in conditions])
    if x.value is None and primitive in (broadcast_in_dim_p, e.convert_element_type_p):
        return _BracketedProduct(conditions, None)
    if primitive is e.mul_p:
        return _BracketedProduct(
            conditions, eqn.invars[1] if x.value is None else _multiplied(w, x.value, eqn.invars[1])
        )
    value = filled(w, 1, eqn.invars[0].aval) if x.value is None else x.value
    return _BracketedProduct(conditions, w.write(primitive, value, *eqn.invars[1:], **eqn.params))


def _multiplied(w: Writer, x: Atom | None, y: Atom | None) -> Atom | None:
    return y if x is None else x if y is None else w.write(e.mul_p, x, y)


def _choice(w: Writer, product: _BracketedProduct, eqn: Equation) -> Atom:
    """Write a product with conditions as nested selects, one for each condition."""
    found = filled(w, 1, eqn.outvars[0].aval) if product.value is None else product.value
    for condition in product.conditions:
        related = _related(w, condition, found)
        found = related or w.write(e.select_n_p, condition, filled(w, 0, found.aval), found)
    return found


def _related(w: Writer, condition: Atom, x: Atom) -> Atom | None:
    """Multiply a scalar by a condition that an `ein` of brackets alone computes, as a factor of that `ein`; else None.

    A sparse relation is read by such an `ein`. A function such as log, whose derivative may be infinite where the
    relation does not hold, is selected by the condition, too.
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
    """Tell whether a value is computed by sums and products alone: its derivative is finite where the inputs are."""
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
