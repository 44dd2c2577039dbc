"""Names of `scipy.stats.dirichlet`. See `tapeless.tracer.distributions.dirichlet`."""

from tapeless.tracer.distributions.dirichlet import logpdf, pdf

__all__ = ["logpdf", "pdf"]
