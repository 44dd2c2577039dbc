"""Loops of the index language: steps that are given an index, and whose products with conditions are choices."""

import functools
from collections.abc import Callable
from typing import Any

from tapeless.arguments.checks import check_arrays
from tapeless.control_flow.body_tracing import TracedBody
from tapeless.control_flow.scan import scanned
from tapeless.interpreters.index.brackets import with_brackets
from tapeless.interpreters.index.loops import with_scanned_elements
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.indices.index import Index, Variable
from tapeless.tracer.primitives.shape import iota, static_shape


def steps(who: str, fn: Any, step: Callable[[Any, Index], Any], init: Any, n: int) -> tuple[Any, Any]:
    """Scan with a step, of a carry and an index below n, that calls the user's `fn`, which errors name."""
    (n,) = static_shape((n,), f"index.{who}")
    init = pytree.tree_map(lambda x: x.value if isinstance(x, Index) else x, init)
    check_arrays(f"index.{who}: init{{}}", init)

    @functools.wraps(fn)
    def stepped(carry: Any, k: Any) -> Any:
        return step(carry, Index(0, {Variable(k, n): 1}))

    positions = iota(dtypes.default_dtype("i"), n)
    return scanned(f"index.{who}", fn, stepped, init, positions, n, rewritten=lambda body: _rewritten(body, n))


def _rewritten(body: TracedBody, n: int) -> tuple[TracedBody, list[Any]]:
    """Write products with conditions as choices, and reads at the index as elements that are scanned over."""
    jaxpr = with_brackets(body.jaxpr)
    if body.references:
        return body._replace(jaxpr=jaxpr), []
    jaxpr, at = with_scanned_elements(jaxpr, len(body.consts), n)
    consts = tuple([x for k, x in enumerate(body.consts) if k not in at])
    return body._replace(jaxpr=jaxpr, consts=consts), [body.consts[k] for k in at]
