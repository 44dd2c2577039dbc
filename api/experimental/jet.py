"""Taylor mode: the names of `jax.experimental.jet`."""

import typing as _typing
from math import factorial as fact

from tapeless.differentiate.taylor_mode import jet, zero_series
from tapeless.tracer.late_imports import imported_late as _imported_late

__all__ = ["fact", "jet", "zero_series"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
