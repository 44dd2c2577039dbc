"""Index row of the platform index: a scalar without operands."""

from tapeless.interpreters.index_rows import core, rows
from tapeless.tracer.primitives.platform import platform_index_p

rows[platform_index_p] = lambda params, avals: core((), ())
