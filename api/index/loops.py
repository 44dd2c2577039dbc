"""Loops of the index language: steps are given an index, and their products with conditions become choices."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tapeless.arguments.argument_checks import check_arrays
from tapeless.control_flow.body_tracing import TracedBody
from tapeless.control_flow.scan import run_scan
from tapeless.interpreters.index.brackets import with_brackets
from tapeless.interpreters.writer import Writer
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.indices.index import Index, Variable
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.primitives.shape import iota, static_shape
from tapeless.tracer.terms.affine import symbol, variables
from tapeless.tracer.terms.term import Read, term
from tapeless.tracer.types import ShapedArray


def steps(who: str, fn: Any, step: Callable[[Any, Index], Any], init: Any, n: int) -> tuple[Any, Any]:
    """Scan with a step, of a carry and an index below n, that calls the user's `fn`; errors name `fn`."""
    (n,) = static_shape((n,), f"index.{who}")
    init = pytree.tree_map(lambda x: x.value if isinstance(x, Index) else x, init)
    check_arrays(f"index.{who}: init{{}}", init)

    @functools.wraps(fn)
    def stepped(carry: Any, k: Any) -> Any:
        return step(carry, Index(0, {Variable(k, n): 1}))

    positions = iota(dtypes.default_dtype("i"), n)
    return run_scan(f"index.{who}", fn, stepped, init, positions, n, rewritten=lambda body: _rewritten(body, n))


def _rewritten(body: TracedBody, n: int) -> tuple[TracedBody, list[Any]]:
    """Write products with conditions as choices, and reads at the index as elements that are scanned over."""
    jaxpr = with_brackets(body.jaxpr)
    if body.references:
        return body._replace(jaxpr=jaxpr), []
    jaxpr, at = with_scanned_elements(jaxpr, len(body.consts), n)
    consts = tuple([x for k, x in enumerate(body.consts) if k not in at])
    return body._replace(jaxpr=jaxpr, consts=consts), [body.consts[k] for k in at]


# ---- arrays that are scanned ---------------------------------------------------------------------------------
# Search terms: loop-carried read, scan over the leading axis. A step k that reads only `x[k]` of x takes this element
# as an input; so its derivative writes the cotangent of each element once, instead of adding it to an array as large
# as x.


def with_scanned_elements(jaxpr: Jaxpr, n_constants: int, n: int) -> tuple[Jaxpr, tuple[int, ...]]:
    """Rewrite a step, whose last input is its index below `n`, to take elements of constants instead of the constants.

    Only the constants, among the first `n_constants` inputs, that it reads at its index alone are replaced.
    Returns: the step, whose last inputs are these elements; the positions of the constants that they replace.
    """
    found = tuple(_read_at_the_index(jaxpr, n_constants, n))
    if not found:
        return jaxpr, ()
    arrays = [jaxpr.invars[at] for at in found]
    w, elements = Writer(jaxpr), {x: Var(_element_type(x.aval)) for x in arrays}
    for eqn in jaxpr.eqns:
        element = elements.get(eqn.invars[0]) if eqn.invars and isinstance(eqn.invars[0], Var) else None
        if element is None:
            w.keep(w.renamed(eqn))
        else:
            w.substitute(eqn.outvars[0], element)
    others = [x for x in jaxpr.invars if x not in elements]
    return w.finish().replace(invars=[*others, *elements.values()]), found


def _read_at_the_index(jaxpr: Jaxpr, n_constants: int, n: int) -> Iterator[int]:
    """Yield the positions of the constants of `n` rows that a step reads only at its index."""
    readers = dict[Var, list[Equation]]()
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            if isinstance(v, Var):
                readers.setdefault(v, []).append(eqn)
    for at, x in enumerate(jaxpr.invars[:n_constants]):
        has_rows = x in readers and x not in jaxpr.outvars and x.aval.shape[:1] == (n,)
        if has_rows and all(_is_element(eqn, x, jaxpr.invars[-1]) for eqn in readers[x]):
            yield at


def _element_type(aval: ShapedArray) -> ShapedArray:
    return aval.update(shape=aval.shape[1:])


def _is_element(eqn: Equation, x: Var, k: Var) -> bool:
    """Tell whether an equation computes the row x[k], for an index k within x."""
    if eqn.primitive is not ein_p or list(eqn.invars) != [x, k] or eqn.outvars[0].aval is not _element_type(x.aval):
        return False
    n, *rest = x.aval.shape
    i = variables(rest)
    return eqn.params["terms"] == (term(i, rest, [Read(0, (symbol(1, 0, n - 1), *i))]),)
