"""Why collectives have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import collective as p

without_row(
    "it reads other examples or devices, which no axis of an array is",
    *(p.psum_p, p.pmax_p, p.pmin_p, p.all_gather_p, p.psum_scatter_p, p.all_to_all_p, p.ppermute_p, p.axis_index_p),
)
