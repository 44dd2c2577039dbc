"""How contractions transform: linear in each operand."""

from typing import Any

from tapeless.interpreters import jvp, transpose
from tapeless.interpreters.transpose import is_linear
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.shape import transpose as permute
from tapeless.tracer.types import aval_of


def _dot_general_transpose(cts: Any, x: Any, y: Any, *, dims: c.Dims, preferred_element_type: Any) -> Any:
    if is_linear(x) and is_linear(y):
        raise transpose.not_linear(c.dot_general_p, "it multiplies two values that are both linear (bilinear)")
    (cx, cy), (bx, by) = dims
    if is_linear(x):
        return _pull(cts[0], x.aval, y, cx, cy, bx, by, swapped=False), None
    return None, _pull(cts[0], y.aval, x, cy, cx, by, bx, swapped=True)


def _pull(ct: Any, aval: Any, other: Any, ca: Any, co: Any, ba: Any, bo: Any, *, swapped: bool) -> Any:
    """Cotangent of the operand of type `aval`: ct contracted with `other` over the axes that only `other` has.

    ct is [batch, free of x, free of y]; the product comes out as [batch, free of aval, contracted in `other`'s order].
    """
    free_a = [i for i in range(aval.ndim) if i not in ca and i not in ba]
    free_o = [i for i in range(aval_of(other).ndim) if i not in co and i not in bo]
    first = len(ba) if swapped else len(ba) + len(free_a)
    ct_contract = tuple(range(first, first + len(free_o)))
    ct = convert_element_type(ct, aval.dtype) if aval_of(ct).dtype != aval.dtype else ct
    out = c.dot_general(ct, other, ((ct_contract, free_o), (tuple(range(len(ba))), bo)))
    contracted = [a for _, a in sorted(zip(co, ca))]
    order = [*ba, *free_a, *contracted]
    return permute(out, tuple(sorted(range(aval.ndim), key=order.__getitem__)))


jvp.multilinear(c.dot_general_p)
transpose.rules[c.dot_general_p] = _dot_general_transpose
