"""Index rows of identities (names, moves, barriers), and why a checkpoint has none."""

from tapeless.interpreters.index_rows import rows, same, without_row
from tapeless.tracer.primitives import checkpoint as p

rows[p.name_p] = rows[p.move_p] = rows[p.materialize_p] = rows[p.optimization_barrier_p] = same
without_row("its program has equations, which have rows", p.checkpoint_p)
without_row("it has no results", p.dce_sink_p)
