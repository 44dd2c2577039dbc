"""Index rows of functions related to the error function: pointwise."""

from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.primitives import error_functions as f

for _primitive in (f.erfcx_p, f.dawsn_p, f.ndtr_p, f.log_ndtr_p, f.ndtri_p, f.erfinv_p):
    rows[_primitive] = pointwise
