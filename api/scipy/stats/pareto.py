"""Names of `scipy.stats.pareto`. See `tapeless.tracer.distributions.pareto`."""

from tapeless.tracer.distributions.pareto import cdf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
