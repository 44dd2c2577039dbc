"""Operands of matrix products on GPUs: concatenations are stored before they are read.

XLA for GPUs (jaxlib 0.11.2) fuses a concatenation into the matrix product and the sums that read it, and leaves its
parts to other fusions. If a part is as large as what the loss sums, XLA computes it in the kernel of this sum, which
runs in a single block of threads (multi-output fusion). Behind a barrier, one kernel computes and stores all parts. In
the gradient of an LSTM step on an H200 that kernel takes 0.6 us, the other would take 51, by XLA's own estimate.
"""

from tapeless.tracer import core
from tapeless.tracer.jaxpr import Equation, Jaxpr, Var, map_carried
from tapeless.tracer.primitives.checkpoint import materialize_p
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.shape import concatenate_p


@core.remembered
def with_stored_concatenations(jaxpr: Jaxpr) -> Jaxpr:
    """Put a barrier behind each concatenation that a matrix product reads; return the same object if there is none."""
    read = {v for eqn in jaxpr.eqns if eqn.primitive is dot_general_p for v in eqn.invars}
    eqns: list[Equation] = []
    for eqn in jaxpr.eqns:
        params = map_carried(with_stored_concatenations, eqn)
        if eqn.primitive is concatenate_p and eqn.outvars[0] in read:
            (out,) = eqn.outvars
            joined = Var(out.aval, out.linear)
            eqns += [eqn.replace(outvars=[joined]), Equation(materialize_p, [joined], {}, [out], eqn.source)]
        else:
            eqns.append(eqn if params is eqn.params else eqn.replace(params=params))
    return jaxpr if all(old is new for old, new in zip(jaxpr.eqns, eqns)) else jaxpr.replace(eqns=eqns)
