"""Why callbacks to the host have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import callback as p

without_row("the host computes it", p.pure_callback_p, p.io_callback_p, p.debug_callback_p)
