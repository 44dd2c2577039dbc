"""The normal distribution under the names of `scipy.stats.norm`. See `tapeless.tracer.normal_density`."""

from tapeless.tracer.normal_density import cdf, logpdf, pdf

__all__ = ["cdf", "logpdf", "pdf"]
