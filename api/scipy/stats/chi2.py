"""Names of `scipy.stats.chi2`. See `tapeless.tracer.distributions.chi2`."""

from tapeless.tracer.distributions.chi2 import cdf, logcdf, logpdf, logsf, pdf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
