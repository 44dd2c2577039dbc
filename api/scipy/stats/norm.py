"""Names of `scipy.stats.norm`. See `tapeless.tracer.distributions.norm`."""

from tapeless.tracer.distributions.norm import cdf, isf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
