"""Elementwise operations: neutral elements, what undoes itself, and broadcasts kept until they are needed.

Signs of zeros count: x + 0.0 is x for all x but -0.0, so only -0.0 is neutral; in linear programs both are, for there
a zero has no sign to speak of. There a zero factor makes zero, too: the other factor is a tangent, not infinity.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.interpreters import residual_provenance, simplify
from tapeless.interpreters.simplifications.constants import is_zero, number
from tapeless.interpreters.simplify import Writer, filled, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray

Rule = Callable[..., Any]


def _spread(w: Writer, x: Atom, shape: tuple[int, ...]) -> Atom:
    """A scalar as it is in a result of this shape."""
    return x if x.aval.shape == shape else w.write(broadcast_in_dim_p, x, shape=shape, dims=())


def _like(w: Writer, x: Atom, *others: Atom) -> Atom | None:
    """x, in the shape of what it makes with others; None if the type would be another."""
    aval = e.add_p.type(tuple([v.aval for v in (x, *others)]), {})[0] if x.aval.dtype != bool else None
    if aval is None or aval.weak_type != x.aval.weak_type:
        return None
    return _spread(w, x, aval.shape)


# ---- broadcasts ----------------------------------------------------------------------------------------------


def _later(primitive: Primitive, w: Writer, operands: tuple[Atom, ...], params: dict[str, Any]) -> Atom | None:
    """Operands that are all broadcast alike are combined before; one that is a scalar everywhere stays a scalar."""
    made = [w.made_by(x, broadcast_in_dim_p) for x in operands]
    if not any(made):
        return None
    arrays = [k for k, x in enumerate(operands) if x.aval.shape]
    small = [eqn.invars[0] if eqn is not None else x for eqn, x in zip(made, operands)]
    if all(made[k] is not None for k in arrays):
        forms = {(made[k].params["dims"], small[k].aval.shape) for k in arrays if small[k].aval.shape}  # type: ignore[union-attr]
        if len(forms) <= 1:
            dims = next(iter(forms))[0] if forms else ()
            (of_all,) = primitive.type(tuple([x.aval for x in operands]), params)
            return w.write(broadcast_in_dim_p, w.write(primitive, *small, **params), shape=of_all.shape, dims=dims)
    scalars = [k for k in arrays if made[k] is not None and not small[k].aval.shape]
    if not scalars:
        return None
    return w.write(primitive, *[small[k] if k in scalars else x for k, x in enumerate(operands)], **params)


def _rule(primitive: Primitive, first: Rule | None = None) -> None:
    """The rule of an elementwise operation: its own, then that for broadcast operands."""

    def rule(w: Writer, *operands: Atom, **params: Any) -> Atom | None:
        found = first(w, *operands, **params) if first else None
        return found if found is not None else _later(primitive, w, operands, params)

    simplify.rules[primitive] = rule


# ---- neutral elements ----------------------------------------------------------------------------------------


def _mul(w: Writer, x: Atom, y: Atom) -> Atom | None:
    for a, b in ((x, y), (y, x)):
        known = number(w, a)
        if known is None:
            continue
        if known == 1:
            return _like(w, b, a)
        if type(b) is Literal and type(a) is Literal and not b.aval.shape:
            return _folded(np.multiply, a, b)
        if known == 0 and b.linear:
            return filled(w, 0, e.mul_p.type((x.aval, y.aval), {})[0])
    return None


def _folded(f: Any, *xs: Literal) -> Literal:
    """What an operation makes of numbers, in their dtype."""
    (aval,) = e.mul_p.type(tuple([x.aval for x in xs]), {})
    with np.errstate(all="ignore"):
        return literal(f(*[np.asarray(x.value) for x in xs]), aval)


def _div(w: Writer, x: Atom, y: Atom) -> Atom | None:
    known = number(w, y)
    return _like(w, x, y) if known is not None and known == 1 else None


def _negligible(w: Writer, x: Atom, negative: bool) -> bool:
    """Whether x is the zero that adding changes nothing by: -0.0, in linear programs any."""
    known = number(w, x)
    if known is None or known.any():
        return False
    return w.linear or known.dtype.kind in "iu" or (known.dtype.kind == "f" and bool(np.signbit(known)) == negative)


def _add(w: Writer, x: Atom, y: Atom) -> Atom | None:
    if _negligible(w, y, negative=True):
        return _like(w, x, y)
    return _like(w, y, x) if _negligible(w, x, negative=True) else None


def _sub(w: Writer, x: Atom, y: Atom) -> Atom | None:
    return _like(w, x, y) if _negligible(w, y, negative=False) else None


def _neg(w: Writer, x: Atom) -> Atom | None:
    if type(x) is Literal and not x.aval.shape and x.aval.dtype.kind in "fciu":
        return _folded(np.negative, x)
    before = w.made_by(x, e.neg_p)
    return before.invars[0] if before is not None else None


def _integer_pow(w: Writer, x: Atom, *, y: int) -> Atom | None:
    return x if y == 1 else None


def _convert(w: Writer, x: Atom, *, dtype: Any, weak_type: bool) -> Atom | None:
    if x.aval.dtype == dtype and x.aval.weak_type == weak_type:
        return x
    if type(x) is Literal and not x.aval.shape:
        return _converted(x, x.aval.update(dtype=dtype, weak_type=weak_type))
    before = w.made_by(x, e.convert_element_type_p)
    if before is not None and before.invars[0].aval.dtype == bool:  # ones and zeros are the same in all dtypes
        return w.write(e.convert_element_type_p, before.invars[0], dtype=dtype, weak_type=weak_type)
    return None


def _converted(x: Literal, aval: ShapedArray) -> Literal | None:
    """A number in another dtype, if it is one of that."""
    value = np.asarray(x.value)
    if "c" in (value.dtype.kind, aval.dtype.kind):
        return None
    with np.errstate(all="ignore"):
        there = value.astype(aval.dtype)
        back = there.astype(value.dtype)
    return literal(there, aval) if back == value else None


def _select_n(w: Writer, which: Atom, *cases: Atom) -> Atom | None:
    """Cases that are one value, or equal numbers."""
    (aval,) = e.select_n_p.type((which.aval, *[x.aval for x in cases]), {})
    first = cases[0]
    if all(x is first for x in cases):
        return _fitting(w, first, aval)
    known = [number(w, x) for x in cases]
    if all(k is not None and k.tobytes() == known[0].tobytes() for k in known):
        return filled(w, known[0], aval)
    if w.linear and all(is_zero(w, x) for x in cases):
        return filled(w, 0, aval)
    return None


def _fitting(w: Writer, x: Atom, aval: ShapedArray) -> Atom | None:
    return _spread(w, x, aval.shape) if x.aval.weak_type == aval.weak_type else None


_OWN = {
    e.mul_p: _mul,
    e.div_p: _div,
    e.add_p: _add,
    e.sub_p: _sub,
    e.neg_p: _neg,
    e.integer_pow_p: _integer_pow,
    e.convert_element_type_p: _convert,
    e.select_n_p: _select_n,
}
# A copy is memory of its own.
_APART = (e.copy_p,)

operations = tuple(p for p in vars(e).values() if isinstance(p, Primitive) and p is not e.clamp_p)
for _primitive in operations:
    if _primitive not in _APART:
        _rule(_primitive, _OWN.get(_primitive))
        if _primitive not in (e.integer_pow_p, e.convert_element_type_p, e.select_n_p):
            simplify.looks_at[_primitive] = frozenset((broadcast_in_dim_p, e.neg_p))

# What is cheap to do again to values that are mostly repetition.
for _primitive in (e.neg_p, e.add_p, e.sub_p, e.mul_p, e.convert_element_type_p, e.select_n_p, e.eq_p):
    residual_provenance.spreading[_primitive] = False
