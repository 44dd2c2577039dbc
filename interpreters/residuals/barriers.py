"""Barriers in front of rematerialization: the inputs that wait for the cotangents.

A compiler may merge what is computed again with its first computation, and so keep it between the two passes. An
optimization barrier ties inputs of the second computation to the cotangents, which prevents it. But a compiler copies
what is behind a barrier, if it is read elsewhere too, as parameters are; so as few bytes as possible are tied.
"""

from collections.abc import Callable

from tapeless.tracer.jaxpr import Atom, Equation, Jaxpr
from tapeless.tracer.primitives.contraction import dot_general_p


def inputs_to_tie(jaxpr: Jaxpr, is_free: Callable[[Equation], bool]) -> set[Atom]:
    """Choose the inputs of a linear half to tie, so that all primal equations but free ones depend on one of them."""
    smallest: dict[Atom, Atom] = {v: v for v in jaxpr.invars if not v.linear}  # of the inputs that a value depends on
    tied: set[Atom] = set()
    for eqn in [eqn for eqn in jaxpr.eqns if not eqn.linear]:
        read = [v for v in eqn.invars if v in smallest]
        if not read:
            continue
        if not is_free(eqn):
            tied.update([smallest[v] for v in read if smallest[v] is not v or not _waits_for_one_operand(eqn)])
        first = min([smallest[v] for v in read], key=lambda v: (v not in tied, v.aval.nbytes))
        if not is_free(eqn):
            tied.add(first)
        smallest.update(dict.fromkeys(eqn.outvars, first))
    return tied


def _waits_for_one_operand(eqn: Equation) -> bool:
    """Tell whether XLA computes nothing for an equation before it has all operands: for products of matrices.

    So a small operand can be tied, as barriers copy. It copies an operand of a convolution, and converts narrow ones.
    """
    return eqn.primitive is dot_general_p and all(v.aval.dtype.itemsize >= 4 for v in eqn.invars)
