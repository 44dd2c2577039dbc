"""Names of `scipy.stats.laplace`. See `tapeless.tracer.distributions.laplace`."""

from tapeless.tracer.distributions.laplace import cdf, logpdf, pdf

__all__ = ["cdf", "logpdf", "pdf"]
