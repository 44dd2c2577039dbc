"""Constant folding of elementwise operations, and sinking of broadcasts below them. Rows of rewrites.py name these."""

from typing import Any, Final

import numpy as np

from tapeless.interpreters.simplifications.constants import is_zero, number, spread
from tapeless.interpreters.writer import Writer, filled, literal
from tapeless.tracer.core import Primitive
from tapeless.tracer.jaxpr import Atom, Literal
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import broadcast_in_dim_p
from tapeless.tracer.types import ShapedArray

operations: Final = tuple(p for p in vars(e).values() if isinstance(p, Primitive) and p is not e.clamp_p)


def before_broadcasts(
    primitive: Primitive, w: Writer, operands: tuple[Atom, ...], params: dict[str, Any]
) -> Atom | None:
    """Apply an elementwise primitive before the broadcasts of its operands; None if nothing can be gained.

    Operands that are all broadcast alike are combined first, and the result is broadcast. Else broadcast scalars become
    scalar operands.
    """
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


# ---- functions of rewrites -----------------------------------------------------------------------------------


def product(w: Writer, aval: ShapedArray, m: Literal, n: Literal) -> Atom:
    """Multiply two literals in their dtype, to a literal of type `aval`."""
    with np.errstate(all="ignore"):
        return literal(np.multiply(m.value, n.value), aval)


def negative(w: Writer, aval: ShapedArray, n: Literal) -> Atom | None:
    """Negate a literal; None if its dtype is none of NumPy's own numeric dtypes."""
    if aval.dtype.kind not in "fciu":
        return None
    with np.errstate(all="ignore"):
        return literal(np.negative(n.value), aval)


def equality(w: Writer, aval: ShapedArray, m: Literal, n: Literal) -> Atom:
    """Compare two literals for equality, as a literal of type `aval`."""
    return literal(np.equal(m.value, n.value), aval)


def has_type(x: Atom, dtype: Any, weak_type: bool) -> bool:
    """Tell whether a value has this dtype and weakness, so that converting it changes nothing."""
    return x.aval.dtype == dtype and x.aval.weak_type == weak_type


def is_boolean(x: Atom) -> bool:
    """Tell whether a value has boolean elements."""
    return x.aval.dtype == bool


def in_dtype(w: Writer, aval: ShapedArray, n: Literal) -> Literal | None:
    """Convert a literal to the dtype of `aval`; None if that is not exact, or either dtype is complex."""
    value = np.asarray(n.value)
    if "c" in (value.dtype.kind, aval.dtype.kind):
        return None
    with np.errstate(all="ignore"):
        there = value.astype(aval.dtype)
        back = there.astype(value.dtype)
    return literal(there, aval) if back == value else None


def only_case(w: Writer, aval: ShapedArray, cases: tuple[Atom, ...]) -> Atom | None:
    """Return the value that `select_n` gives if all cases are one value or equal numbers, else None."""
    first = cases[0]
    if all(x is first for x in cases):
        return spread(w, first, aval)
    known = [number(w, x) for x in cases]
    if all(k is not None and k.tobytes() == known[0].tobytes() for k in known):
        return filled(w, known[0], aval)
    return None


def no_case(w: Writer, aval: ShapedArray, cases: tuple[Atom, ...]) -> Atom | None:
    """Return zeros if all cases of a select are zeros, of either sign; else None."""
    return filled(w, 0, aval) if all(is_zero(w, x) for x in cases) else None


def products_of_cases(w: Writer, aval: ShapedArray, p: Atom, x: tuple[Atom, ...], n: Literal) -> Atom | None:
    """Select by `p` among the products of the cases and `n`; None unless each case is one number."""
    return _computed_cases(w, aval, p, np.multiply, x, (n,) * len(x))


def sums_of_cases(w: Writer, aval: ShapedArray, p: Atom, x: tuple[Atom, ...], y: tuple[Atom, ...]) -> Atom | None:
    """Select by `p` among the sums of the cases of two selects; None unless each case is one number."""
    return _computed_cases(w, aval, p, np.add, x, y)


def _computed_cases(
    w: Writer, aval: ShapedArray, p: Atom, compute: Any, x: tuple[Atom, ...], y: tuple[Atom, ...]
) -> Atom | None:
    """Select among the results of `compute`, folded for each pair of cases; None unless each case is one number."""
    pairs = [(number(w, a), number(w, b)) for a, b in zip(x, y)]
    if any(a is None or b is None for a, b in pairs):
        return None
    with np.errstate(all="ignore"):
        found = [literal(compute(a, b), aval) for a, b in pairs]
    return w.write(e.select_n_p, p, *[filled(w, c.value, aval) for c in found])
