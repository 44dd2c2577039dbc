"""Masks before products (brackets): [p] (x y) is ([p] x) y, where p is a mask of 1 and 0 and nothing else reads x y.

It is no more work, and less where the mask is known: then only what it leaves is multiplied by y.
"""

from collections.abc import Mapping
from typing import Any

from tapeless.interpreters.simplify import Writer, uses
from tapeless.tracer.jaxpr import Atom, Jaxpr
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives.shape import broadcast_in_dim_p, transpose_p

_MOVES = (broadcast_in_dim_p, transpose_p)


def mask_factors(jaxpr: Jaxpr) -> Jaxpr:
    """Multiply a factor by the mask that multiplies a product; the same object if there is none."""
    masks = _masks(jaxpr)
    if not masks:
        return jaxpr
    w, counts = Writer(jaxpr), uses(jaxpr)
    for eqn in jaxpr.eqns:
        now = w.renamed(eqn)
        sides = [v for v in eqn.invars if v not in masks] if eqn.primitive is e.mul_p else []
        if len(sides) == 1:
            w.place = eqn.source
            x = w.now(sides[0])
            (mask,) = [v for v in now.invars if v is not x]
            found = _bracketed(w, counts, mask, x)
            if found is not None and w.replace(eqn, found):
                continue
        w.keep(now)
    return w.finish()


def _masks(jaxpr: Jaxpr) -> set[Any]:
    """Find the variables that are masks converted to numbers, 1 and 0."""
    found: set[Any] = set()
    for eqn in jaxpr.eqns if e.convert_element_type_p in jaxpr.primitives else ():
        converted = eqn.primitive is e.convert_element_type_p and eqn.invars[0].aval.dtype == bool
        if converted or (eqn.primitive in _MOVES and eqn.invars[0] in found):
            found.add(eqn.outvars[0])
    return found


def _bracketed(w: Writer, counts: Mapping[Any, int], mask: Atom, x: Atom) -> Atom | None:
    """[mask] x, if x is a product that is read here alone."""
    eqn = w.made_by(x, e.mul_p)
    if eqn is None or counts.get(x) != 1 or x.aval.shape != mask.aval.shape:
        return None
    one, other = sorted(eqn.invars, key=lambda v: v.aval.ndim, reverse=True)
    inner = _bracketed(w, counts, mask, one)
    return w.write(e.mul_p, w.write(e.mul_p, mask, one) if inner is None else inner, other)
