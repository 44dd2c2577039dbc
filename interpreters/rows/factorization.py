"""Index rows of factorizations: functions of whole matrices, batched over the axes before."""

from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.tracer.primitives import factorization as f

for _primitive in (f.lu_p, f.qr_p, f.geqrf_p, f.det_p, f.adjugate_p, f.pinv_p, f.least_squares_p):
    rows[_primitive] = core_of_matrices(_primitive)
