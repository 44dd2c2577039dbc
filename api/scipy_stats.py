"""Distributions under the names of `scipy.stats`: `tapeless.scipy.stats`."""

from tapeless.tracer import normal_density as norm

__all__ = ["norm"]
