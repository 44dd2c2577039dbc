"""Names of `scipy.stats.cauchy`. See `tapeless.tracer.distributions.cauchy`."""

from tapeless.tracer.distributions.cauchy import cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
