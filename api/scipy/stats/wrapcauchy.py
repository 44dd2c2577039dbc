"""Names of `scipy.stats.wrapcauchy`. See `tapeless.tracer.distributions.wrapcauchy`."""

from tapeless.tracer.distributions.wrapcauchy import logpdf, pdf

__all__ = ["logpdf", "pdf"]
