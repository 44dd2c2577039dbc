"""Rotations under the names of `scipy.spatial.transform`."""

from tapeless.tracer.rotations import Rotation, Slerp

__all__ = ["Rotation", "Slerp"]
