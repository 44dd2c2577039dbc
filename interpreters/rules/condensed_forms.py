"""Rules of Hessenberg, tridiagonal and Schur forms. Their derivatives are knowingly left out, as in JAX."""

from typing import Any

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import condensed_forms as a


def without_derivative(primitive: Primitive) -> Any:
    """Return a jvp rule that raises: the derivative of this reduction of a matrix is not implemented."""

    def rule(primals: Any, tangents: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"{primitive} has no derivative: that of the transformation to the reduced form is not implemented.\n"
            "  Differentiate a function of the matrix that has a rule, or give one by custom_jvp."
        )

    return rule


for _primitive in (a.hessenberg_p, a.tridiagonal_p, a.schur_p):
    jvp.rules[_primitive] = without_derivative(_primitive)
    vmap.front(_primitive)

# ---- index rows ----------------------------------------------------------------------------------------------
# Functions of whole matrices, batched over the axes before.

for _primitive in (a.hessenberg_p, a.tridiagonal_p, a.schur_p):
    rows[_primitive] = core_of_matrices(_primitive)
