"""Write masked sums of products as contractions, without nan from factors that are infinite where a mask is false.

Search terms: masked matrix product, select before product. A mask over variables of the result is a select in the
result. Any other is a select in each factor that has its variables, or else a factor of zeros and ones. A factor that
such a mask does not select from may be infinite where the mask is false, and 0·inf is nan. So the array of all products
is selected from if it is not much larger than the factors. Otherwise a conditional tests at run time whether these
factors are finite; if not, a loop over one variable adds up selected products.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

from tapeless.interpreters import limits
from tapeless.interpreters.terms.lower_views import Order, arrange_axes
from tapeless.interpreters.terms.plan import Tree, order_contraction
from tapeless.interpreters.terms.steps import Labels, size_along
from tapeless.interpreters.writer import Writer, convert_type, fill_array, literal
from tapeless.tracer import dtypes
from tapeless.tracer.bodies import CARRY, CONST, EACH, in_groups
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.bits import and_p
from tapeless.tracer.primitives.contraction import Precision, dot_general_p
from tapeless.tracer.primitives.control_flow import cond_p, scan_p, scan_params
from tapeless.tracer.primitives.reduction import reduce_and_p, reduce_sum_p
from tapeless.tracer.primitives.shape import transpose_p
from tapeless.tracer.terms.affine import Variable
from tapeless.tracer.types import ShapedArray

_FULL = Precision.HIGHEST, Precision.HIGHEST


class Indexed(NamedTuple):
    """A value with an axis for each of the variables in `order`."""

    value: Atom
    order: Order

    @property
    def labels(self) -> Labels:
        return frozenset(self.order)


class MaskedProduct(NamedTuple):
    """The sum of products of factors where all masks are true, over all variables but those of the result.

    guarded: no product is evaluated where a mask is false. Else one factor, or the result, has all variables of a mask.
    """

    factors: tuple[Indexed, ...]  # of one dtype; there may be none, whose product is 1
    masks: tuple[Indexed, ...]  # of booleans
    kept: Order
    sizes: tuple[int, ...]
    aval: ShapedArray  # the type of one element of the result
    precision: Any  # of contractions; None for the full one
    guarded: bool


def write_product_sum(w: Writer, p: MaskedProduct) -> Indexed:
    """Write the sum, with an axis for each variable of the result that a factor or a mask has."""
    kept = frozenset(p.kept)
    late = [m for m in p.masks if (m.labels <= kept if p.guarded else not any(m.labels <= f.labels for f in p.factors))]
    early = p._replace(masks=tuple([m for m in p.masks if m not in late]))
    found = _chosen_early(w, early) if early.masks and p.guarded else _in_factors(w, early)
    for mask in late:
        order = tuple([v for v in p.kept if v in found.labels | mask.labels])
        found = Indexed(select_where(w, _arranged(w, mask, order, p.sizes), _arranged(w, found, order, p.sizes)), order)
    return found


def _chosen_early(w: Writer, p: MaskedProduct) -> Indexed:
    """Apply masks over summed variables: in the factors if that is safe, else to all products or by a run-time test."""
    order = _result_order(p)
    exposed = [f for f in p.factors if any(not m.labels <= f.labels for m in p.masks)]
    if not exposed or not dtypes.is_inexact(p.aval.dtype):
        return _in_factors(w, p)
    parts = sum(size_along(x.labels, p.sizes) for x in (*p.factors, *p.masks)) + size_along(order, p.sizes)
    if not limits.PRODUCTS.is_passed(size_along(_every(p), p.sizes), w.source, unit=parts):
        return Indexed(_whole(w, p), order)
    return Indexed(_if_finite(w, p, exposed), order)


def _every(p: MaskedProduct) -> Labels:
    none: Labels = frozenset()
    return none.union(*[x.labels for x in (*p.factors, *p.masks)])


def _result_order(p: MaskedProduct) -> Order:
    every = _every(p)
    return tuple([v for v in p.kept if v in every])


def _arranged(w: Writer, x: Indexed, order: Order, sizes: Sequence[int]) -> Atom:
    return arrange_axes(w, x.value, x.order, order, sizes)


def select_where(w: Writer, mask: Atom, x: Atom) -> Atom:
    """Select a value where a mask of its shape holds, else 0."""
    return w.write(e.select_n_p, mask, literal(0, x.aval), x)


# ---- contractions --------------------------------------------------------------------------------------------


def _contracted(w: Writer, p: MaskedProduct) -> Indexed:
    """Contract the factors in the cheapest order, without masks."""
    if not p.factors:
        return Indexed(literal(1, p.aval), ())
    tree, _ = order_contraction(tuple([f.labels for f in p.factors]), frozenset(p.kept), p.sizes)
    return _Contraction(w, p).joined(tree, frozenset(p.kept))


class _Contraction:
    """The lowering of a contraction tree to products and sums."""

    def __init__(self, w: Writer, p: MaskedProduct) -> None:
        self._w, self._factors, self._wanted, self._sizes = w, p.factors, p.kept, p.sizes
        self._precision = p.precision or _FULL

    def joined(self, tree: Tree, needed: Labels) -> Indexed:
        """Write the product of the factors of a tree, summed over the variables that are not in `needed`."""
        if isinstance(tree, int):
            return self._summed(self._factors[tree], needed)
        of_a, of_b = self._labels(tree[0]), self._labels(tree[1])
        a, b = self.joined(tree[0], needed | of_b), self.joined(tree[1], needed | of_a)
        over = [v for v in a.order if v in b.order and v not in needed]
        return self._contracted(a, b, over) if over else self._multiplied(a, b)

    def _labels(self, tree: Tree) -> Labels:
        if isinstance(tree, int):
            return self._factors[tree].labels
        return self._labels(tree[0]) | self._labels(tree[1])

    def _summed(self, x: Indexed, needed: Labels) -> Indexed:
        axes = tuple([d for d, v in enumerate(x.order) if v not in needed])
        if not axes:
            return x
        return Indexed(self._w.write(reduce_sum_p, x.value, axes=axes), tuple([v for v in x.order if v in needed]))

    def _contracted(self, a: Indexed, b: Indexed, over: Sequence[Variable]) -> Indexed:
        (x, of_x), (y, of_y) = (b, a) if self._is_second(a.order, b.order, over) else (a, b)
        batch = [v for v in of_x if v in of_y and v not in over]
        gone = {*over, *batch}
        order = (*batch, *[v for v in of_x if v not in gone], *[v for v in of_y if v not in gone])
        dims = tuple([tuple([tuple([own.index(v) for v in some]) for own in (of_x, of_y)]) for some in (over, batch)])
        params = {"dimension_numbers": dims, "precision": self._precision, "preferred_element_type": None}
        return Indexed(self._w.write(dot_general_p, x, y, **params), order)

    def _is_second(self, order: Order, other: Order, over: Sequence[Variable]) -> bool:
        """Tell whether the factor of axes `order` should be the second operand, to save transposes.

        It is if variables of the other alone come before its own in the result. If only one factor has variables of its
        own, that one comes first if it is summed over its last axes.
        """
        first, second = [[self._wanted.index(v) for v in p if v in self._wanted and v not in q]
                         for p, q in ((order, other), (other, order))]  # fmt: skip
        if first and second:
            return min(second) < min(first)
        long, short = (order, other) if len(order) >= len(other) else (other, order)
        own = [v for v in long if v in over or v not in short]
        return (long is order) == ({*own[: len(over)]} == {*over}) and len(own) > len(over)

    def _multiplied(self, a: Indexed, b: Indexed) -> Indexed:
        every = a.labels | b.labels
        first = a.order if len(a.order) >= len(b.order) else b.order
        known = [v for v in self._wanted if v in every]
        order = first if len(first) == len(every) else (*known, *sorted(every.difference(known)))
        x, y = [_arranged(self._w, z, order, self._sizes) if z.order else z.value for z in (a, b)]
        return Indexed(self._w.write(e.mul_p, x, y), order)


def _in_factors(w: Writer, p: MaskedProduct) -> Indexed:
    """Contract, with each mask as a select in all factors that have its variables, or else as a factor of 0 and 1.

    If `p` is not guarded, the mask is applied to the smallest such factor alone; there is one.
    """
    factors = list(p.factors)
    for mask in p.masks:
        having = [k for k, f in enumerate(factors) if mask.labels <= f.labels]
        if not p.guarded:
            having = [min(having, key=lambda k: size_along(factors[k].order, p.sizes))]
        for k in having:
            f = factors[k]
            factors[k] = Indexed(select_where(w, _arranged(w, mask, f.order, p.sizes), f.value), f.order)
        if not having:
            factors.append(Indexed(convert_type(w, mask.value, p.aval), mask.order))
    return _contracted(w, p._replace(factors=tuple(factors), masks=()))


# ---- products that are evaluated only where masks hold -------------------------------------------------------


def _whole(w: Writer, p: MaskedProduct) -> Atom:
    """Write the array of all products, select where the masks hold, and sum it."""
    kept = _result_order(p)
    order = (*kept, *sorted(_every(p).difference(kept)))
    one = Indexed(literal(1, p.aval), ())
    factors = [_arranged(w, f, order, p.sizes) for f in p.factors or (one,)]
    masks = [_arranged(w, m, order, p.sizes) for m in p.masks]
    products = reduce(lambda x, y: w.write(e.mul_p, x, y), factors)
    found = select_where(w, reduce(lambda x, y: w.write(and_p, x, y), masks), products)
    axes = tuple(range(len(kept), len(order)))
    return w.write(reduce_sum_p, found, axes=axes) if axes else found


def _if_finite(w: Writer, p: MaskedProduct, exposed: Sequence[Indexed]) -> Atom:
    """Write a conditional: the contraction if all `exposed` factors are finite, else a loop over selected products."""
    finite = reduce(lambda x, y: w.write(and_p, x, y), [_all_finite(w, f.value) for f in exposed])
    operands = tuple([x.value for x in (*p.factors, *p.masks)])
    slow = _program(p, operands, lambda inner, q: _one_by_one(inner, q))
    order = _result_order(p)
    fast = _program(p, operands, lambda inner, q: _arranged(inner, _in_factors(inner, q), order, q.sizes))
    return _applied(w, cond_p, (finite, *operands), {"branches": (slow, fast)}, fast.out_avals[0])


def _all_finite(w: Writer, x: Atom) -> Atom:
    parts = [w.write(p, x) for p in (e.real_p, e.imag_p)] if dtypes.is_complex(x.aval.dtype) else [x]
    each = [w.write(e.is_finite_p, part) for part in parts]
    every = [w.write(reduce_and_p, x, axes=tuple(range(x.aval.ndim))) if x.aval.shape else x for x in each]
    return reduce(lambda x, y: w.write(and_p, x, y), every)


def _program(p: MaskedProduct, operands: Sequence[Atom], write: Callable[[Writer, MaskedProduct], Atom]) -> Jaxpr:
    """Build the program that `write` writes for the product of its inputs: factors, then masks."""
    inputs = [Var(x.aval) for x in operands]
    inner, n = Writer(Jaxpr(inputs, [], [], "product")), len(p.factors)
    given = [Indexed(v, x.order) for v, x in zip(inputs, (*p.factors, *p.masks), strict=True)]
    out = write(inner, p._replace(factors=tuple(given[:n]), masks=tuple(given[n:])))
    return Jaxpr(inputs, inner.eqns, [out], "product")


def _applied(w: Writer, primitive: Any, operands: Sequence[Atom], params: Any, aval: ShapedArray) -> Atom:
    out = Var(aval, any(x.linear for x in operands))
    w.keep(Equation(primitive, operands, params, [out], w.source))
    return out


def _one_by_one(w: Writer, p: MaskedProduct) -> Atom:
    """Write a scan over the largest summed variable, whose steps add up selected products."""
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
    groups = [(CONST, len(fixed)), (CARRY, 1), (EACH, len(moving))]
    params = scan_params(in_groups(body, groups, [(CARRY, 1)]), range(p.sizes[v]))
    values = [*[operands[k] for k in fixed], fill_array(w, 0, total.aval), *[operands[k] for k in moving]]
    return _applied(w, scan_p, values, params, total.aval)


def _first(w: Writer, x: Indexed, v: Variable) -> Atom:
    """Transpose a value so that the axis of a variable comes first."""
    at = x.order.index(v)
    others = [d for d in range(len(x.order)) if d != at]
    return w.write(transpose_p, x.value, permutation=(at, *others)) if at else x.value
