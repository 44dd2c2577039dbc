"""Names of `scipy.stats.multivariate_normal`. See `tapeless.tracer.distributions.multivariate_normal`."""

from tapeless.tracer.distributions.multivariate_normal import logpdf, pdf

__all__ = ["logpdf", "pdf"]
