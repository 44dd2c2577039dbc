"""Batching rules of primitives: the names of `jax.interpreters.batching`."""

from tapeless.custom.primitive_batching import (
    AxisData,
    axis_primitive_batchers,
    bdim_at_front,
    broadcast,
    defbroadcasting,
    defvectorized,
    fancy_primitive_batchers,
    not_mapped,
    primitive_batchers,
)
from tapeless.interpreters.vmap import is_vmappable, register_vmappable, unregister_vmappable

__all__ = [
    "AxisData",
    "axis_primitive_batchers",
    "bdim_at_front",
    "broadcast",
    "defbroadcasting",
    "defvectorized",
    "fancy_primitive_batchers",
    "is_vmappable",
    "not_mapped",
    "primitive_batchers",
    "register_vmappable",
    "unregister_vmappable",
]
