"""Names of `scipy.stats.gamma`. See `tapeless.tracer.distributions.gamma`."""

from tapeless.tracer.distributions.gamma import cdf, logcdf, logpdf, logsf, pdf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
