"""Why functions with custom batching rules have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import custom_vmap as p

without_row("its rules are for all of its operands, so it is not taken apart", p.custom_vmap_p)
