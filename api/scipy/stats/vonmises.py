"""Names of `scipy.stats.vonmises`. See `tapeless.tracer.distributions.vonmises`."""

from tapeless.tracer.distributions.vonmises import logpdf, pdf

__all__ = ["logpdf", "pdf"]
