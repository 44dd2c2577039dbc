"""Entries of `with_refs`, which say where gradients go: the names of `jax.ad`."""

from tapeless.differentiate.references import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
