"""Reductions over segments: the names of `jax.ops`."""

import typing as _typing

from tapeless.tracer.late_imports import imported_late as _imported_late
from tapeless.tracer.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

if not _typing.TYPE_CHECKING:  # type checkers know better what is there
    __getattr__ = _imported_late(globals(), {})
