"""Why linear solves have no index row."""

from tapeless.interpreters.index_rows import without_row
from tapeless.tracer.primitives import linear_solve as p

without_row("its program for solving has equations, which have rows", p.linear_solve_p)
