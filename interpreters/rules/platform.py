"""Rules of platform_index, a number without operands: zero derivative, the same for all examples."""

from tapeless.interpreters import jvp, vmap
from tapeless.interpreters.index_rows import core, rows
from tapeless.tracer.primitives.platform import platform_index_p

jvp.zero(platform_index_p)
vmap.rules[platform_index_p] = lambda size, args, dims, **params: (platform_index_p.bind(**params), [None])

# ---- index rows ----------------------------------------------------------------------------------------------
# A scalar without operands.

rows[platform_index_p] = lambda params, avals: core((), ())
