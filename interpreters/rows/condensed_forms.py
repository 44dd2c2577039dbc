"""Index rows of condensed forms: functions of whole matrices, batched over the axes before."""

from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.tracer.primitives import condensed_forms as c

for _primitive in (c.hessenberg_p, c.tridiagonal_p, c.schur_p):
    rows[_primitive] = core_of_matrices(_primitive)
