"""Share contractions: x @ (w * v), with v along the columns of w, is (x @ w) * v where the program has x @ w, too.

Search terms: common subexpression elimination, strength reduction. A first and a second derivative of one network
contract the same arrays, which the second has scaled. Scaling the smaller array before is less work (`terms/plan.py`),
but if the product is there, scaling it is all that is left. So it is done when all contractions are written: the
product may be of another derivative. The licence to do so is that of `fusion/licence.py`; results differ by rounding.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tapeless.interpreters.index_rows import rows
from tapeless.interpreters.simplifications.common_subexpressions import FENCES, key_of
from tapeless.interpreters.simplifications.fusion.licence import sums_in_any_order
from tapeless.tracer import core, passes
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr, Var, effects, map_carried
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.elementwise import mul_p
from tapeless.tracer.primitives.shape import broadcast_in_dim_p


@core.memoize_by_program
def with_shared_products(jaxpr: Jaxpr) -> Jaxpr:
    """Replace contractions of scaled arrays, here and in bodies; return the same object if there are none to share."""
    if dot_general_p not in jaxpr.primitives and not jaxpr.programs:
        return jaxpr
    shared, eqns = _shared(jaxpr), list[Equation]()
    for eqn in jaxpr.eqns:
        if eqn in shared:
            eqns += _written(eqn, shared[eqn])
        else:
            params = map_carried(with_shared_products, eqn)
            eqns.append(eqn if params is eqn.params else eqn.replace(params=params))
    if all(old is new for old, new in zip(jaxpr.eqns, eqns)):
        return jaxpr
    after = jaxpr.replace(eqns=eqns)
    return with_shared_products(passes.dead_code(after)) if shared else after  # another factor may be left


class _Factored(NamedTuple):
    """The operands of a contraction without a factor of one of them; the factor, and its axes in the result."""

    operands: tuple[Atom, Atom]
    factor: Var
    dims: tuple[int, ...]


def _shared(jaxpr: Jaxpr) -> dict[Equation, _Factored]:
    """Find the contractions of scaled arrays whose product without the factor the program has."""
    products = [eqn for eqn in jaxpr.eqns if eqn.primitive is dot_general_p]
    alike = Counter(map(_types, products))
    several = [eqn for eqn in products if alike[_types(eqn)] > 1]
    if not several:
        return {}
    made = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    scaled = [(eqn, each) for eqn in several for side in (0, 1) for each in _without_factor(made, eqn, side)]
    if not scaled:
        return {}
    first = _first_of_equal(jaxpr)
    known = {_key(eqn, eqn.invars, first) for eqn in products}
    return {eqn: each for eqn, each in scaled if _key(eqn, each.operands, first) in known}


def _types(eqn: Equation) -> Any:
    return (*[v.aval for v in eqn.invars], eqn.params["dimension_numbers"])


def _key(eqn: Equation, operands: Sequence[Atom], first: Mapping[Atom, Atom]) -> Any:
    return key_of(eqn.primitive, [first.get(v, v) for v in operands], eqn.params)


def _first_of_equal(jaxpr: Jaxpr) -> dict[Atom, Atom]:
    """Map each value to the first that is computed alike; values of fences and of effects stay apart."""
    first, found = dict[Atom, Atom](), dict[Any, Equation]()
    for eqn in jaxpr.eqns:
        if eqn.primitive in rows and eqn.primitive not in FENCES and not effects(eqn):
            first.update(zip(eqn.outvars, found.setdefault(_key(eqn, eqn.invars, first), eqn).outvars))
    return first


def _without_factor(made: Mapping[Var, Equation], eqn: Equation, side: int) -> list[_Factored]:
    """List the ways to take a factor, a broadcast along axes that stay, out of one operand of a contraction."""
    over, batch = eqn.params["dimension_numbers"]
    x, (out,) = eqn.invars[side], eqn.outvars
    scaling = made.get(x)  # type: ignore[arg-type]  # which no literal is in
    if scaling is None or scaling.primitive is not mul_p or out.aval.dtype != x.aval.dtype:
        return []
    kept = [axis for axis in range(x.aval.ndim) if axis not in over[side] + batch[side]]
    before = out.aval.ndim - len(kept) if side else len(batch[0])
    found: list[_Factored] = []
    for spread, rest in (scaling.invars, scaling.invars[::-1]):
        by = made.get(spread)  # type: ignore[arg-type]
        if by is None or by.primitive is not broadcast_in_dim_p or type(by.invars[0]) is not Var:
            continue
        dims = by.params["dims"]
        if dims and {*dims} <= {*kept} and rest.aval is x.aval and sums_in_any_order(x.aval.dtype):
            operands = (eqn.invars[0], rest) if side else (rest, eqn.invars[1])
            found.append(_Factored(operands, by.invars[0], tuple([before + kept.index(d) for d in dims])))
    return found


def _written(eqn: Equation, scaled: _Factored) -> list[Equation]:
    """Write the product without the factor, which XLA merges with the equal one, and multiply it."""
    eqns: list[Equation] = []

    def write(primitive: Primitive, *operands: Atom, **params: Any) -> Var:
        (aval,) = primitive.type(tuple([v.aval for v in operands]), params)
        out = Var(aval, any(v.linear for v in operands))
        eqns.append(Equation(primitive, operands, params, [out], eqn.source))
        return out

    (out,) = eqn.outvars
    product = write(dot_general_p, *scaled.operands, **eqn.params)
    factor = write(broadcast_in_dim_p, scaled.factor, shape=out.aval.shape, dims=scaled.dims)
    return [*eqns, Equation(mul_p, [product, factor], {}, [out], eqn.source)]
