"""Names of `scipy.stats.poisson`. See `tapeless.tracer.distributions.poisson`."""

from tapeless.tracer.distributions.poisson import cdf, entropy, logpmf, pmf

__all__ = ["cdf", "entropy", "logpmf", "pmf"]
