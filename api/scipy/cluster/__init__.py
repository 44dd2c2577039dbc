"""Clusters under the names of `scipy.cluster`: `tapeless.scipy.cluster`."""

from tapeless.scipy.cluster import vq

__all__ = ["vq"]
