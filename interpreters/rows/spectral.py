"""Index rows of eigenvalues and singular values: functions of whole matrices, batched over the axes before."""

from tapeless.interpreters.index_rows import core_of_matrices, rows
from tapeless.tracer.primitives import spectral as s

for _primitive in (s.eig_p, s.eigh_p, s.svd_p):
    rows[_primitive] = core_of_matrices(_primitive)
