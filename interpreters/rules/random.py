"""How random bits transform: they are integers, and have no derivative."""

from tapeless.interpreters import jvp, vmap
from tapeless.tracer.primitives.random import threefry2x32_p

jvp.zero(threefry2x32_p)
vmap.elementwise(threefry2x32_p)
