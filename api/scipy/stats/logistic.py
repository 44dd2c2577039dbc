"""Names of `scipy.stats.logistic`. See `tapeless.tracer.distributions.logistic`."""

from tapeless.tracer.distributions.logistic import cdf, isf, logpdf, pdf, ppf, sf

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]
