"""Sums of products where masks hold, free of what is infinite elsewhere: contractions if all is finite there.

Search terms: masked matrix product, select before product. A mask of indices of the result is a choice in the result.
Any other is a choice in each factor that has its indices, or else a factor of zeros and ones; a factor that it does not
choose from may be infinite where it fails, and 0·inf is nan. So the whole product is chosen from if that is no larger
than what it is made of; else it is asked at run time whether these factors are finite, and if not, products are
summed one index of a variable after another.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, NamedTuple

from tapeless.interpreters.simplifications.fusion.lower_terms import lowered
from tapeless.interpreters.simplifications.fusion.lower_views import Order, arranged
from tapeless.interpreters.simplifications.fusion.steps import Labels
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.control_flow import cond_p, scan_p
from tapeless.tracer.primitives.reduction import reduce_and_p, reduce_sum_p
from tapeless.tracer.primitives.shape import transpose_p
from tapeless.tracer.terms.affine import Variable, indices
from tapeless.tracer.terms.term import Read, term
from tapeless.tracer.types import ShapedArray

MOST = 4  # elements of a whole product for each of what it is made of


class Indexed(NamedTuple):
    """A value with an axis for each of these variables."""

    value: Atom
    order: Order

    @property
    def labels(self) -> Labels:
        return frozenset(self.order)


class MaskedProduct(NamedTuple):
    """The sum of products of factors, where all masks are true, over all variables but those of the result."""

    factors: tuple[Indexed, ...]  # of one dtype; there may be none, whose product is 1
    masks: tuple[Indexed, ...]  # of booleans
    kept: Order
    sizes: Sequence[int]
    aval: ShapedArray  # of a scalar of the result
    precision: Any


def summed(w: Writer, p: MaskedProduct) -> Indexed:
    """Write the sum: with an axis for each variable of the result that something has."""
    kept = frozenset(p.kept)
    late = tuple([m for m in p.masks if m.labels <= kept])
    early = p._replace(masks=tuple([m for m in p.masks if not m.labels <= kept]))
    found = _chosen_early(w, early) if early.masks else _contracted(w, p)
    for mask in late:
        order = tuple([v for v in p.kept if v in found.labels | mask.labels])
        found = Indexed(_where(w, _arranged(w, mask, order, p.sizes), _arranged(w, found, order, p.sizes)), order)
    return found


def _chosen_early(w: Writer, p: MaskedProduct) -> Indexed:
    order = _result_order(p)
    exposed = [f for f in p.factors if any(not m.labels <= f.labels for m in p.masks)]
    if not exposed or not dtypes.is_inexact(p.aval.dtype):
        return Indexed(_in_factors(w, p).value, order)
    parts = sum(_size(x.labels, p.sizes) for x in (*p.factors, *p.masks)) + _size(order, p.sizes)
    if _size(_every(p), p.sizes) <= MOST * parts:
        return Indexed(_whole(w, p), order)
    return Indexed(_if_finite(w, p, exposed), order)


def _every(p: MaskedProduct) -> Labels:
    none: Labels = frozenset()
    return none.union(*[x.labels for x in (*p.factors, *p.masks)])


def _result_order(p: MaskedProduct) -> Order:
    every = _every(p)
    return tuple([v for v in p.kept if v in every])


def _size(labels: Sequence[Variable] | Labels, sizes: Sequence[int]) -> int:
    return prod([sizes[v] for v in labels])


def _arranged(w: Writer, x: Indexed, order: Order, sizes: Sequence[int]) -> Atom:
    return arranged(w, x.value, x.order, order, sizes)


def _where(w: Writer, mask: Atom, x: Atom) -> Atom:
    return w.write(e.select_n_p, mask, filled(w, 0, x.aval), x)


def _of_dtype(w: Writer, x: Atom, aval: ShapedArray) -> Atom:
    if x.aval.dtype == aval.dtype and not x.aval.weak_type:
        return x
    return w.write(e.convert_element_type_p, x, dtype=aval.dtype, weak_type=False)


# ---- contractions --------------------------------------------------------------------------------------------


def _contracted(w: Writer, p: MaskedProduct) -> Indexed:
    """The product without masks, in the order that is cheapest."""
    order = _result_order(p)
    if not p.factors:
        return Indexed(literal(1, p.aval), ())
    sizes = {v: p.sizes[v] for v in _every(p)}
    whole = term(indices(order), sizes, [Read(k, indices(f.order)) for k, f in enumerate(p.factors)])
    aval = p.aval.update(shape=tuple([p.sizes[v] for v in order]))
    found = lowered(w, (whole,), lambda k: p.factors[k].value, aval, p.precision)
    assert found is not None
    return Indexed(found, order)


def _in_factors(w: Writer, p: MaskedProduct) -> Indexed:
    """Masks as choices in the factors that have their variables, those that no factor has as factors."""
    factors = list(p.factors)
    for mask in p.masks:
        having = [k for k, f in enumerate(factors) if mask.labels <= f.labels]
        for k in having:
            f = factors[k]
            factors[k] = Indexed(_where(w, _arranged(w, mask, f.order, p.sizes), f.value), f.order)
        if not having:
            factors.append(Indexed(_of_dtype(w, mask.value, p.aval), mask.order))
    return _contracted(w, p._replace(factors=tuple(factors), masks=()))


# ---- products that are evaluated only where masks hold -------------------------------------------------------


def _whole(w: Writer, p: MaskedProduct) -> Atom:
    """All products, chosen from, then summed."""
    kept = _result_order(p)
    order = (*kept, *sorted(_every(p).difference(kept)))
    one = Indexed(literal(1, p.aval), ())
    factors = [_arranged(w, f, order, p.sizes) for f in p.factors or (one,)]
    masks = [_arranged(w, m, order, p.sizes) for m in p.masks]
    products = reduce(lambda x, y: w.write(e.mul_p, x, y), factors)
    chosen = _where(w, reduce(lambda x, y: w.write(and_p, x, y), masks), products)
    axes = tuple(range(len(kept), len(order)))
    return w.write(reduce_sum_p, chosen, axes=axes) if axes else chosen


def _if_finite(w: Writer, p: MaskedProduct, exposed: Sequence[Indexed]) -> Atom:
    """The contraction if all factors that masks do not choose from are finite, else sums of chosen products."""
    finite = reduce(lambda x, y: w.write(and_p, x, y), [_all_finite(w, f.value) for f in exposed])
    operands = tuple([x.value for x in (*p.factors, *p.masks)])
    slow = _program(p, operands, lambda inner, q: _one_by_one(inner, q))
    fast = _program(p, operands, lambda inner, q: _in_factors(inner, q).value)
    return _applied(w, cond_p, (finite, *operands), {"branches": (slow, fast)}, fast.out_avals[0])


def _all_finite(w: Writer, x: Atom) -> Atom:
    parts = [w.write(p, x) for p in (e.real_p, e.imag_p)] if dtypes.is_complex(x.aval.dtype) else [x]
    each = [w.write(e.is_finite_p, part) for part in parts]
    every = [w.write(reduce_and_p, x, axes=tuple(range(x.aval.ndim))) if x.aval.shape else x for x in each]
    return reduce(lambda x, y: w.write(and_p, x, y), every)


def _program(p: MaskedProduct, operands: Sequence[Atom], write: Callable[[Writer, MaskedProduct], Atom]) -> Jaxpr:
    """The program of a product of inputs."""
    inputs = [Var(x.aval) for x in operands]
    inner, n = Writer(Jaxpr(inputs, [], [], "product")), len(p.factors)
    given = [Indexed(v, x.order) for v, x in zip(inputs, (*p.factors, *p.masks), strict=True)]
    out = write(inner, p._replace(factors=tuple(given[:n]), masks=tuple(given[n:])))
    return Jaxpr(inputs, inner.eqns, [out], "product")


def _applied(w: Writer, primitive: Any, operands: Sequence[Atom], params: Any, aval: ShapedArray) -> Atom:
    out = Var(aval, any(x.linear for x in operands))
    w.keep(Equation(primitive, operands, params, [out], w.place))
    return out


def _one_by_one(w: Writer, p: MaskedProduct) -> Atom:
    """Add the products up for one value after another of the summed variable that has the most."""
    v = max(_every(p).difference(p.kept), key=lambda v: (p.sizes[v], v))
    parts = (*p.factors, *p.masks)
    operands = [_first(w, x, v) if v in x.order else x.value for x in parts]
    inputs = [Var(a.aval.update(shape=a.aval.shape[1:]) if v in x.order else a.aval) for a, x in zip(operands, parts)]
    given = [Indexed(a, tuple([u for u in x.order if u != v])) for a, x in zip(inputs, parts)]
    total = Var(p.aval.update(shape=tuple([p.sizes[u] for u in _result_order(p)])))
    moving = [k for k, x in enumerate(parts) if v in x.order]
    fixed = [k for k in range(len(parts)) if k not in moving]
    invars, n = [*[inputs[k] for k in fixed], total, *[inputs[k] for k in moving]], len(p.factors)
    step = Writer(Jaxpr(invars, [], [], "step"))
    products = _whole(step, p._replace(factors=tuple(given[:n]), masks=tuple(given[n:])))
    body = Jaxpr(invars, step.eqns, [step.write(e.add_p, total, products)], "step")
    params = {"jaxpr": body, "n_consts": len(fixed), "n_carry": 1, "length": p.sizes[v], "reverse": False, "unroll": 1}
    values = [*[operands[k] for k in fixed], filled(w, 0, total.aval), *[operands[k] for k in moving]]
    return _applied(w, scan_p, values, params, total.aval)


def _first(w: Writer, x: Indexed, v: Variable) -> Atom:
    """A value with the axis of a variable first."""
    at = x.order.index(v)
    others = [d for d in range(len(x.order)) if d != at]
    return w.write(transpose_p, x.value, permutation=(at, *others)) if at else x.value
