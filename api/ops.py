"""Reductions over segments: the names of `jax.ops`."""

from tapeless.tracer.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
