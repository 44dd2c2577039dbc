"""Names of `scipy.stats.gumbel_r`. See `tapeless.tracer.distributions.gumbel_r`."""

from tapeless.tracer.distributions.gumbel_r import cdf, logcdf, logpdf, logsf, pdf, ppf, sf

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]
