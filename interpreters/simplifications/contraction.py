"""Contractions: with a scalar, and of zeros."""

from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.constants import filled, is_zero
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.elementwise import mul_p


def _dot_general(w: Writer, x: Atom, y: Atom, *, preferred_element_type: Any, **params: Any) -> Atom | None:
    if x.aval.shape and y.aval.shape and not (w.linear and (is_zero(w, x) or is_zero(w, y))):
        return None
    (aval,) = dot_general_p.type((x.aval, y.aval), {"preferred_element_type": preferred_element_type, **params})
    if w.linear and any(is_zero(w, v) and other.linear for v, other in ((x, y), (y, x))):
        return filled(w, 0, aval)
    if aval.dtype == x.aval.dtype and not (x.aval.shape and y.aval.shape):
        return w.write(mul_p, x, y)
    return None


simplify.rules[dot_general_p] = _dot_general
