"""Names of `scipy.stats.gennorm`. See `tapeless.tracer.distributions.gennorm`."""

from tapeless.tracer.distributions.gennorm import cdf, logpdf, pdf

__all__ = ["cdf", "logpdf", "pdf"]
