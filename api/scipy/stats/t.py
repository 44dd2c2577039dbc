"""Names of `scipy.stats.t`. See `tapeless.tracer.distributions.t`."""

from tapeless.tracer.distributions.t import logpdf, pdf

__all__ = ["logpdf", "pdf"]
