"""Names of `scipy.stats.nbinom`. See `tapeless.tracer.distributions.nbinom`."""

from tapeless.tracer.distributions.nbinom import logpmf, pmf

__all__ = ["logpmf", "pmf"]
