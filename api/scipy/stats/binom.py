"""Names of `scipy.stats.binom`. See `tapeless.tracer.distributions.binom`."""

from tapeless.tracer.distributions.binom import logpmf, pmf

__all__ = ["logpmf", "pmf"]
