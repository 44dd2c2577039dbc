"""Index rows of integrals of elementary functions: pointwise."""

from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.primitives import integrals as i

for _primitive in (
    i.exp1_p, i.expi_p, i.sine_integral_p, i.cosine_integral_p, i.fresnel_sine_p, i.fresnel_cosine_p, i.spence_p,
):  # fmt: skip
    rows[_primitive] = pointwise
