"""Why calls have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import call as p

without_row("its program has equations, which have rows", p.jit_p)
