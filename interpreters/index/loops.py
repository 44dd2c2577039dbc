"""Loops over an index: arrays that a step reads only at its own index become scanned inputs (xs) of the loop.

Search terms: loop-carried read, scan over the leading axis. A step k that reads only `x[k]` of x takes this element as
an input; so its derivative writes the cotangent of each element once, instead of adding it to an array as large as x.
"""

from collections.abc import Iterator

from tapeless.interpreters.writer import Writer
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var
from tapeless.tracer.primitives.ein import ein_p
from tapeless.tracer.terms.affine import symbol, variables
from tapeless.tracer.terms.term import Read, term
from tapeless.tracer.types import ShapedArray


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
