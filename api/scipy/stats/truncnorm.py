"""Names of `scipy.stats.truncnorm`. See `tapeless.tracer.distributions.truncnorm`."""

from tapeless.tracer.distributions.truncnorm import cdf, logcdf, logpdf, logsf, pdf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
