"""Names of `scipy.stats.betabinom`. See `tapeless.tracer.distributions.betabinom`."""

from tapeless.tracer.distributions.betabinom import logpmf, pmf

__all__ = ["logpmf", "pmf"]
