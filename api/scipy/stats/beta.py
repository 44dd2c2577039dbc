"""Names of `scipy.stats.beta`. See `tapeless.tracer.distributions.beta`."""

from tapeless.tracer.distributions.beta import cdf, logcdf, logpdf, logsf, pdf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
