"""Why control flow has no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import control_flow as p

without_row("its programs have equations, which have rows", p.cond_p, p.while_p, p.scan_p)
