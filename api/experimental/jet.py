"""Taylor mode: the names of `jax.experimental.jet`."""

from math import factorial as fact

from tapeless.differentiate.taylor_mode import jet, zero_series
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["fact", "jet", "zero_series"]

_complete_namespace(globals())
