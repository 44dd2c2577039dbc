"""Names of `scipy.stats.bernoulli`. See `tapeless.tracer.distributions.bernoulli`."""

from tapeless.tracer.distributions.bernoulli import cdf, logpmf, pmf, ppf

__all__ = ["cdf", "logpmf", "pmf", "ppf"]
