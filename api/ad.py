"""Entries of `with_refs`, which say where gradients go: the names of `jax.ad`."""

from tapeless.differentiate.references import DidntWant, DontWant, GradRef, GradValue
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

_complete_namespace(globals())
