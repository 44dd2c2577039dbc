"""Why functions with custom derivative rules have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import custom as p

without_row(
    "its rules are for all of its operands, so it is not taken apart", p.custom_jvp_p, p.custom_vjp_p, p.custom_linear_p
)
