"""Names of `scipy.stats.gumbel_l`. See `tapeless.tracer.distributions.gumbel_l`."""

from tapeless.tracer.distributions.gumbel_l import cdf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
