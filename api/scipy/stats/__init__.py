"""Distributions under the names of `scipy.stats`: `tapeless.scipy.stats`."""

from tapeless.scipy.stats import norm

__all__ = ["norm"]
