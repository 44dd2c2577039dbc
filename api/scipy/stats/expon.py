"""Names of `scipy.stats.expon`. See `tapeless.tracer.distributions.expon`."""

from tapeless.tracer.distributions.expon import cdf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
