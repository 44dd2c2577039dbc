"""Rules of factoring, by primitive: the products that a result is a sum of, and why to follow it."""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters.simplifications.constants import is_zero
from tapeless.interpreters.simplifications.einsum import factoring
from tapeless.interpreters.simplifications.einsum.factoring import Kind, Search
from tapeless.interpreters.simplifications.einsum.indices import Equal, Indices
from tapeless.interpreters.simplifications.einsum.plans import Labels, Product
from tapeless.interpreters.simplifications.slicing.positions import position
from tapeless.interpreters.simplifications.slicing.views import reshape_groups
from tapeless.tracer import dtypes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Literal, Var
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.operands import without
from tapeless.tracer.primitives.reduction import reduce_sum_p

Kinds = Sequence[Kind | None]


def _follow(primitive: Primitive, rule: Any, kind: Any) -> None:
    factoring.rules[primitive], factoring.kinds[primitive] = rule, kind


def _same(eqn: Equation, kinds: Kinds) -> Kind | None:
    return kinds[0]


def _is_left(products: Sequence[Product], x: Atom) -> bool:
    """Tell whether a value was not taken apart."""
    return len(products) == 1 and [f.value for f in products[0].factors] == [x]


# ---- what is repeated, permuted and reshaped -----------------------------------------------------------------


def _broadcast(search: Search, eqn: Equation, labels: Labels) -> list[Product]:
    (x,), shape = eqn.invars, eqn.params["shape"]
    inner = [labels[d] if n == shape[d] else None for d, n in zip(eqn.params["dims"], x.aval.shape)]
    search.structured = True
    return search.expand(x, tuple(inner))


def _kind_of_broadcast(eqn: Equation, kinds: Kinds) -> Kind:
    return kinds[0] if kinds[0] in (Kind.INDEX, Kind.DIAGONAL) else Kind.SPREAD


def _transpose(search: Search, eqn: Equation, labels: Labels) -> list[Product]:
    permutation = eqn.params["permutation"]
    return search.expand(eqn.invars[0], tuple([labels[permutation.index(d)] for d in range(len(labels))]))


def _reshape(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    (x,), inner = eqn.invars, list[int]()
    for before, after in reshape_groups(x.aval.shape, eqn.params["shape"]):
        found = search.regrouped(x.aval.shape[before], labels[after])
        if found is None:
            return None
        inner += found
    products = search.expand(x, tuple(inner))
    return None if _is_left(products, x) else products


_follow(s.broadcast_in_dim_p, _broadcast, _kind_of_broadcast)
_follow(s.transpose_p, _transpose, _same)
_follow(s.reshape_p, _reshape, _same)

# ---- parts, and zeros around ---------------------------------------------------------------------------------


def _moved(search: Search, x: Atom, shifts: Sequence[int], labels: Labels) -> list[Product]:
    """[i = k + shift] x of k, summed over k, for each index i of which not all is that of x."""
    inner, equal = list(labels), list[Equal]()
    for d, (i, n, shift) in enumerate(zip(labels, x.aval.shape, shifts)):
        if n != search.sizes[i] or shift:
            (inner[d],) = search.labels([n])
            equal.append(Equal(i, inner[d], shift))
    mask = Product((), frozenset([k for _, k, _ in equal]), tuple(equal))
    return [mask.times(p) for p in search.expand(x, tuple(inner))]


def _slice(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    if any(n != 1 for n in eqn.params["strides"]):
        return None
    found = _moved(search, eqn.invars[0], [-start for start in eqn.params["start_indices"]], labels)
    return None if _is_left(found, eqn.invars[0]) else found


def _pad(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    (x, value), config = eqn.invars, eqn.params["padding_config"]
    if not is_zero(search.w, value) or any(between for _, _, between in config):
        return None
    mostly = _is_mostly_zeros(eqn)
    search.structured |= mostly
    found = _moved(search, x, [before for before, _, _ in config], labels)
    return None if _is_left(found, x) and not mostly else found


def _is_mostly_zeros(eqn: Equation) -> bool:
    """Tell whether a pad adds at least as many elements as its operand has."""
    return 2 * eqn.invars[0].aval.size <= eqn.outvars[0].aval.size


def _concatenate(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """The sum of the operands, each with zeros around."""
    axis, start, products, whole = eqn.params["dimension"], 0, list[Product](), True
    for x in eqn.invars:
        if is_zero(search.w, x):
            search.structured, whole = True, False
        else:
            found = _moved(search, x, [start if d == axis else 0 for d in range(x.aval.ndim)], labels)
            whole &= _is_left(found, x)
            products += found
        start += x.aval.shape[axis]
    return None if whole else products


_follow(s.slice_p, _slice, _same)
_follow(s.pad_p, _pad, lambda eqn, kinds: Kind.SPREAD if _is_mostly_zeros(eqn) else kinds[0])
_follow(s.concatenate_p, _concatenate, lambda eqn, kinds: Kind.SPREAD if Kind.SPREAD in kinds else None)

# ---- products and sums ---------------------------------------------------------------------------------------


def _mul(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    search.cost += eqn.outvars[0].aval.size
    sides = [search.expand(x, labels if x.aval.shape else ()) for x in eqn.invars]
    if all(len(side) > 1 for side in sides) or _is_opaque(sides, eqn):
        return None
    return [a.times(b) for a in sides[0] for b in sides[1]]


def _is_opaque(sides: Sequence[list[Product]], eqn: Equation) -> bool:
    """Tell whether a product is of two whole arrays: then it is better left alone."""
    return all(x.aval.shape and _is_left(side, x) for side, x in zip(sides, eqn.invars))


def _kind_of_product(eqn: Equation, kinds: Kinds) -> Kind | None:
    scalar = any(type(x) is Var and not x.aval.shape for x in eqn.invars) and eqn.outvars[0].aval.shape
    return Kind.SPREAD if Kind.SPREAD in kinds or scalar else None


def _neg(search: Search, eqn: Equation, labels: Labels) -> list[Product]:
    search.cost += eqn.outvars[0].aval.size
    return [p._replace(negative=not p.negative) for p in search.expand(eqn.invars[0], labels)]


def _add(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """A sum is distributed over, if every addend has factors that lack an index."""
    (out,) = [v.aval for v in eqn.outvars]
    search.cost += out.size
    if any(x.aval.shape != out.shape for x in eqn.invars):
        return None
    left, right = [search.expand(x, labels) for x in eqn.invars]
    if not all(_is_sparse(search, p, labels) for p in (*left, *right)):
        return None
    exact = not search.w.linear and dtypes.is_inexact(out.dtype) and _has_exact(left) and _has_exact(right)
    if exact and not all(_are_apart(search, p, q) for p in left for q in right):
        return None
    negative = eqn.primitive is e.sub_p
    return [*left, *[p._replace(negative=p.negative != negative) for p in right]]


def _is_sparse(search: Search, p: Product, labels: Labels) -> bool:
    return bool(p.equal) or all(set(search.parts(f.labels)) != set(search.parts(labels)) for f in p.factors)


def _has_exact(side: Sequence[Product]) -> bool:
    """Tell whether an addend was not rounded: with another it may cancel to what rounded sums of each would drown."""
    return any(sum(type(f.value) is Var for f in p.factors) < 2 for p in side)


def _are_apart(search: Search, p: Product, q: Product) -> bool:
    """Tell whether no element is one of both products: they are on diagonals that are not the same."""
    return Indices(search.sizes, p.summed | q.summed, p.equal + q.equal).is_empty


def _kind_of_sum(eqn: Equation, kinds: Kinds) -> Kind | None:
    if Kind.INDEX in kinds and any(type(x) is Literal for x in eqn.invars):
        return Kind.INDEX
    return Kind.SPREAD if all(kind is Kind.SPREAD for kind in kinds) else None


_follow(e.mul_p, _mul, _kind_of_product)
_follow(e.neg_p, _neg, _same)
_follow(e.add_p, _add, _kind_of_sum)
_follow(e.sub_p, _add, _kind_of_sum)

# ---- masks of diagonals --------------------------------------------------------------------------------------


def _mask(search: Search, mask: Atom, labels: tuple[int | None, ...]) -> Product | None:
    """Read a mask `i == j + c` or `i == c` as a constraint on indices, a product without factors; else None."""
    eqn = search.w.made_by(mask, s.broadcast_in_dim_p)
    if eqn is not None:
        (x,), shape, dims = eqn.invars, eqn.params["shape"], eqn.params["dims"]
        return _mask(search, x, tuple([labels[d] if n == shape[d] else None for n, d in zip(x.aval.shape, dims)]))
    eqn = search.w.made_by(mask, e.eq_p)
    one, other = [position(search.w, x) for x in eqn.invars] if eqn is not None else (None, None)
    if one is None or other is None or one.axis == other.axis:
        return None
    constant = search.labels([1] if None in (one.axis, other.axis) else [])
    i, j = [constant[0] if p.axis is None else labels[p.axis] for p in (one, other)]
    if i is None or j is None:
        return None
    search.structured = True
    return Product((), frozenset(constant), (Equal(i, j, other.start - one.start),))


def _select(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """[i = j] x."""
    which, *cases = eqn.invars
    mask = _mask(search, which, labels) if len(cases) == 2 and is_zero(search.w, cases[0]) else None
    if mask is None:
        return None
    search.cost += eqn.outvars[0].aval.size
    return [mask.times(p) for p in search.expand(cases[1], labels if cases[1].aval.shape else ())]


def _convert(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    """Expand a mask converted to numbers, or a conversion that loses no precision."""
    (x,), to = eqn.invars, eqn.outvars[0].aval
    if x.aval.dtype == bool:
        mask = _mask(search, x, labels)
        return None if mask is None else [mask]
    if not dtypes.is_inexact(x.aval.dtype) or not dtypes.can_cast(x.aval.dtype, to.dtype):
        return None
    products = search.expand(x, labels)
    if _is_left(products, x) or any(len(p.factors) > 1 for p in products):
        return None
    how = {"dtype": to.dtype, "weak_type": to.weak_type}
    for k, p in enumerate(products):
        wider = [f._replace(value=search.w.write(e.convert_element_type_p, f.value, **how)) for f in p.factors]
        products[k] = p._replace(factors=tuple(wider))
    return products


def _kind_of_mask(eqn: Equation, kinds: Kinds) -> Kind | None:
    positions = [kind is Kind.INDEX or type(x) is Literal for kind, x in zip(kinds, eqn.invars)]
    return Kind.DIAGONAL if all(positions) else None


def _kind_of_masked(eqn: Equation, kinds: Kinds) -> Kind | None:
    return Kind.SPREAD if kinds[0] is Kind.DIAGONAL else None


def _kind_of_converted(eqn: Equation, kinds: Kinds) -> Kind | None:
    return Kind.SPREAD if kinds[0] in (Kind.DIAGONAL, Kind.SPREAD) else None


factoring.kinds[s.iota_p] = lambda eqn, kinds: Kind.INDEX
factoring.kinds[e.eq_p] = _kind_of_mask
_follow(e.select_n_p, _select, _kind_of_masked)
_follow(e.convert_element_type_p, _convert, _kind_of_converted)

# ---- sums of products ----------------------------------------------------------------------------------------


def _reduce_sum(search: Search, eqn: Equation, labels: Labels) -> list[Product]:
    (x,), axes = eqn.invars, eqn.params["axes"]
    search.cost += x.aval.size
    kept = iter(labels)
    new = iter(search.labels([x.aval.shape[a] for a in axes]))
    every = tuple([next(new) if d in axes else next(kept) for d in range(x.aval.ndim)])
    return [p.over([every[a] for a in axes]) for p in search.expand(x, every)]


def _dot_general(search: Search, eqn: Equation, labels: Labels) -> list[Product] | None:
    (x, y), params = eqn.invars, eqn.params
    if params["preferred_element_type"] is not None or search.precision not in (None, params["precision"]):
        return None
    search.precision = params["precision"]
    search.structured |= eqn is not search.root
    (cx, cy), (bx, by) = params["dimension_numbers"]
    contracted = search.labels([x.aval.shape[a] for a in cx])
    search.cost += search.size(labels) * search.size(contracted)
    own_x, own_y = [_arranged(z, c, b) for z, c, b in ((x, cx, bx), (y, cy, by))]
    batch, rest = labels[: len(bx)], labels[len(bx) :]
    at = x.aval.ndim - len(cx) - len(bx)
    sides = [
        search.expand(z, tuple([(*batch, *free, *contracted)[k] for k in own]))
        for z, free, own in ((x, rest[:at], own_x), (y, rest[at:], own_y))
    ]
    if all(len(side) > 1 for side in sides):
        return None
    return [a.times(b).over(contracted) for a in sides[0] for b in sides[1]]


def _arranged(x: Atom, contracted: Sequence[int], batch: Sequence[int]) -> list[int]:
    """Order the axes as batch, free, contracted; return each axis's position."""
    free = without(range(x.aval.ndim), (*contracted, *batch))
    return [(*batch, *free, *contracted).index(d) for d in range(x.aval.ndim)]


for _primitive, _rule in ((reduce_sum_p, _reduce_sum), (dot_general_p, _dot_general)):
    _follow(_primitive, _rule, lambda eqn, kinds: Kind.SUM)
    factoring.roots[_primitive] = None
