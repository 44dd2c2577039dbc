"""How random bits transform: they are integers, and have no derivative."""

from tapeless.interpreters import jvp
from tapeless.tracer.primitives.random import threefry2x32_p

jvp.zero(threefry2x32_p)
