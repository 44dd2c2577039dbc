"""Rules of opaque (uninterpreted) functions: their derivatives are opaque functions again.

They have no index row: which elements of their arguments they read is unknown.
"""

from collections.abc import Sequence
from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.vmap import Dim
from tapeless.interpreters.zero import Zero
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.primitives.opaque import opaque, opaque_p
from tapeless.tracer.terms.affine import variables
from tapeless.tracer.terms.term import Read, term
from tapeless.tracer.types import aval_of


def _opaque_jvp(primals: list[Any], tangents: list[Any], *, function: str, ranks: Any, shape: Any, orders: Any) -> Any:
    """Contract the derivative by each argument with the tangent of that argument."""
    out = opaque(function, ranks, shape, *primals, orders=orders)
    moving = [k for k, t in enumerate(tangents) if type(t) is not Zero]
    terms = [_directional(primals, tangents[k], k, function, ranks, shape, orders) for k in moving]
    return (out,), (jvp.total(terms, out),)


def _directional(
    primals: Sequence[Any], t: Any, k: int, name: str, ranks: tuple[int, ...], shape: Any, orders: tuple[int, ...]
) -> Any:
    derivative = opaque(name, ranks, shape, *primals, orders=(*orders, k))
    batch = aval_of(t).ndim - ranks[k]
    behind = [j for j in sorted((*orders, k)) if j <= k]  # the last is contracted: derivatives by k are symmetric
    end = batch + len(shape) + sum(ranks[j] for j in behind)
    i = variables(derivative.shape)
    own = range(end - ranks[k], end)
    out = [a for d, a in enumerate(i) if d not in own]
    reads = [Read(0, i), Read(1, (*i[:batch], *i[own.start : own.stop]))]
    sizes = [n for d, n in enumerate(derivative.shape) if d not in own]
    return ein((derivative, t), [term(out, derivative.shape, reads)], sizes)


def _opaque_vmap(size: int, args: Sequence[Any], dims: Sequence[Dim], /, *, ranks: Any, **params: Any) -> Any:
    """Batch an opaque function: the mapped axis is one more batch axis."""
    given = [vmap.move_mapped_axis_first(x, d, size) for x, d in zip(args, dims, strict=True)]
    return opaque_p.bind(*given, ranks=ranks, **params), [0]


jvp.rules[opaque_p] = _opaque_jvp
vmap.rules[opaque_p] = _opaque_vmap
