"""Names of `scipy.stats.uniform`. See `tapeless.tracer.distributions.uniform`."""

from tapeless.tracer.distributions.uniform import cdf, logpdf, pdf, ppf

__all__ = ["cdf", "logpdf", "pdf", "ppf"]
